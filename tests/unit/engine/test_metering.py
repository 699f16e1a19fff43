"""What a tenant uses of a partition: each figure, by the hour, once, whoever owns the partition."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from belfry.engine import metering
from belfry.engine.effects import Effects
from belfry.engine.metering import MOST_PERIODS
from belfry.engine.options import EngineOptions
from belfry.store.layout.usage import USAGE_END, USAGE_PREFIX
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Level
from belfry.wire.metering import Usage, decode_usage, encode_usage, summed
from tests.unit.engine.driver import HOUR, T0, Driver

# A record of the tenant `demo` and the id `a`, as docs/metering.md has it.
EMPTY = 88 + len("demo") + len("a")
MINUTE = 60_000


def told(*found: Effects) -> list[Usage]:
    usages = [decode_usage(value) for effects in found for _, value in effects.metered]
    assert None not in usages
    return [each for each in usages if each is not None]


def use(**counts: int) -> dict[str, int]:
    return {"accepted": 0, "fired": 0, "delivered": 0, "held_byte_ms": 0, **counts}


def counts(usage: Usage) -> dict[str, Any]:
    return {name: getattr(usage, name) for name in use()}


@pytest.fixture(params=[Level.ALL, Level.FAILURES], ids=["the general way", "the fast path"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return Driver(request.param, metering_ms=HOUR)


def test_an_hour_is_told_once_with_all_that_was_used_in_it(driver: Driver) -> None:
    driver.ask(schedule_id="a", at=T0 + 30 * MINUTE, payload=b"x" * 50)
    assert not driver.step(T0).effects.metered
    assert driver.step(T0 + 30 * MINUTE).ids == ["a"]
    assert not driver.sweep(T0 + HOUR - 1).metered
    (usage,) = told(driver.sweep(T0 + HOUR))
    assert (usage.tenant, usage.from_ms, usage.until_ms) == ("demo", T0, T0 + HOUR)
    assert usage.partition == 0
    held = (EMPTY + 50) * 30 * MINUTE
    assert counts(usage) == use(accepted=1, fired=1, held_byte_ms=held)
    assert not told(driver.sweep(T0 + 2 * HOUR), driver.sweep(T0 + 3 * HOUR))


def test_a_tenant_of_which_nothing_is_left_has_no_row(driver: Driver) -> None:
    driver.ask(at=T0 + 1)
    driver.step(T0)
    driver.step(T0 + 1)
    assert len(usage_rows(driver)) == 2
    driver.sweep(T0 + HOUR)
    assert list(usage_rows(driver)) == [USAGE_PREFIX]


def usage_rows(driver: Driver) -> dict[bytes, bytes]:
    return dict(ScheduleStore(driver.rows).between(USAGE_PREFIX, USAGE_END))


def test_what_waits_for_long_is_told_every_hour(driver: Driver) -> None:
    driver.ask(at=T0 + 10 * HOUR)
    driver.step(T0 + 15 * MINUTE)
    # No worker ran for hours.
    first, *rest = told(driver.sweep(T0 + 4 * HOUR + 1))
    assert counts(first) == use(accepted=1, held_byte_ms=EMPTY * 45 * MINUTE)
    assert [each.from_ms for each in rest] == [T0 + each * HOUR for each in (1, 2, 3)]
    assert [counts(each) for each in rest] == [use(held_byte_ms=EMPTY * HOUR)] * 3


def test_the_first_step_of_an_hour_tells_of_the_last_one(driver: Driver) -> None:
    driver.ask(at=T0 + HOUR)
    driver.step(T0)
    step = driver.step(T0 + HOUR + 7)
    assert step.ids == ["a"]
    assert [counts(each) for each in told(step.effects)] == [
        use(accepted=1, held_byte_ms=EMPTY * HOUR)
    ]
    assert [counts(each) for each in told(driver.sweep(T0 + 2 * HOUR))] == [
        use(fired=1, held_byte_ms=EMPTY * 7)
    ]


def test_what_is_changed_cancelled_and_paused_is_weighed_anew(driver: Driver) -> None:
    driver.ask(at=T0 + 9 * HOUR)
    driver.step(T0)
    driver.ask(at=T0 + 9 * HOUR, payload=b"12345")
    driver.ask(at=T0 + 9 * HOUR, payload=b"12345")
    driver.step(T0 + 1_000)
    driver.ask(action="PAUSE")
    driver.step(T0 + 2_000)
    driver.ask(action="CANCEL")
    driver.ask(schedule_id="gone", at=T0 + HOUR)
    driver.ask(schedule_id="gone", action="CANCEL")
    driver.step(T0 + 3_000)
    (usage,) = told(driver.sweep(T0 + HOUR))
    # The repeat changed nothing, so it was not accepted.
    assert counts(usage) == use(accepted=3, held_byte_ms=EMPTY * 1_000 + (EMPTY + 5) * 2_000)


def test_what_recurs_and_what_is_triggered_counts_by_its_fires(driver: Driver) -> None:
    driver.ask(kind="EVERY", interval_ms=MINUTE, start_at=T0)
    driver.step(T0 - 1)
    for minute in range(3):
        driver.step(T0 + minute * MINUTE)
    driver.ask(action="TRIGGER")
    driver.step(T0 + 2 * MINUTE + 1)
    # The step before the hour is a period of its own.
    sums = [counts(each) for each in told(driver.sweep(T0 + HOUR))]
    assert [each["fired"] for each in sums] == [4]


def test_a_step_that_is_rolled_back_has_used_nothing(driver: Driver) -> None:
    driver.ask(at=T0 + HOUR)
    driver.step(T0, commit=False)
    assert not driver.rows.get(b"k" + USAGE_PREFIX)
    driver.step(T0 + MINUTE)
    assert driver.rows.get(b"k" + USAGE_PREFIX)
    driver.step(T0 + HOUR, commit=False)
    step = driver.step(T0 + HOUR)
    assert [counts(each) for each in told(step.effects)] == [
        use(accepted=1, held_byte_ms=EMPTY * 59 * MINUTE)
    ]


def test_the_next_owner_goes_on_with_what_the_changelog_says(driver: Driver) -> None:
    driver.ask(at=T0 + 2 * HOUR)
    driver.step(T0)
    rows = MemoryMap()
    store = ScheduleStore(rows)
    replay = Replay(store)
    replay.apply(driver.changelog, range(len(driver.changelog)), T0)
    replay.finish(T0)
    driver.start(rows)
    assert [counts(each) for each in told(driver.sweep(T0 + HOUR))] == [
        use(accepted=1, held_byte_ms=EMPTY * HOUR)
    ]


def test_many_tenants_are_told_of_a_few_at_a_time(driver: Driver) -> None:
    for number in range(5):
        driver.ask(tenant=f"t{number}", at=T0 + 9 * HOUR)
    driver.step(T0)
    found = [told(driver.sweep(T0 + HOUR + each, at_most=2)) for each in range(4)]
    assert [[each.tenant for each in some] for some in found] == [
        ["t0", "t1"], ["t2", "t3"], ["t4"], [],
    ]  # fmt: skip
    assert not driver.sweep(T0 + HOUR + 5).metered
    assert len(told(driver.sweep(T0 + 2 * HOUR, at_most=50))) == 5


def test_a_year_without_an_owner_is_told_a_bounded_number_of_periods_at_a_time(
    driver: Driver,
) -> None:
    """Of one tenant and of many, each period once, and a roll-back on the way changes nothing."""
    for name in ("t0", "t1"):
        driver.ask(tenant=name, at=T0 + 10_000 * HOUR)
    driver.step(T0)
    now_ms, found = T0 + 2_000 * HOUR + 7, list[Usage]()
    for number in range(130):
        effects = driver.sweep(now_ms, at_most=50, commit=number % 3 != 2)
        assert len(effects.metered) <= 50
        if number % 3 != 2:
            found += told(effects)
    for name in ("t0", "t1"):
        own = [each for each in found if each.tenant == name]
        assert [each.from_ms for each in own] == [T0 + each * HOUR for each in range(2_000)]
        held = len(name) + EMPTY - len("demo")
        assert sum(each.held_byte_ms for each in own) == 2_000 * held * HOUR


def test_a_step_tells_what_it_has_no_room_for_as_one_record(driver: Driver) -> None:
    driver.ask(at=T0 + 10_000 * HOUR)
    driver.step(T0)
    now_ms = T0 + 2_000 * HOUR + 7
    driver.ask(schedule_id="b", at=T0 + 10_000 * HOUR)
    found = told(driver.step(now_ms).effects)
    assert len(found) == MOST_PERIODS + 1
    assert all(one.until_ms == two.from_ms for one, two in pairwise(found))
    assert (found[0].from_ms, found[-1].until_ms) == (T0, T0 + 2_000 * HOUR)
    assert sum(each.held_byte_ms for each in found) == 2_000 * EMPTY * HOUR
    (last,) = told(driver.sweep(T0 + 2_001 * HOUR))
    assert (last.from_ms, last.accepted) == (T0 + 2_000 * HOUR, 1)
    assert last.held_byte_ms == EMPTY * 7 + 2 * EMPTY * (HOUR - 7)


def test_a_step_without_room_tells_one_record_of_each_tenant(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of eight thousand tenants, after a month in which nobody owned the partition."""
    monkeypatch.setattr(metering, "RECORD_BYTES", 10**9)
    for number in range(20):
        driver.ask(tenant=f"t{number}", at=T0 + 10_000 * HOUR)
    driver.step(T0)
    for number in range(20):
        driver.ask(tenant=f"t{number}", schedule_id="b", at=T0 + 10_000 * HOUR)
    found = told(driver.step(T0 + 720 * HOUR).effects)
    assert len(found) == 20 + 1
    assert {each.until_ms for each in found} == {T0 + HOUR, T0 + 720 * HOUR}


def test_metering_begins_with_what_is_there_and_ends_with_what_was_not_told() -> None:
    driver = Driver()
    driver.ask(at=T0 + 9 * HOUR)
    driver.step(T0 - HOUR)
    assert not usage_rows(driver)
    driver.options = EngineOptions(metering_ms=HOUR)
    driver.start(driver.rows)
    driver.sweep(T0 + 10 * MINUTE)
    assert [counts(each) for each in told(driver.sweep(T0 + HOUR))] == [
        use(held_byte_ms=EMPTY * 50 * MINUTE)
    ]
    driver.options = EngineOptions()
    driver.start(driver.rows)
    assert [counts(each) for each in told(driver.sweep(T0 + HOUR + 5))] == [
        use(held_byte_ms=EMPTY * 5)
    ]
    assert not usage_rows(driver)
    assert not driver.sweep(T0 + 3 * HOUR).metered


def test_records_of_an_hour_add_up() -> None:
    hour: dict[str, Any] = {"tenant": "a", "from_ms": T0, "until_ms": T0 + HOUR}
    some = [
        Usage(**hour, accepted=1, held_byte_ms=2**70, partition=1),
        Usage(**hour, delivered=4),
        Usage(tenant="a", from_ms=T0 - HOUR, until_ms=T0, fired=1, partition=0),
    ]
    assert [decode_usage(encode_usage(each)) for each in some[1:]] == some[1:]
    first, second = summed(some)
    assert (first.from_ms, first.fired) == (T0 - HOUR, 1)
    assert counts(second) == use(accepted=1, delivered=4, held_byte_ms=2**70)


@pytest.mark.parametrize("value", [None, b"", b"{}", b"[1]", b'{"v":2}', b'{"v":1,"tenant":"a"}'])
def test_what_is_no_usage_is_skipped(value: bytes | None) -> None:
    assert decode_usage(value) is None


def test_sweeps_are_awaited_until_all_is_told_that_is_over() -> None:
    driver = Driver(metering_ms=HOUR)
    for number in range(7):
        driver.ask(tenant=f"t{number}", at=T0 + 99 * HOUR)
    driver.step(T0)
    driver.sweep(T0)
    assert not driver.engine.sweeps_awaited
    awaited = []
    for each in range(5):
        driver.sweep(T0 + HOUR + each, at_most=2)
        awaited.append(driver.engine.sweeps_awaited)
    assert awaited == [True, True, True, False, False]
