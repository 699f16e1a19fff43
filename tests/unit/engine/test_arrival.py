"""A request counts from its arrival in Kafka, however late it is read and by whatever clock.

T0 arrives ────────── nobody reads ──────────► read
     └─ what is due in between exists: it is late
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from belfry.engine.arrival import MOST_AHEAD_MS, arrival_ms, newest_ms
from belfry.schedules.instant_bounds import SECONDS_LIMIT
from belfry.schedules.instants import parse_instant
from belfry.schedules.outcomes import Outcome
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.records import PENDING
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy
from belfry.wire.batch import SourceBatch
from belfry.wire.record import Origin, origin_headers
from tests.unit.engine.driver import HOUR, T0, Driver, Step, request

SECOND = 1_000
MINUTE = 60_000
EVERY: dict[str, Any] = {"kind": "EVERY", "interval_ms": MINUTE}
CRON: dict[str, Any] = {"kind": "CRON", "cron": "* * * * *"}


def kept(driver: Driver) -> Pending:
    row = dict(driver.changelog)[b"demo/a"]
    assert row is not None
    assert row[1] == PENDING
    return decode_pending(row)


def read_late(read_ms: int, **fields: Any) -> tuple[Driver, list[Step]]:
    """A request that arrived at T0 and was read later; then what is due fires."""
    driver = Driver()
    driver.ask(**fields)
    assert driver.step(read_ms).outcomes == ["ACCEPTED"]
    steps = []
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= read_ms + MINUTE - 1:
        steps.append(driver.step(max(read_ms, due_ms), take=0))
    return driver, steps


def missed(steps: list[Step]) -> int:
    return sum(step.effects.outcomes[Outcome.MISSED] for step in steps)


@pytest.mark.parametrize("rule", [EVERY, CRON], ids=["EVERY", "CRON"])
@pytest.mark.parametrize("read_ms", [T0 + 2 * HOUR, T0 - 10 * SECOND])
def test_the_readers_clock_moves_no_schedule(rule: dict[str, Any], read_ms: int) -> None:
    driver = Driver()
    driver.ask(**rule)
    driver.step(read_ms, fire=False)
    assert (kept(driver).accepted_ms, kept(driver).due_ms) == (T0, T0 + MINUTE)


@pytest.mark.parametrize("rule", [EVERY, CRON], ids=["EVERY", "CRON"])
def test_what_was_due_before_it_was_read_is_late(rule: dict[str, Any]) -> None:
    # T0 arrives    1 min … 180 min due    3 h read
    driver, steps = read_late(T0 + 3 * HOUR, **rule)
    shots = [shot for step in steps for shot in step.shots]
    assert [dict(shot.headers).get("belfry-missed") for shot in shots] == [b"177", None, None]
    assert missed(steps) == 177
    assert kept(driver).nominal_ms == T0 + 3 * HOUR + MINUTE


@pytest.mark.parametrize(
    ("misfire", "fires", "given_up"), [("FIRE_ONCE", 1, 9), ("FIRE_ALL", 10, 0), ("SKIP", 0, 10)]
)
def test_a_window_that_ended_meanwhile_had_occurrences(
    misfire: str, fires: int, given_up: int
) -> None:
    driver, steps = read_late(T0 + HOUR, **EVERY, misfire=misfire, end_at=T0 + 10 * MINUTE)
    assert sum(len(step.shots) for step in steps) == fires
    assert missed(steps) == given_up
    assert sum(step.effects.outcomes[Outcome.COMPLETED] for step in steps) == 1
    assert driver.engine.pending == 0


def test_what_lies_further_back_than_its_tenant_looks_is_told_of() -> None:
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", look_back_ms=HOUR)))
    driver.ask(**EVERY, misfire="FIRE_ALL")
    driver.step(T0 + 5 * HOUR)
    told = driver.step(T0 + 5 * HOUR, take=0).effects.lifecycle
    assert [(str(each.outcome), each.code) for each in told] == [("MISSED", "late")]
    assert (told[0].reason or "").startswith("239 occurrences did not fire")
    assert len(driver.run(T0 + 5 * HOUR + SECOND)) == 60
    assert driver.engine.next_due_ms() == T0 + 5 * HOUR + MINUTE


def test_a_window_that_ended_before_it_came_is_refused() -> None:
    driver = Driver()
    driver.ask(**EVERY, end_at=T0 - 1)
    step = driver.step(T0 + HOUR)
    assert (step.outcomes, step.codes) == (["REJECTED"], ["never_fires"])


def test_a_step_that_is_done_again_later_decides_the_same() -> None:
    driver = Driver()
    driver.ask(**EVERY, request_id="r")
    first = driver.step(T0 + 5, commit=False).effects.rows
    again = driver.step(T0 + HOUR).effects.rows
    names = [b"demo/a", b"\0rdemo/r"]
    assert [first[name] for name in names] == [again[name] for name in names]


def test_a_forwarded_request_counts_from_where_it_first_came_in() -> None:
    driver = Driver()
    origin = Origin("belfry.schedules.demo", 0, 5, T0, rerouted=False)
    headers = origin_headers(origin, None)
    driver.send(request(**EVERY), None, headers, timestamp_ms=T0 + HOUR)
    driver.step(T0 + 2 * HOUR)
    assert (kept(driver).accepted_ms, kept(driver).due_ms) == (T0, T0 + MINUTE)


@pytest.mark.parametrize("read_ms", [T0, T0 - 10 * SECOND, T0 + 2 * HOUR])
def test_an_ids_hour_is_between_arrivals(read_ms: int) -> None:
    driver = Driver()
    driver.ask(at=T0 + 9 * HOUR, request_id="r")
    driver.step(read_ms, fire=False)
    driver.ask(at=T0 + 9 * HOUR, request_id="r", timestamp_ms=T0 + HOUR - 1)
    driver.ask(at=T0 + 9 * HOUR, request_id="r", timestamp_ms=T0 + HOUR)
    assert driver.step(T0 + 3 * HOUR).outcomes == ["DUPLICATE", "UNCHANGED"]


@pytest.mark.parametrize("interval_ms", [SECOND, 10 * SECOND])
def test_another_rhythm_does_not_repeat_what_the_old_one_fired(interval_ms: int) -> None:
    # 1 s fires    1.5 s another rhythm arrives    2 s fires    2.1 s it is read
    driver = Driver()
    driver.ask(kind="CRON", cron="* * * * * *")
    driver.step(T0)
    assert driver.run(T0 + 2 * SECOND) == ["a", "a"]
    driver.ask(kind="CRON", cron="*/1 * * * * *", timestamp_ms=T0 + 1_500)
    assert driver.step(T0 + 2_100).outcomes == ["UPDATED"]
    assert kept(driver).nominal_ms == T0 + 3 * SECOND
    driver.ask(kind="EVERY", interval_ms=interval_ms, timestamp_ms=T0 + 2_200)
    driver.step(T0 + 2_300)
    assert kept(driver).nominal_ms == T0 + 2_200 + interval_ms


@pytest.mark.parametrize("rule", [EVERY, CRON], ids=["EVERY", "CRON"])
def test_a_rhythm_that_had_yet_to_start_keeps_no_other_one_waiting(rule: dict[str, Any]) -> None:
    driver = Driver()
    driver.ask(**rule, start_at=T0 + 24 * HOUR)
    driver.ask(kind="EVERY", interval_ms=SECOND, timestamp_ms=T0 + 5)
    assert driver.step(T0 + 5).outcomes == ["ACCEPTED", "UPDATED"]
    assert kept(driver).nominal_ms == T0 + 5 + SECOND


def test_an_update_that_came_before_what_it_updates_moves_no_later_rhythm() -> None:
    """Two brokers' clocks: the update arrives a moment earlier than the schedule."""
    driver = Driver()
    driver.ask(**EVERY, payload=b"1", timestamp_ms=T0)
    driver.ask(**EVERY, payload=b"2", timestamp_ms=T0 - 1)
    driver.ask(kind="EVERY", interval_ms=HOUR, timestamp_ms=T0 - 1)
    assert driver.step(T0).outcomes == ["ACCEPTED", "UPDATED", "UPDATED"]
    assert kept(driver).nominal_ms == T0 + HOUR


@pytest.mark.parametrize("appended_ms", [-1, 0, 10**12 - 1, T0 + MOST_AHEAD_MS + 1, 2**62])
def test_a_timestamp_that_cannot_be_true_is_not_believed(appended_ms: int) -> None:
    assert arrival_ms(appended_ms, T0) == T0
    driver = Driver()
    driver.ask(**EVERY, timestamp_ms=appended_ms)
    driver.ask(schedule_id="b", at=T0 + 5, timestamp_ms=appended_ms)
    driver.ask(schedule_id="c", kind="AFTER", delay_ms=7, timestamp_ms=appended_ms)
    assert driver.step(T0).outcomes == ["ACCEPTED"] * 3
    assert kept(driver).accepted_ms == T0
    assert driver.engine.next_due_ms() == T0 + 5


def test_brokers_may_be_a_little_ahead() -> None:
    assert arrival_ms(T0 + MOST_AHEAD_MS, T0) == T0 + MOST_AHEAD_MS


def test_the_newest_append_time_of_a_batch() -> None:
    records: list[Any] = [(n, T0 + at, None, None, None) for n, at in enumerate((3, 9, 4))]
    assert newest_ms(SourceBatch(0, 3, records)) == T0 + 9
    assert newest_ms(SourceBatch(0, 3, records, appended=False)) is None
    assert newest_ms(SourceBatch(0, 1, [(0, -1, None, None, None)])) is None
    assert newest_ms(SourceBatch(0, 3, [])) == SECONDS_LIMIT
    for first_ms, found in ((SECONDS_LIMIT, SECONDS_LIMIT), (SECONDS_LIMIT - 1, None)):
        assert newest_ms(SourceBatch(0, 1, [(0, first_ms, None, None, None)])) == found


# -- a clock that went back ------------------------------------------------------------------------


def isolated(**policy: Any) -> Driver:
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", **policy)))
    return driver


def early(step: Step) -> list[str]:
    return [
        shot.id for shot, late in zip(step.shots, step.effects.lateness_ms, strict=True) if late < 0
    ]


@pytest.mark.parametrize(
    "policy", [{"priority": -1}, {"max_fires_per_second": 1_000.0}], ids=["priority", "rate"]
)
def test_a_tenant_apart_fires_up_to_now_and_not_to_the_watermark(policy: dict[str, Any]) -> None:
    #  T0 read    +100 … +500 due    +500 the watermark, then the clock is at +90
    driver = isolated(**policy)
    driver.ask(tenant="other", schedule_id="o", at=T0 + 500)
    driver.step(T0)
    assert driver.run(T0 + 500) == ["o"]
    for number in range(1, 6):
        driver.ask(schedule_id=f"s{number}", at=T0 + 100 * number)
    driver.step(T0 + 90)
    for now_ms in (T0 + 100, T0 + 150, T0 + 300):
        assert early(driver.step(now_ms, take=0)) == []
    assert driver.run(T0 + 500) == ["s4", "s5"]


def test_a_released_backlog_fires_up_to_now_whoever_else_is_due() -> None:
    driver = Driver()
    driver.tenants.follow(EffectivePolicy(TenantPolicy("apart", priority=-1)))
    driver.tenants.hold("demo", "its topic is missing")
    driver.ask(schedule_id="late", at=T0 + 500)
    driver.step(T0)
    driver.run(T0 + 500)
    driver.step(T0 + 500, take=0)
    driver.tenants.hold("demo", "")
    driver.ask(tenant="apart", schedule_id="x", at=T0 + 100)
    driver.step(T0 + 90)
    assert driver.step(T0 + 100, take=0).ids == ["x"]
    assert driver.run(T0 + 500) == ["late"]


def test_what_follows_an_occurrence_waits_for_its_instant() -> None:
    """A rhythm that was read behind the watermark: its instants come, one after the other."""
    driver = Driver()
    driver.ask(tenant="other", schedule_id="o", at=T0 + 500)
    driver.step(T0)
    assert driver.run(T0 + 500) == ["o"]
    driver.tenants.follow(EffectivePolicy(TenantPolicy("demo", priority=-1)))
    driver.ask(kind="EVERY", interval_ms=100)
    driver.step(T0 + 90)
    for now_ms in range(T0 + 100, T0 + 700, 25):
        assert early(driver.step(now_ms, take=0)) == []
    assert kept(driver).occurrence == 6


def test_an_occurrence_is_not_given_up_before_it_is_due() -> None:
    driver = isolated(priority=-1)
    driver.ask(tenant="other", schedule_id="o", at=T0 + 5_000)
    driver.step(T0)
    assert driver.run(T0 + 5_000) == ["o"]
    driver.ask(kind="EVERY", interval_ms=1_000, overlap="SKIP", ack_timeout_ms=HOUR)
    driver.step(T0 + 900)
    for now_ms in range(T0 + 1_000, T0 + 5_000, 500):
        for told in driver.step(now_ms, take=0).effects.lifecycle:
            last = re.search(r" to (\S+Z)", told.reason or "")
            assert last is None or parse_instant(last[1]) <= now_ms
    assert kept(driver).nominal_ms == T0 + 5_000
