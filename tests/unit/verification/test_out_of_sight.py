"""Fires that no output shows any more, and orders that only an output tells."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.verification.findings import Breach
from belfry.verification.rows import digest_of
from tests.unit.engine.driver import FIRED, HOUR, T0
from tests.unit.verification.planted import TOPIC, came_out, rewritten
from tests.unit.verification.trace import Recording, Trace, varied, verified

DEMO: Final = FIRED + "demo"


def ambiguous(fires: int) -> Trace:
    """Three schedules leave no marker, one of them was cancelled, and so many have fired."""
    driver = Recording()
    driver.apply(remember_ms=0)
    for name in ("a", "b", "c"):
        driver.ask(schedule_id=name, at=T0 + 500)
    driver.step(T0)
    if fires < 3:
        driver.ask(schedule_id="c", action="CANCEL")
    driver.step(T0 + 500, at_most=fires)
    assert len(driver.trace.fired) == fires
    driver.trace.fired.clear()
    driver.trace.told.clear()
    return driver.trace


@pytest.mark.parametrize("fires", [2, 3])
@pytest.mark.parametrize("floor_ms", [T0 + 500, T0 + 499, None])
def test_each_fire_that_cannot_be_seen_is_counted_once(fires: int, floor_ms: int | None) -> None:
    """The topic holds nothing up to the transaction's instant, or is not read, or would show it."""
    made = verified(ambiguous(fires), floors={} if floor_ms is None else {DEMO: floor_ms})
    counts = made.counts
    if floor_ms == T0 + 499:
        lost = [Breach.LOST] * 3 if fires == 3 else [Breach.COUNT]
        assert [each.breach for each in made.findings] == lost
        return
    assert made.findings == []
    unread, gone = (fires, 0) if floor_ms is None else (0, fires)
    assert (counts.output_unread, counts.output_gone) == (unread, gone)
    # All three have the digest of the manifest; which two of three have fired nobody can say.
    assert counts.order_unknown == (fires == 2)
    assert counts.digests == counts.checked - counts.order_unknown


def test_an_output_partition_that_holds_all_fires_tells_their_order() -> None:
    """The row of what stands for a late run may lie before those of earlier fires."""
    driver = Recording()
    rule: dict[str, Any] = {"kind": "EVERY", "interval_ms": 1_000, "start_at": T0 + 1_000}
    names = [f"s{number}" for number in range(8)]
    for name in names:
        driver.ask(schedule_id=name, **rule, misfire="FIRE_ONCE", max_lateness_ms=0)
    driver.step(T0)
    driver.step(T0 + 9_500)
    trace = driver.trace
    assert len(trace.fired) == len(names)
    assert len({each.spot.partition for each in trace.fired}) == 1
    identities = [each.identity for each in trace.fired]
    assert identities != sorted(identities)
    rows = [at for at, each in enumerate(trace.changelog) if each.key[:1] != b"\0"][-8:]
    offsets = [trace.changelog[at].offset for at in rows]
    turned = [trace.changelog[at] for at in reversed(rows)]
    for at, offset, row in zip(rows, offsets, turned, strict=True):
        trace.changelog[at] = row._replace(offset=offset)
    made = verified(trace)
    assert made.findings == []
    assert made.counts.unchecked() == {}
    assert made.counts.digests == made.counts.checked


def test_an_event_of_a_cancelled_schedule_under_an_id_that_it_never_had_is_anybodys() -> None:
    trace = varied()
    came_out(trace, b"gone", T0 + HOUR, bytes(16))
    (found,) = verified(trace, floors={TOPIC: -1}).findings
    assert found.breach is Breach.UNASKED


def test_extra_fires_are_found_whichever_version_they_had_in_their_transaction() -> None:
    """Rows tell of the last version alone; each TRIGGER fired the one that was there before it."""
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + HOUR)
    driver.ask(schedule_id="quiet", at=T0 + HOUR)
    driver.step(T0)
    for number in range(4):
        driver.ask(schedule_id="a", action="TRIGGER")
        driver.ask(schedule_id="a", at=T0 + HOUR + number + 1)
    # One that no row of the transaction tells of, and one that begins and ends within it.
    driver.ask(schedule_id="quiet", action="TRIGGER")
    driver.ask(schedule_id="short", at=T0 + HOUR)
    driver.ask(schedule_id="short", action="TRIGGER")
    driver.ask(schedule_id="short", action="CANCEL")
    driver.step(T0 + 1_000)
    assert len(driver.trace.fired) == 6
    made = verified(driver.trace)
    assert made.findings == []
    assert made.counts.fires == 6


def test_what_a_trigger_fired_may_be_gone_like_all_else() -> None:
    """No row tells of it, and so nothing but the number in the manifest."""
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + HOUR)
    driver.step(T0)
    driver.ask(schedule_id="a", action="TRIGGER")
    driver.step(T0 + 1_000)
    driver.trace.fired.clear()
    driver.trace.told.clear()
    made = verified(driver.trace, floors={TOPIC: T0 + 30_000})
    assert made.findings == []
    assert made.counts.output_gone == 1
    (found,) = verified(driver.trace, floors={TOPIC: T0 + 999}).findings
    assert found.breach is Breach.COUNT


def test_what_requests_did_not_ask_for_is_not_gone() -> None:
    driver = Recording()
    driver.ask(schedule_id="a", kind="EVERY", interval_ms=1_000)
    driver.run(T0)
    driver.step(T0)
    driver.step(T0 + 1_000)
    rewritten(driver.trace, -1, fired=2)
    (found,) = verified(driver.trace, floors={TOPIC: T0 + 30_000}).findings
    assert found.breach is Breach.COUNT


def test_several_fires_of_a_schedule_whose_id_has_slashes_are_found() -> None:
    driver = Recording()
    driver.ask(schedule_id="eu/orders/7", kind="EVERY", interval_ms=100, misfire="FIRE_ALL")
    driver.step(T0)
    driver.step(T0 + 350)
    assert len(driver.trace.fired) == 3
    made = verified(driver.trace)
    assert (made.findings, made.counts.fires) == ([], 3)


REPEATS: Final = frozenset({"demo"})


def rolled_back_amid(*, other_fires: bool) -> Trace:
    """A step leaves two events of `a` and is rolled back; then `a` is cancelled before it fires.

    Producing without a transaction leaves them (AT_LEAST_ONCE), and an owner that takes over takes
    in what lies in the log before it fires.
    """
    driver = Recording()
    driver.ask(schedule_id="a", kind="EVERY", interval_ms=100, misfire="FIRE_ALL")
    driver.ask(schedule_id="b", at=T0 + 50)
    driver.step(T0)
    torn = driver.step(T0 + 250, commit=False)
    assert torn.ids == ["b", "a", "a"]
    torn.effects.fired[:] = torn.effects.fired[1:]
    driver.trace.came_out(torn.effects, T0 + 250)
    driver.ask(schedule_id="a", action="CANCEL")
    driver.step(T0 + 250, at_most=1, fire=other_fires)
    return driver.trace


@pytest.mark.parametrize("other_fires", [False, True])
def test_events_of_a_step_that_was_rolled_back_are_no_fires_of_the_next(other_fires: bool) -> None:
    made = verified(rolled_back_amid(other_fires=other_fires), tenants_that_repeat=REPEATS)
    assert made.findings == []
    assert (made.counts.fires, made.counts.at_least_once) == (int(other_fires), 2)
    assert made.counts.digests == made.counts.checked


def test_such_events_are_found_where_each_has_to_come_once() -> None:
    (found,) = verified(rolled_back_amid(other_fires=False)).findings
    assert (found.breach, found.expected) == (Breach.COUNT, "2, by rows and outputs")


def test_events_that_may_repeat_count_as_far_as_the_manifest_has_room() -> None:
    """The owner fires one of the two once more, and only then takes the request in."""
    trace = rolled_back_amid(other_fires=False)
    rewritten(trace, -1, fired=1, digest=digest_of([trace.fired[1].identity]))
    made = verified(trace, tenants_that_repeat=REPEATS)
    assert made.findings == []
    assert (made.counts.at_least_once, made.counts.order_unknown) == (1, 0)
    assert made.counts.digests == made.counts.checked
