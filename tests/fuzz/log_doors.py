"""Doors of what lies in Kafka and on disk, and of what its brokers answer.

members   what a member of the group says, and what a leader answers: never an error
rows      a record of the changelog: folded, or refused for its format or as a hole
answers   a broker's answer to a request of the writer: read whole, or no answer at all
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Final

from belfry.balance.assignment import Assignment, own_parts, read_answer
from belfry.balance.assignment_map import MemberMetadata, read_metadata
from belfry.balance.heartbeat import read_heartbeat
from belfry.balance.owners import ASSIGNERS
from belfry.balance.shares import shares
from belfry.store.layout.records import UnknownFormat
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore
from belfry.transactions.produce import ProduceAnswer
from tests.unit.engine.driver import T0

Input = Callable[[bytes], None]
PARTITIONS: Final = range(5)


def members() -> Input:
    """What a member says, or is told."""
    return one_member


def one_member(data: bytes) -> None:
    """Whatever one member says, each partition has one owner, and each member is told its part."""
    read_heartbeat(data.decode(errors="replace"))
    told, _ = read_answer(data, "other")
    assert Assignment.encode(told)
    said = {"odd": read_metadata(data, "odd"), "fine": MemberMetadata("fine", heartbeats=True)}
    members = [each.member(name) for name, each in said.items()]
    for assigner in ASSIGNERS.values():
        found = shares(PARTITIONS, members, assigner, dict.fromkeys(PARTITIONS, 1))
        assert sorted(p for share in found.values() for p in share.owns) == [*PARTITIONS]
        for part in own_parts(said, found).values():
            assert read_answer(part.encode(), "x")[0] == part


def rows() -> Input:
    """A key, as long as the first byte says, and a value; nothing for a tombstone."""
    return one_row


def one_row(data: bytes) -> None:
    """A row that is folded, a second time alike; or one of the errors that say what is wrong."""
    size = data[0] if data else 0
    key, value = data[1 : 1 + size], data[1 + size :]
    states = []
    for _ in range(2):
        rows = MemoryMap()
        replay = Replay(ScheduleStore(rows))
        try:
            replay.apply([(key, value or None)], [0], T0)
            replay.finish(T0)
        except (UnknownFormat, HoleInChangelog):
            return
        states.append(list(rows.scan(b"", b"\xff")))
    assert states[0] == states[1]


def answers() -> Input:
    """An answer of a leader to a Produce."""
    return one_answer


def one_answer(data: bytes) -> None:
    """Its partitions, of which there are no more than its bytes allow; or it is cut off."""
    with suppress(struct.error, ValueError, IndexError):
        found = ProduceAnswer.decode(BytesIO(data))
        assert len(found.answers) * 30 <= len(data)
