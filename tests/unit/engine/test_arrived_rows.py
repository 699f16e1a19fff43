"""Rows that cannot be read, or that are not of the group that comes, stop no partition."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.store.layout import keys
from belfry.store.layout.calendars import CALENDAR_PREFIX, HEAD_OF_CALENDAR
from belfry.store.layout.jobs import HEAD_OF_JOB, JOB_PREFIX
from belfry.store.layout.pending import FLAGS_AT, decode_pending, encode_pending
from belfry.store.layout.pending_bytes import DEPENDS, with_flags
from belfry.store.layout.records import HEAD_OF_MARKER, Marker, encode_marker
from belfry.wire.moves import ROWS, MoveRecord, pack_rows
from belfry.wire.record import Headers
from tests.unit.engine.driver import HOUR, T0
from tests.unit.engine.moving_ring import PARTITIONS, MovingRing

# A row that is as it should be, under this key.
GOOD: Final = b"demo/a"
NO_ZONES: Final = b"\0"


def arriving() -> tuple[MovingRing, int, MoveRecord, bytes]:
    """A ring in which a group is on its way, where to, its first record, and a row of it."""
    ring = MovingRing()
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    home = ring.home("demo")
    target = (home + 1) % PARTITIONS
    row = dict(ring.drivers[home].changelog)[GOOD]
    assert row is not None
    ring.move("demo", target)
    ring.step(home)
    ring.step(target)
    group = ring.group("demo")
    move = ring.drivers[target].engine._parts.groups.lies[group].move
    return ring, target, MoveRecord(ROWS, group, target, move), row


@pytest.mark.parametrize(
    ("name", "row"),
    [
        (b"other/a", None),
        (b"other/a", encode_marker(Marker(0, T0, T0, 1, 1, 0))),
        (b"demo/b", None),
        (b"demo/\xff", encode_marker(Marker(0, T0, T0, 1, 1, 0))),
        (b"demo", None),
        (b"\xff/a", None),
        (b"/a", None),
        (b"\0z", None),
        (b"\0m\0\0\0\1", None),
        (GOOD, b""),
        (GOOD, b"\1"),
        (GOOD, b"\x09\1" + bytes(90)),
        (GOOD, HEAD_OF_MARKER + b"\0"),
        (keys.REQUEST_PREFIX + GOOD, None),
        (keys.REQUEST_PREFIX + GOOD, HEAD_OF_MARKER + bytes(60)),
        (keys.AWAITED_PREFIX + GOOD, HEAD_OF_MARKER),
        (JOB_PREFIX + GOOD, HEAD_OF_JOB + b"{}"),
        (CALENDAR_PREFIX + GOOD, HEAD_OF_CALENDAR + b"{"),
        (CALENDAR_PREFIX + GOOD, HEAD_OF_CALENDAR + b"[]"),
        (CALENDAR_PREFIX + GOOD, HEAD_OF_CALENDAR + b'{"days": ""}'),
    ],
)
def test_a_row_that_does_not_belong_there_is_refused(name: bytes, row: bytes | None) -> None:
    """None: the row of demo/a, under this key.  What the source sends then comes as it should."""
    ring, target, said, good = arriving()
    odd = name, good if row is None else row
    ring.sign(target, said._replace(body=NO_ZONES + pack_rows([(GOOD, good), odd])))
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.at_rest()
    assert ring.pending()[target] == 1 == sum(ring.pending())
    assert odd not in ring.drivers[target].changelog
    ring.kill(target)
    ring.now_ms += HOUR
    ring.settle()
    assert [shot.id for shot in ring.shots] == ["a"]


def test_rows_of_one_sequence_or_of_no_instant_are_refused() -> None:
    """Two schedules of one instant and sequence would lie in one place."""
    ring, target, said, good = arriving()
    row = decode_pending(good)
    twin = encode_pending(row._replace(schedule_id=b"b"))
    bodies = [pack_rows([(GOOD, good), (b"demo/b", twin)])]
    bodies += [pack_rows([(GOOD, encode_pending(row._replace(due_ms=ms)))]) for ms in (-1, 2**60)]
    for body in bodies:
        ring.sign(target, said._replace(body=NO_ZONES + body))
    ring.settle()
    assert ring.refused == ["bad_move"] * 3
    assert ring.pending()[target] == 1 == sum(ring.pending())


@pytest.mark.parametrize("body", [b"\4abc", b"\2\xff\xff", b"\0\0\0", b"\0" + b"\xff" * 8])
def test_a_body_that_was_cut_is_refused(body: bytes) -> None:
    ring, target, said, _ = arriving()
    ring.sign(target, said._replace(body=body))
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[target] == 1 == sum(ring.pending())


def test_each_cut_of_a_row_that_waits_is_refused_or_taken_for_less() -> None:
    """No cut of a true row stops the partition."""
    for size in range(0, 200, 3):
        ring, target, said, good = arriving()
        ring.sign(target, said._replace(body=NO_ZONES + pack_rows([(GOOD, good[:size])])))
        ring.settle()
        assert set(ring.refused) <= {"bad_move"}


def test_a_request_too_large_to_follow_its_group_is_refused_by_its_id() -> None:
    ring = MovingRing()
    home = ring.home("demo")
    target = (home + 1) % PARTITIONS
    ring.ask("demo", schedule_id="a", at=T0 + HOUR)
    ring.settle()
    ring.move("demo", target)
    ring.step(home)
    ring.step(target)
    ring.step(home)
    # Its value is the payload, so it may be as large as a record.
    said = {"tenant": b"demo", "id": b"big", "in": b"1h", "request-id": b"r-big"}
    headers: Headers = [(f"belfry-{name}", value) for name, value in said.items()]
    ring.drivers[home].send(b"x" * 1_000_001, b"demo", headers, ring.now_ms)
    ring.ask("demo", schedule_id="b", at=T0 + HOUR, request_id="r-b")
    ring.settle()
    assert ring.at_rest()
    found = {each.request_id: each for each in ring.told if each.request_id}
    refused = found["r-big"]
    assert (refused.tenant, refused.schedule_id, refused.outcome, refused.code) == (
        "demo", "big", "REJECTED", "request_too_large",
    )  # fmt: skip
    assert "1000000" in (refused.reason or "")
    assert found["r-b"].outcome == "ACCEPTED"
    assert ring.pending()[target] == 2 == sum(ring.pending())


def test_a_schedule_that_waits_for_nobody_that_it_names_is_refused() -> None:
    """It would lie behind a lock without a name."""
    ring, target, said, good = arriving()
    odd = with_flags(good, good[FLAGS_AT] | DEPENDS)
    ring.sign(target, said._replace(body=NO_ZONES + pack_rows([(GOOD, odd)])))
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[target] == 1 == sum(ring.pending())


def test_a_schedule_of_an_instant_that_no_header_can_tell_is_refused() -> None:
    ring, target, said, good = arriving()
    odd = encode_pending(decode_pending(good)._replace(nominal_ms=253_402_300_800_000))
    ring.sign(target, said._replace(body=NO_ZONES + pack_rows([(GOOD, odd)])))
    ring.settle()
    assert ring.refused == ["bad_move"]
    assert ring.pending()[target] == 1 == sum(ring.pending())
