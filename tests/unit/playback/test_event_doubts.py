"""What there is to doubt where an event has other bytes: whose turn it was, or nothing at all."""

from __future__ import annotations

from belfry.playback.comparing import StepDifference
from belfry.playback.doubts import HELD_BACK, POLICIES, TAKEN_OVER, UNREMEMBERED
from tests.unit.engine.driver import HOUR, T0
from tests.unit.playback.test_doubts import behind_a_lock
from tests.unit.playback.trail import Leaving, play


def last_event_differs(trail: Leaving, *, compacted: bool = False) -> StepDifference:
    """What a playback says of a trail whose last event has one byte more."""
    identity, (topic, key, at_ms, value, headers) = trail.events[-1]
    trail.events[-1] = identity, (topic, key, at_ms, (value or b"") + b"!", headers)
    found = play(trail, compacted=compacted).differs
    assert found is not None
    assert (found.what, found.name) == ("event", identity.decode())
    return found


def fire(trail: Leaving, **policy: int) -> None:
    """One event of a tenant, under a policy."""
    trail.set(T0 - HOUR, tenant="quick", **policy)
    trail.ask(T0 + 700, tenant="quick", schedule_id="s", at=T0 + 800, payload=b"p")
    trail.step(T0 + 700)
    assert trail.step(T0 + 800).ids == ["s"]


def test_an_event_whose_row_tells_its_instant_differs_whatever_is_held_back() -> None:
    trail = behind_a_lock()
    fire(trail)
    assert last_event_differs(trail).doubt == ""


def test_it_is_in_doubt_where_its_step_fits_whatever_an_owner_had_found() -> None:
    trail = behind_a_lock()
    trail.own(T0 + 600)
    fire(trail)
    assert last_event_differs(trail).doubt == f"{TAKEN_OVER}; {HELD_BACK}"


def test_an_event_that_left_no_row_is_in_doubt_where_something_is_held_back() -> None:
    trail = behind_a_lock()
    fire(trail, remember_ms=0)
    assert last_event_differs(trail).doubt == f"{HELD_BACK}; {UNREMEMBERED}"


def test_it_is_in_doubt_as_well_how_much_an_owner_found_that_took_over() -> None:
    trail = behind_a_lock()
    trail.own(T0 + 600)
    fire(trail, remember_ms=0)
    assert last_event_differs(trail).doubt == f"{TAKEN_OVER}; {HELD_BACK}; {UNREMEMBERED}"


def test_an_event_that_left_no_row_is_in_less_doubt_where_nothing_waits() -> None:
    trail = Leaving()
    fire(trail, remember_ms=0)
    assert last_event_differs(trail).doubt == UNREMEMBERED
    trail = Leaving()
    fire(trail)
    assert last_event_differs(trail).doubt == ""


def test_doubts_besides_turns_are_told_one_after_the_other() -> None:
    trail = behind_a_lock()
    trail.set(T0 - HOUR, tenant="quick", remember_ms=0)
    trail.ask(T0 + 700, tenant="quick", schedule_id="s", kind="EVERY", interval_ms=1_000)
    trail.step(T0 + 700)
    assert trail.step(T0 + 1_700).ids == ["s"]
    trail.set(T0 + HOUR, tenant="other")
    assert last_event_differs(trail, compacted=True).doubt == f"{UNREMEMBERED}; {POLICIES}"
