"""A trace that the engine made has no findings; damaged in one way, it has exactly that one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from belfry.tenants.deliveries import RETRIES, retry_policy
from belfry.tenants.effective import EffectivePolicy
from belfry.verification.findings import MEANINGS, Breach, Spot
from belfry.verification.rows import MANIFEST_KEY, Logged
from tests.property import histories
from tests.unit.engine.driver import FIRED, HOUR, T0
from tests.unit.verification.planted import (
    PLANTED,
    TOPIC,
    Planted,
    at_manifest,
    double_a_fire,
    leave_the_manifest_out,
    rewritten,
)
from tests.unit.verification.test_lost_in_moves import PLANTED_IN_MOVES
from tests.unit.verification.trace import MINUTE, Recording, Trace, Verification, varied, verified

# Where each finding lies and what it says, word by word: people read it.
SAID: Final = json.loads(Path(__file__).with_name("findings.json").read_text("utf-8"))


@pytest.fixture
def trace() -> Trace:
    return varied()


def test_a_trace_of_the_engine_has_no_findings(trace: Trace) -> None:
    made = verified(trace)
    assert made.findings == []
    assert made.counts.unchecked() == {}
    assert made.counts.fires == len(trace.fired) > 100
    assert made.counts.digests == made.counts.checked == made.counts.transactions > 40


def test_a_record_that_only_takes_up_an_offset_is_no_strangers(trace: Trace) -> None:
    """Who signs rows writes such, before a recovery or a mirror's transaction and behind rows."""
    filler = Logged(trace.offset, T0 + HOUR, b"filler", None, stranger=True)
    trace.changelog.append(filler)
    assert verified(trace).findings == []
    trace.changelog.append(filler._replace(offset=trace.offset + 1, value=b"theirs"))
    assert [each.breach for each in verified(trace).findings] == [Breach.STRANGER]


def test_what_fired_in_another_cluster_is_not_missed_in_this_one(trace: Trace) -> None:
    """A mirror carried the transactions, and what was told of them; events came out elsewhere."""
    trace.fired.clear()
    made = Verification()
    made.partition.elsewhere = ((0, trace.offset),)
    made.outputs.elsewhere_until_ms = T0 + HOUR
    for _ in range(2):
        made.round(trace)
    assert made.findings == []
    assert made.counts.elsewhere == made.counts.transactions > 40
    here = verified(trace)
    assert {Breach.LOST, Breach.UNTOLD_FIRE} <= {each.breach for each in here.findings}


def test_what_a_mirror_is_about_to_carry_on_is_not_torn(trace: Trace) -> None:
    leave_the_manifest_out(trace)
    made = Verification()
    made.partition.elsewhere = ((0, 1 << 62),)
    made.round(trace)
    assert Breach.TORN not in {each.breach for each in made.findings}
    # Behind a take-over it is.
    made = Verification()
    made.partition.elsewhere = ((0, trace.changelog[-1].offset),)
    made.round(trace)
    assert Breach.TORN in {each.breach for each in made.findings}


def test_ends_that_leave_no_row_hide_no_fire() -> None:
    """What waited is gone: that it fired is told by its event, and by the manifest."""
    trace = varied(remember_ms=0)
    made = verified(trace)
    assert made.findings == []
    assert made.counts.unchecked() == {}
    assert made.counts.fires == len(trace.fired) > 100
    lost = next(each for each in trace.fired if each.schedule_id == b"s3")
    trace.fired.remove(lost)
    found = verified(trace).findings
    assert [each.breach for each in found] == [Breach.LOST]


def test_what_retention_has_ended_is_no_finding_beside_cancels_of_what_was_due() -> None:
    """Three schedules are gone by one transaction that fired two, and nobody can say which."""
    driver = Recording()
    driver.apply(remember_ms=0)
    for name in ("a", "b", "c"):
        driver.ask(schedule_id=name, at=T0 + 500)
    driver.step(T0)
    driver.ask(schedule_id="c", action="CANCEL")
    driver.step(T0 + 500, at_most=2)
    trace = driver.trace
    assert len(trace.fired) == 2
    trace.fired.clear()
    made = verified(trace, floors={FIRED + "demo": T0 + HOUR})
    assert made.findings == []
    # Two fires of the transaction, and what was told of them.
    assert made.counts.output_gone == 4
    trace.told.clear()
    made = verified(trace)
    assert [each.breach for each in made.findings] == [Breach.COUNT]


def test_a_retry_of_a_webhook_has_fired_where_it_is_gone() -> None:
    """It is counted as unread, for its topic is not; a cancel beside it makes no riddle of it."""
    driver = Recording()
    driver.tenants.follow(EffectivePolicy(retry_policy("belfry.deliveries")))
    driver.ask(tenant=RETRIES, schedule_id="r", at=T0 + 500)
    driver.ask(schedule_id="c", at=T0 + 500)
    driver.step(T0)
    driver.ask(schedule_id="c", action="CANCEL")
    driver.step(T0 + 500, at_most=1)
    assert [each.schedule_id for each in driver.trace.fired] == [b"r"]
    driver.trace.fired.clear()
    made = verified(driver.trace)
    assert (made.findings, made.counts.output_unread) == ([], 1)
    assert made.counts.digests == made.counts.checked


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_have_no_findings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "Driver", Recording)
    history = histories.History(seed)
    if seed % 2:
        for tenant in histories.TENANTS:
            history.driver.apply(tenant, remember_ms=0)
    for _ in range(60):
        history.go_on()
    assert isinstance(history.driver, Recording)
    drained(history)
    floors = {FIRED + tenant: -1 for tenant in histories.TENANTS}
    tenants = history.driver.tenants
    held = frozenset(name for name in histories.TENANTS if tenants.of(name).aside)
    made = verified(history.driver.trace, floors=floors, held=held)
    assert made.findings == []
    assert made.counts.checked > made.counts.transactions / 2


def drained(history: histories.History) -> None:
    """Time goes on until all that may fire has fired, and was due more than a minute ago."""
    for passed_ms in (*[100] * 20, 2 * MINUTE):
        history.now_ms += passed_ms
        history.driver.ask(timestamp_ms=history.now_ms, tenant="t1", schedule_id="z", kind="AFTER")
        history.driver.step(history.now_ms)
        history.driver.run(history.now_ms)


# -- what is planted -------------------------------------------------------------------------------


@pytest.mark.parametrize("planted", PLANTED, ids=[each.plant.__name__ for each in PLANTED])
def test_what_is_planted_is_found_and_nothing_else(planted: Planted, trace: Trace) -> None:
    planted.plant(trace)
    found = verified(trace).findings
    assert [each.breach for each in found] == [planted.breach], found
    spot, *said = (re.sub("[0-9a-f]{32}", "…", str(each)) for each in found[0][1:])
    assert [spot, *said] == SAID[planted.plant.__name__]


def test_every_kind_of_finding_is_planted_and_explained() -> None:
    elsewhere = {Breach.REFUSED_TWICE, Breach.REDRIVEN_TWICE, *PLANTED_IN_MOVES}
    assert {each.breach for each in PLANTED} | elsewhere == set(Breach) == set(MEANINGS)


def test_a_request_that_was_refused_twice_is_found() -> None:
    made = Verification()
    for offset in (3, 3, 9):
        made.outputs.refused("belfry.schedules/0@7", Spot("belfry.rejected", 0, offset), T0)
    assert [each.breach for each in made.findings] == [Breach.REFUSED_TWICE]
    assert made.findings[0].spot.offset == 9
    assert made.findings[0].found == (
        "the request at belfry.schedules/0@7, as at belfry.rejected/0@3"
    )


@pytest.mark.parametrize(("late", "told"), [(True, []), (False, [Breach.DIGEST])])
def test_rows_tell_no_order_where_one_fired_at_another_instant_than_it_waited_for(
    late: bool, told: list[Breach]
) -> None:
    """Its row may be older than the fires before it: occurrences were missed earlier in the step.

    The two events lie in different partitions of their topic, so that does not tell either.
    """
    driver = Recording()
    rule: dict[str, Any] = {"kind": "EVERY", "interval_ms": 1_000, "start_at": T0 + 1_000}
    driver.ask(schedule_id="every", **rule, misfire="FIRE_ONCE", max_lateness_ms=0)
    driver.ask(schedule_id="at", at=T0 + 500)
    driver.step(T0)
    driver.step(T0 + (9_500 if late else 1_000))
    trace = driver.trace
    assert [each.schedule_id for each in trace.fired] == [b"at", b"every"]
    first, second = (n for n, row in enumerate(trace.changelog[-3:], -3) if row.key[:1] != b"\0")
    rows = trace.changelog
    rows[first], rows[second] = (
        rows[second]._replace(offset=rows[first].offset),
        rows[first]._replace(offset=rows[second].offset),
    )
    made = verified(trace)
    assert [each.breach for each in made.findings] == told
    assert (made.counts.unchecked() != {}) is late


# -- what cannot be seen ---------------------------------------------------------------------------


def compacted(trace: Trace, before: int) -> None:
    """Remove what compaction removes up to an offset: rows that a later one there replaces."""
    last = {each.key: each.offset for each in trace.changelog if each.offset < before}
    trace.changelog = [
        each for each in trace.changelog if each.offset >= before or last[each.key] == each.offset
    ]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8, 1.0])
def test_a_compacted_log_has_no_findings_and_says_what_was_not_checked(
    trace: Trace, share: float
) -> None:
    compacted(trace, int(trace.offset * share))
    made = verified(trace)
    assert made.findings == []
    assert made.counts.compacted > 0
    assert made.counts.checked + made.counts.compacted == made.counts.transactions
    if share < 0.9:
        assert made.counts.checked > 5


def test_behind_what_compaction_has_thinned_out_findings_are_made(trace: Trace) -> None:
    compacted(trace, trace.offset // 2)
    change = at_manifest(trace, -3)
    rewritten(trace, -3, digest=bytes(16))
    found = verified(trace).findings
    assert [(each.breach, each.spot.offset) for each in found] == [
        (Breach.DIGEST, trace.changelog[change[0]].offset)
    ]


def test_manifests_that_compaction_may_not_remove_are_missed(trace: Trace) -> None:
    """A whole transaction is gone from the older part, and its number is among the last 4 096."""
    end, sealed = at_manifest(trace, 6)
    begin, _ = at_manifest(trace, 5)
    del trace.changelog[begin + 1 : end + 1]
    compacted(trace, trace.offset // 2)
    found = [each for each in verified(trace).findings if each.breach is Breach.NUMBER]
    assert [each.found for each in found] == [f"number {sealed.number + 1}"]


def test_outputs_that_retention_has_emptied_are_not_missed(trace: Trace) -> None:
    gone_ms = trace.fired[9].timestamp_ms
    trace.fired = [each for each in trace.fired if each.timestamp_ms > gone_ms]
    made = verified(trace, floors={TOPIC: gone_ms})
    assert made.findings == []
    assert made.counts.output_gone >= 10


def test_topics_that_were_not_read_are_not_missed(trace: Trace) -> None:
    trace.fired, trace.told = [], []
    made = verified(trace, floors={})
    assert made.findings == []
    assert made.counts.output_unread > 50


def test_at_least_once_may_come_twice(trace: Trace) -> None:
    double_a_fire(trace)
    made = verified(trace, tenants_that_repeat=frozenset({"demo"}))
    assert made.findings == []
    assert made.counts.at_least_once == 1


# -- rounds ----------------------------------------------------------------------------------------


def test_what_an_output_does_not_show_yet_is_waited_for(trace: Trace) -> None:
    made, late = Verification(), trace.fired.pop()
    assert not made.round(trace, final=False)
    trace.fired.append(late)
    assert made.round(trace, final=False)
    assert made.findings == []
    assert made.counts.fires == len(trace.fired)


def test_a_later_run_goes_on_from_where_the_last_one_was(trace: Trace) -> None:
    whole = trace.changelog
    made = Verification()
    for end in (60, 61, 130, len(whole)):
        trace.changelog = whole[:end]
        # Half a transaction at the end is one that is not committed yet, as far as it goes.
        while not trace.changelog[-1].key.startswith(MANIFEST_KEY):
            trace.changelog.pop()
        made.round(trace)
        stored = made.standing
        made = Verification(memory=made.memory, counts=made.counts, standing=stored)
        made.seen = len(trace.fired), len(trace.told)
        made.outputs.round = 2
    assert made.findings == []
    assert made.counts.fires == len(trace.fired)
    assert made.counts.checked == made.counts.transactions


def test_a_pair_that_still_lies_there_shows_that_nothing_was_removed(trace: Trace) -> None:
    """After a roll-back offsets are missing; compaction or not is told by what else is there."""
    cut = len(trace.changelog) - 20
    while not trace.changelog[cut - 1].key.startswith(MANIFEST_KEY):
        cut -= 1
    rest = [each._replace(offset=each.offset + 7) for each in trace.changelog[cut:]]
    for holds, blind in ((True, 0), (False, 1)):
        made = Verification()
        made.round(Trace(trace.changelog[:cut], trace.fired, trace.told))
        later = Trace(trace.changelog[:cut] + rest, trace.fired, trace.told)
        made.round(later, pair_holds=holds)
        assert made.findings == []
        assert min(made.counts.compacted, 1) == blind
