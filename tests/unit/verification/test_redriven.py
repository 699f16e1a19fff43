"""What redrives write is no second event and no second refusal; twice by one redrive it is one."""

from __future__ import annotations

import pytest

from belfry.client.refusals import refused_request
from belfry.verification.findings import Breach, Spot
from belfry.verification.headers import COPY_HEADER, marked_by, origin_of
from belfry.wire.headers import REDRIVEN
from belfry.wire.record import Headers
from tests.unit.engine.driver import T0
from tests.unit.verification.planted import TOPIC
from tests.unit.verification.trace import MemoryInProcess, Trace, Verification, varied

REJECTED = "belfry.rejected"
# A user's headers may have belfry's names: what belfry says comes last.
REFUSED: Headers = [
    ("belfry-error-redriven", b"41"),
    ("belfry-error-code", b"too_many_pending"),
    ("belfry-error-topic", b"belfry.schedules"),
    ("belfry-error-partition", b"0"),
    ("belfry-error-offset", b"7"),
]


@pytest.fixture
def trace() -> Trace:
    return varied()


def redriven(trace: Trace, mark: bytes, offset: int, *, first: int = 3) -> Verification:
    """A verification that has read a copy of an event, and all else."""
    made = Verification()
    made.round(trace)
    copy = trace.fired[first]._replace(spot=Spot(TOPIC, 1, offset), timestamp_ms=T0)
    made.outputs.copied(copy, mark)
    made.round(trace)
    return made


def test_the_header_of_a_copy_is_the_one_of_redrives() -> None:
    assert COPY_HEADER == REDRIVEN


def test_a_copy_of_an_event_is_no_second_event(trace: Trace) -> None:
    made = redriven(trace, b"monday@3", 900)
    assert made.findings == []
    assert made.counts.copies == 1
    assert made.counts.outputs == len(trace.fired) + 1
    assert made.counts.unchecked() == {}


def test_a_mark_that_is_no_text_is_one_all_the_same(trace: Trace) -> None:
    made = redriven(trace, b"\xff@3", 900)
    made.outputs.copied(trace.fired[3]._replace(spot=Spot(TOPIC, 1, 901)), b"\xff@3")
    assert [each.found for each in made.findings] == [
        f"belfry-redriven \ufffd@3 in {TOPIC}/1, as at {TOPIC}/1@900"
    ]


def test_marks_and_refusals_are_remembered_with_their_time(trace: Trace) -> None:
    """By it they are forgotten, once their topic has."""

    class Timed(MemoryInProcess):
        def add_once(self, what: str, spot: Spot, timestamp_ms: int) -> tuple[Spot, int] | None:
            times.append(timestamp_ms)
            return super().add_once(what, spot, timestamp_ms)

    times: list[int] = []
    made = Verification(memory=Timed())
    made.outputs.copied(trace.fired[3]._replace(timestamp_ms=T0 + 1), b"monday@3")
    made.outputs.refused("belfry.schedules/0@7", Spot(REJECTED, 0, 1), T0 + 2)
    made.outputs.marked(f"{REJECTED}/0@1", Spot(REJECTED, 0, 2), T0 + 3)
    assert times == [T0 + 1, T0 + 2, T0 + 3]


def test_another_redrive_and_another_event_are_no_second_copy(trace: Trace) -> None:
    made = redriven(trace, b"monday@3", 900)
    for mark, partition in ((b"tuesday@3", 1), (b"monday@4", 1), (b"monday@3", 0)):
        spot = Spot(TOPIC, partition, 901)
        made.outputs.copied(trace.fired[3]._replace(spot=spot), mark)
    # And one that is read again, as after a round that was cut short.
    made.outputs.copied(trace.fired[3]._replace(spot=Spot(TOPIC, 1, 900)), b"monday@3")
    assert made.findings == []


def test_a_second_copy_under_one_name_is_found(trace: Trace) -> None:
    made = redriven(trace, b"monday@3", 900)
    made.outputs.copied(trace.fired[3]._replace(spot=Spot(TOPIC, 1, 901)), b"monday@3")
    [found] = made.findings
    assert (found.breach, found.spot.offset) == (Breach.REDRIVEN_TWICE, 901)
    assert "monday@3" in found.found
    assert f"{TOPIC}/1@900" in found.found


def test_a_second_event_without_the_header_is_found_beside_a_copy(trace: Trace) -> None:
    made = redriven(trace, b"monday@3", 900)
    made.outputs.fired(trace.fired[3]._replace(spot=Spot(TOPIC, 1, 901)))
    assert [each.breach for each in made.findings] == [Breach.DOUBLED]


def test_a_copy_whose_event_retention_has_removed_is_counted(trace: Trace) -> None:
    made = Verification()
    made.outputs.copied(trace.fired[3], b"monday@3")
    made.round(trace)
    assert made.counts.copies_alone == 1
    assert len(made.counts.unchecked()) == 1


def refuse(made: Verification, headers: Headers, offset: int) -> None:
    """Let a record of the rejected topic be read, as the shell does."""
    spot, said = Spot(REJECTED, 2, offset), dict(headers)
    refusal = marked_by(said, spot)
    if refusal is not None:
        made.outputs.marked(refusal, spot, T0)
    elif origin := origin_of(said, follows=made.outputs.follows):
        made.outputs.refused(origin, spot, T0)


def mark(offset: int) -> Headers:
    refused = refused_request(REFUSED)
    assert refused is not None
    return refused.mark(f"{REJECTED}/2@{offset}", offset, "quota raised")


def test_the_mark_of_a_refusal_is_no_second_refusal() -> None:
    made = Verification()
    refuse(made, REFUSED, 41)
    refuse(made, mark(41), 57)
    # Redriven, and refused again at another place of the input.
    refuse(made, [*REFUSED[:-1], ("belfry-error-offset", b"9")], 58)
    refuse(made, mark(58), 59)
    assert made.findings == []
    assert (made.counts.refused, made.counts.copies) == (2, 2)


def test_a_second_mark_is_found_and_a_second_refusal_beside_it() -> None:
    made = Verification()
    refuse(made, REFUSED, 41)
    refuse(made, mark(41), 57)
    refuse(made, mark(41), 58)
    refuse(made, REFUSED, 59)
    assert [(each.breach, each.spot.offset) for each in made.findings] == [
        (Breach.REDRIVEN_TWICE, 58),
        (Breach.REFUSED_TWICE, 59),
    ]
    assert f"{REJECTED}/2@41" in made.findings[0].found


def test_a_place_of_two_clusters_is_of_two_requests() -> None:
    """A side that followed another cluster has what both refused at one offset."""
    made = Verification()
    made.outputs.elsewhere_until_ms = T0
    refuse(made, [*REFUSED, ("belfry-error-at", b"2026-12-01T09:00:00.000Z")], 41)
    refuse(made, [*REFUSED, ("belfry-error-at", b"2026-12-01T09:00:07.000Z")], 57)
    assert made.findings == []
    # What was carried and is refused here once more came in at the same instant.
    refuse(made, [*REFUSED, ("belfry-error-at", b"2026-12-01T09:00:00.000Z")], 58)
    assert [(each.breach, each.spot.offset) for each in made.findings] == [
        (Breach.REFUSED_TWICE, 58)
    ]


def test_a_place_of_one_cluster_is_of_one_request() -> None:
    """Brokers' clocks differ, and an earlier release did not tell the instant."""
    made = Verification()
    refuse(made, REFUSED, 41)
    refuse(made, [*REFUSED, ("belfry-error-at", b"2026-12-01T09:00:00.000Z")], 57)
    refuse(made, [*REFUSED, ("belfry-error-at", b"2026-12-01T09:00:00.001Z")], 58)
    assert [each.breach for each in made.findings] == [Breach.REFUSED_TWICE] * 2


def test_what_a_side_did_again_without_its_source_is_counted_and_no_finding() -> None:
    """A mirror carries refusals ahead of their transactions."""
    made = Verification()
    made.outputs.anew_ms = T0 + 5, T0 + 10, T0 + 12
    for offset, at_ms in ((3, T0 + 9), (9, T0 + 13)):
        made.outputs.refused("belfry.schedules/0@7", Spot(REJECTED, 0, offset), at_ms)
    assert (made.findings, made.counts.told_anew) == ([], 1)
    # What was told before the mirror was level was carried with its transaction.
    made.outputs.refused("belfry.schedules/0@6", Spot(REJECTED, 0, 1), T0 + 5)
    made.outputs.refused("belfry.schedules/0@6", Spot(REJECTED, 0, 13), T0 + 13)
    # Both of them before the take-over, or behind it, are found as well.
    made.outputs.refused("belfry.schedules/0@7", Spot(REJECTED, 0, 4), T0 + 9)
    for offset in (11, 12):
        made.outputs.refused("belfry.schedules/0@8", Spot(REJECTED, 0, offset), T0 + 13)
    assert [each.breach for each in made.findings] == [Breach.REFUSED_TWICE] * 3
