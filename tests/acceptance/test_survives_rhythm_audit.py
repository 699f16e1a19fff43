"""The auditor of recurring schedules is awake: doctored evidence gives its finding, true none.

nominal  1000  2000  3000  4000  5000 … 8000      interval 1 000 ms, asked for at 0
fired      ●     ●                 ●  …   ●       number 2 stands for the occurrences of
MISSED                └── 2 ──┘                   3000 and 4000, which were late at 5 400
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.rhythm_audit import (
    RHYTHM_INVARIANTS,
    RhythmEvidence,
    audit_rhythms,
)
from tests.acceptance.harness.rhythms import AWAITED, HOOKED, LOOSE, PLAIN, Asked, Rhythm

EPOCH_MS = 1_800_000_000_000
FIRES = (1_000, 2_000, 5_000, 6_000, 7_000, 8_000)


def rfc3339(ms: int) -> str:
    whole = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{ms % 1000:03d}Z"


def fire(number: int, nominal_ms: int, missed: int = 0) -> Record:
    nominal = EPOCH_MS + nominal_ms
    headers: list[tuple[str, bytes | None]] = [
        ("belfry-fire-id", b"f%d" % nominal_ms),
        ("belfry-schedule-id", b"beat"),
        ("belfry-scheduled-at", rfc3339(nominal).encode()),
        ("belfry-occurrence", b"%d" % number),
    ]
    if missed:
        headers.append(("belfry-missed", b"%d" % missed))
    late_ms = 400 if missed else 20
    return Record("fired." + PLAIN, 0, number, nominal + late_ms, b"beat", b"0", headers)


def event(outcome: str, at_ms: int, request_id: str | None = None, **more: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "tenant": PLAIN,
        "schedule_id": "beat",
        "code": None,
        "reason": None,
        "fire_id": None,
    }
    told = {"outcome": outcome, "request_id": request_id, "appended_ms": EPOCH_MS + at_ms}
    known["at"] = datetime.fromtimestamp((EPOCH_MS + at_ms) / 1000, UTC)
    return {**known, **told, **more}


def missed(number: int, first_ms: int, at_ms: int, fires_ms: int = 5_000) -> dict[str, Any]:
    first, one = rfc3339(EPOCH_MS + first_ms), rfc3339(EPOCH_MS + fires_ms)
    reason = f"{number} occurrences did not fire, from {first} on: the one of {one} fires for them"
    return event("MISSED", at_ms, reason=reason, code="late")


@pytest.fixture
def evidence() -> RhythmEvidence:
    """What is as it should be."""
    rhythm = Rhythm("ask", PLAIN, "beat", "EVERY", 1_000, "FIRE_ONCE", 500)
    rhythm.appended_ms, rhythm.end_ms = EPOCH_MS, EPOCH_MS + 8_400
    rhythm.later = [Asked("again", "TRIGGER", EPOCH_MS + 1_500)]
    extra = fire(-1, 1_600)
    fired = [fire(n, at, 2 if at == 5_000 else 0) for n, at in enumerate(FIRES)]
    told = [
        event("ACCEPTED", 10, "ask"),
        event("TRIGGERED", 1_600, "again"),
        missed(2, 3_000, 5_400),
        event("COMPLETED", 8_020),
        *(event("FIRED", at_ms + 20, fire_id=f"f{at_ms}") for at_ms in FIRES),
    ]
    return RhythmEvidence([rhythm], {}, [*fired, extra], told)


def found(evidence: RhythmEvidence) -> set[str]:
    return {finding.invariant for finding in audit_rhythms(evidence)}


def test_true_evidence_gives_no_finding(evidence: RhythmEvidence) -> None:
    assert audit_rhythms(evidence) == []


@pytest.mark.parametrize("fires_ms", [3_000, 4_000, 5_000])
def test_the_one_that_fires_may_be_any_of_its_run(evidence: RhythmEvidence, fires_ms: int) -> None:
    """Of a group with jitter it is the one that is due last."""
    evidence.fired[2] = fire(2, fires_ms, 2)
    evidence.lifecycle[2] = missed(2, 3_000, 5_600, fires_ms)
    evidence.lifecycle[6]["fire_id"] = f"f{fires_ms}"
    assert audit_rhythms(evidence) == []


def refuse(e: RhythmEvidence) -> None:
    e.lifecycle[0]["outcome"] = "REJECTED"


def forget_the_verdict(e: RhythmEvidence) -> None:
    del e.lifecycle[1]


def shift_an_instant(e: RhythmEvidence) -> None:
    e.fired[3] = fire(3, 6_001)


def repeat_a_record(e: RhythmEvidence) -> None:
    e.fired.append(fire(3, 6_000))


def give_up_what_fired(e: RhythmEvidence) -> None:
    e.lifecycle[2] = missed(3, 3_000, 5_600)


def lose_a_record(e: RhythmEvidence) -> None:
    del e.fired[4]


def give_up_too_soon(e: RhythmEvidence) -> None:
    e.lifecycle[2]["appended_ms"] = EPOCH_MS + 4_100


def stand_for_too_many(e: RhythmEvidence) -> None:
    e.fired[2] = fire(2, 5_000, 4)


def number_anew(e: RhythmEvidence) -> None:
    e.fired[5] = fire(0, 8_000)


def hurry(e: RhythmEvidence) -> None:
    e.fired[1].timestamp_ms = EPOCH_MS + 1_990


def cancel_before(e: RhythmEvidence) -> None:
    e.rhythms[0].later.append(Asked("stop", "CANCEL", EPOCH_MS + 6_500))
    e.lifecycle.append(event("CANCELLED", 6_500, "stop"))


def pause_over_it(e: RhythmEvidence) -> None:
    e.rhythms[0].later += [
        Asked("halt", "PAUSE", EPOCH_MS + 5_500),
        Asked("go", "RESUME", EPOCH_MS + 7_500),
    ]
    e.lifecycle += [event("PAUSED", 5_500, "halt"), event("RESUMED", 7_500, "go")]


def end_early(e: RhythmEvidence) -> None:
    del e.fired[5]


def complete_twice(e: RhythmEvidence) -> None:
    e.lifecycle.append(event("COMPLETED", 9_000))


def trigger_nothing(e: RhythmEvidence) -> None:
    e.fired.pop()


def answer_no_fire(e: RhythmEvidence) -> None:
    e.rhythms[0].tenant, e.rhythms[0].ack_timeout_ms = AWAITED, 3_000


def deliver_nothing(e: RhythmEvidence) -> None:
    e.rhythms[0].tenant, e.hooked = HOOKED, True


def invent(e: RhythmEvidence) -> None:
    e.fired[0].headers[1] = ("belfry-schedule-id", b"nobody asked")


def change_the_payload(e: RhythmEvidence) -> None:
    e.fired[3].value = b"another"


def tell_of_no_fire(e: RhythmEvidence) -> None:
    e.lifecycle.pop()


@pytest.mark.parametrize(
    ("doctor", "invariant"),
    [
        (refuse, "refused"),
        (forget_the_verdict, "unanswered"),
        (shift_an_instant, "off_beat"),
        (invent, "off_beat"),
        (repeat_a_record, "doubled"),
        (give_up_what_fired, "doubled"),
        (lose_a_record, "uncovered"),
        (give_up_too_soon, "hasty"),
        (stand_for_too_many, "missed"),
        (number_anew, "numbers"),
        (hurry, "early"),
        (cancel_before, "ended"),
        (pause_over_it, "paused"),
        (end_early, "incomplete"),
        (complete_twice, "incomplete"),
        (trigger_nothing, "trigger"),
        (answer_no_fire, "overlap"),
        (deliver_nothing, "hook"),
        (change_the_payload, "content"),
        (tell_of_no_fire, "told"),
    ],
)
def test_doctored_evidence_gives_the_finding(
    evidence: RhythmEvidence, doctor: Callable[[RhythmEvidence], None], invariant: str
) -> None:
    doctored = deepcopy(evidence)
    doctor(doctored)
    assert invariant in found(doctored)


def test_a_record_may_be_repeated_where_at_least_once_is_asked_for(
    evidence: RhythmEvidence,
) -> None:
    evidence.rhythms[0].tenant = LOOSE
    repeat_a_record(evidence)
    assert audit_rhythms(evidence) == []


def test_a_record_that_a_crash_left_behind_may_be_given_up_where_at_least_once_is_asked_for(
    evidence: RhythmEvidence,
) -> None:
    """The record of 4 000 left, its transaction did not end, and a late run stood for it."""
    left = fire(2, 4_000)
    evidence.fired.append(left)
    assert {"doubled", "told"} <= found(evidence)
    evidence.rhythms[0].tenant = LOOSE
    assert audit_rhythms(evidence) == []


def test_what_waits_goes_on_with_its_acknowledgement(evidence: RhythmEvidence) -> None:
    answer_no_fire(evidence)
    for at_ms in FIRES:
        name = f"ack {at_ms}"
        evidence.acks[f"f{at_ms}"] = Asked(name, "ACK", EPOCH_MS + at_ms)
        evidence.lifecycle.append(event("UPDATED", at_ms + 100, name))
    assert audit_rhythms(evidence) == []


@pytest.mark.parametrize(("timeout_ms", "overlaps"), [(500, False), (900, False), (1_700, True)])
def test_a_time_out_counts_from_when_it_fired_and_not_from_when_it_was_appended(
    evidence: RhythmEvidence, timeout_ms: int, overlaps: bool
) -> None:
    """A busy broker appends the first one 900 ms late, and the second one at once."""
    evidence.rhythms[0].tenant, evidence.rhythms[0].ack_timeout_ms = AWAITED, timeout_ms
    evidence.fired[0].timestamp_ms += 900
    assert ("overlap" in found(evidence)) is overlaps


def test_a_word_of_when_it_fired_that_cannot_be_true_counts_for_nothing(
    evidence: RhythmEvidence,
) -> None:
    """Before it was due nothing fires."""
    evidence.rhythms[0].tenant, evidence.rhythms[0].ack_timeout_ms = AWAITED, 1_500
    for told in evidence.lifecycle[-len(FIRES) :]:
        told["at"] -= timedelta(seconds=5)
    assert "overlap" in found(evidence)


def test_each_invariant_has_doctored_evidence() -> None:
    marks: Any = test_doctored_evidence_gives_the_finding
    (mark,) = marks.pytestmark
    assert {invariant for _, invariant in mark.args[1]} == set(RHYTHM_INVARIANTS)
