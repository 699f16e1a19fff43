"""Anchors are kept as offsets of a group, and never go back to before a recovery."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.kafka.anchors import Anchors, SomeNotKept
from belfry.store.identity import Identity
from tests.unit.kafka.offset_notes import OffsetNotes

FIRST = Identity("cluster-a", "log-1", "in-1", 0)
RECOVERED = FIRST._replace(changelog="log-2", generation=1)


@pytest.fixture
def notes() -> OffsetNotes:
    return OffsetNotes("belfry.identity")


@pytest.fixture
def anchors(notes: OffsetNotes) -> Anchors:
    kept: Any = notes
    return Anchors(kept)


def test_what_is_written_is_read(anchors: Anchors) -> None:
    assert anchors.read(0) is None
    assert anchors.write({0: FIRST, 2: RECOVERED}) == {}
    assert [anchors.read(number) for number in range(3)] == [FIRST, None, RECOVERED]


def test_an_owner_of_before_a_recovery_lowers_no_generation(anchors: Anchors) -> None:
    anchors.write({0: RECOVERED, 1: FIRST})
    assert anchors.write({0: FIRST, 1: FIRST, 2: FIRST}) == {0: RECOVERED}
    assert [anchors.read(number) for number in range(3)] == [RECOVERED, FIRST, FIRST]


def test_nothing_is_written_where_all_of_it_is_older(anchors: Anchors, notes: OffsetNotes) -> None:
    anchors.write({0: RECOVERED})
    anchors.write({0: FIRST})
    assert notes.writes == 1


def test_the_same_generation_is_said_again(anchors: Anchors, notes: OffsetNotes) -> None:
    """Kafka forgets an offset some days after its last commit."""
    anchors.write({0: FIRST})
    anchors.write({0: FIRST})
    assert notes.writes == 2


def test_a_cluster_that_does_not_answer_is_a_connection_that_failed(
    anchors: Anchors, notes: OffsetNotes
) -> None:
    notes.away = True
    with pytest.raises(ConnectionError, match="identity"):
        anchors.write({0: FIRST})


def test_a_partition_that_was_added_has_a_group_of_its_own() -> None:
    notes: Any = OffsetNotes("belfry.identity", refused=4)
    made: dict[int, Any] = {}

    def own(partition: int) -> Any:
        return made.setdefault(partition, OffsetNotes(f"belfry.identity.{partition}"))

    anchors = Anchors(notes, own, 4)
    assert anchors.write({3: FIRST, 12: RECOVERED}) == {}
    assert [anchors.read(number) for number in (3, 12, 13)] == [FIRST, RECOVERED, None]
    assert anchors.write({12: FIRST}) == {12: RECOVERED}
    # What the topic has is never asked for twice.
    assert anchors.read(2) is None
    assert sorted(made) == [12, 13]
    made[12].refused = 0
    with pytest.raises(SomeNotKept):
        anchors.write({3: FIRST, 12: RECOVERED})
