"""Which of several events fired, where a step that was rolled back has left some of them.

`demo` chose AT_LEAST_ONCE, and events of `once` come once.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.verification.findings import Breach
from belfry.verification.leftovers import MOST_TRIED, Place, chosen_by
from belfry.verification.rows import Sealed, digest_of
from tests.unit.engine.driver import FIRED, HOUR, T0
from tests.unit.verification.trace import (
    Recording,
    Trace,
    Verification,
    ask_for_job,
    verified,
    work,
)

FLOORS: Final = {FIRED + "demo": -1, FIRED + "once": -1}


def judged(trace: Trace, **given: Any) -> Verification:
    """What a verification finds that knows what each tenant is promised."""
    return verified(trace, floors=FLOORS, tenants_that_repeat=frozenset({"demo"}), **given)


def roll_back(driver: Recording, now_ms: int, *left: str) -> None:
    """Roll a step back that leaves events of these schedules."""
    torn = driver.step(now_ms, commit=False)
    stay = [fired for fired, name in zip(torn.effects.fired, torn.ids, strict=True) if name in left]
    assert len(stay) >= len(left)
    torn.effects.fired[:] = stay
    driver.trace.came_out(torn.effects, now_ms)


def cancelled_beside_a_trigger() -> Recording:
    """`a` fired in a step that was rolled back, and is cancelled; `x` is TRIGGERed by the way."""
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + 50)
    driver.ask(tenant="once", schedule_id="x", at=T0 + HOUR)
    driver.step(T0)
    roll_back(driver, T0 + 100, "a")
    driver.ask(schedule_id="a", action="CANCEL")
    driver.ask(tenant="once", schedule_id="x", action="TRIGGER")
    driver.step(T0 + 100, fire=False)
    return driver


def test_what_comes_once_goes_before_what_is_left_behind() -> None:
    made = judged(cancelled_beside_a_trigger().trace)
    assert made.findings == []
    assert (made.counts.at_least_once, made.counts.digests) == (1, made.counts.checked)


def test_a_fire_that_is_lost_is_not_made_up_for_by_what_is_left_behind() -> None:
    """The number is right with the event of `a`, and the digest says that it was another one."""
    trace = cancelled_beside_a_trigger().trace
    trace.fired = [each for each in trace.fired if each.schedule_id != b"x"]
    trace.told = []
    (found,) = judged(trace).findings
    assert found.breach is Breach.DIGEST


def test_a_trigger_that_is_refused_behind_a_roll_back_is_no_fire() -> None:
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + 100)
    driver.ask(tenant="once", schedule_id="x", at=T0 + HOUR)
    driver.step(T0)
    driver.ask(schedule_id="a", action="TRIGGER")
    driver.ask(tenant="once", schedule_id="x", action="TRIGGER")
    roll_back(driver, T0 + 10, "a")
    assert driver.step(T0 + 200).ids == ["a", "x"]
    made = judged(driver.trace)
    assert made.findings == []
    assert (made.counts.at_least_once, made.counts.digests) == (1, made.counts.checked)


def test_a_late_run_that_was_rolled_back_is_not_the_one_that_was_done() -> None:
    """Both have one number, and each stands for the last instant that was missed by then."""
    driver = Recording()
    driver.ask(schedule_id="a", kind="EVERY", interval_ms=100, max_lateness_ms=0)
    driver.step(T0)
    roll_back(driver, T0 + 150, "a")
    driver.step(T0 + 450)
    left, fired = driver.trace.fired
    assert left.occurrence == fired.occurrence
    assert left.identity != fired.identity
    made = judged(driver.trace)
    assert made.findings == []
    assert (made.counts.at_least_once, made.counts.digests) == (1, made.counts.checked)


def test_an_event_that_was_left_behind_under_a_later_number_is_found_under_its_own() -> None:
    """The step that was rolled back fired two; by the next one the first of them is missed."""
    driver = Recording()
    rule: dict[str, Any] = {"kind": "EVERY", "interval_ms": 100, "start_at": T0 + 100}
    driver.ask(schedule_id="a", **rule, misfire="SKIP", max_lateness_ms=150)
    driver.step(T0)
    roll_back(driver, T0 + 210, "a", "a")
    assert driver.step(T0 + 290).ids == ["a"]
    fired = driver.trace.fired
    assert [each.occurrence for each in fired] == [0, 1, 0]
    assert fired[1].identity == fired[2].identity
    made = judged(driver.trace)
    assert made.findings == []
    assert made.counts.digests == made.counts.checked


def test_a_digest_that_no_event_explains_is_found_in_spite_of_others() -> None:
    """One event of this number is there, and it is not the one that fired."""
    driver = Recording()
    driver.ask(schedule_id="a", kind="EVERY", interval_ms=100, max_lateness_ms=0)
    driver.step(T0)
    roll_back(driver, T0 + 150, "a")
    driver.step(T0 + 450)
    del driver.trace.fired[1]
    driver.trace.told.clear()
    (found,) = judged(driver.trace).findings
    assert found.breach is Breach.DIGEST


@pytest.mark.parametrize("number", range(6))
def test_what_asks_for_a_job_is_no_reason_for_a_fire_in_its_own_step(number: int) -> None:
    """Fires of the job have ids of the same offset, and may come within the same millisecond."""
    driver = Recording()
    for name in "abcdef":
        driver.ask(tenant="once", schedule_id=name, at=T0 + HOUR)
    driver.step(T0)
    ask_for_job(driver, "all", "TRIGGER", "once")
    driver.ask(tenant="once", schedule_id="abcdef"[number], action="TRIGGER")
    driver.step(T0)
    work(driver, T0, 25)
    assert len(driver.trace.fired) == 7
    made = judged(driver.trace)
    assert made.findings == []
    assert made.counts.digests == made.counts.checked


def replaced_beside_a_leftover() -> Recording:
    """`c` fires and is replaced in one step; `a` was left behind, and is cancelled in it."""
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + 60)
    driver.ask(tenant="once", schedule_id="c", kind="EVERY", interval_ms=50)
    driver.step(T0)
    roll_back(driver, T0 + 70, "a")
    driver.ask(schedule_id="a", action="CANCEL")
    driver.ask(tenant="once", schedule_id="c", at=T0 + HOUR)
    assert driver.step(T0 + 70, at_most=1).ids == ["c"]
    return driver


def test_a_fire_that_is_lost_is_named_where_the_digest_knows_it() -> None:
    trace = replaced_beside_a_leftover().trace
    assert judged(trace).findings == []
    (lost,) = [each for each in trace.fired if each.schedule_id == b"c"]
    trace.fired.remove(lost)
    trace.told = []
    (found,) = judged(trace).findings
    assert (found.breach, found.expected) == (
        Breach.LOST,
        f"an event with the id {lost.identity.hex()}",
    )


IDS: Final = [bytes([number]) * 16 for number in range(40)]


def sealed(*fired: bytes) -> Sealed:
    return Sealed(1, 1, 0, 0, 0, len(fired), digest_of([*fired]))


def test_the_digest_chooses_among_events_in_the_order_of_their_places() -> None:
    a, b, c, d = IDS[:4]
    places = [Place((a,)), Place((b, None)), Place((c, d)), Place((None, b))]
    assert chosen_by(sealed(a, d, b), places) == [a, d, b]
    assert chosen_by(sealed(a, b, c), places) == [a, b, c]
    assert chosen_by(sealed(a, c), places) == [a, c]
    assert chosen_by(sealed(b, c), places) is None
    assert chosen_by(sealed(d, a), places) is None


def test_only_so_many_beginnings_are_tried() -> None:
    places = [Place((each, None)) for each in IDS]
    assert 2 ** len(places) > MOST_TRIED
    assert chosen_by(sealed(*IDS[:20]), places) == IDS[:20]
    assert chosen_by(sealed(*IDS[20:]), places) is None
