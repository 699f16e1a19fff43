"""`belfry verify` counts key groups by homes where a belfry has grown: it has more partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.cli.verified_topics import VerifiedTopics
from belfry.cli.verify_cluster import ClusterVerifier
from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_state import StateFile
from belfry.verification.findings import Breach
from belfry.verification.key_groups import group_of, groups_among
from belfry.verification.memory import Remembered, Stands
from belfry.verification.move_memory import Given, MoveId

HOMES: Final = 4
# No power of two: with it there are more groups than with the homes.
PARTITIONS: Final = 7
AWAY: Final = 5
TENANT: Final = "demo"


@pytest.mark.parametrize("homes", [HOMES, 0])
def test_what_is_left_behind_is_found_where_homes_are_fewer(homes: int) -> None:
    """Without the topic that tells how many homes there are, all partitions are."""
    topics = {"belfry.changelog": [*range(PARTITIONS)]}
    topics |= {"belfry.homes": [*range(homes)]} if homes else {}
    reader: Any = SimpleNamespace(
        topics=lambda: topics, hides=lambda *_: (), key_at=lambda *_: b"demo/a"
    )
    file = StateFile(None, "a world")
    memory = MemoryOnDisk(file)
    group = group_of(TENANT.encode(), groups_among(homes or PARTITIONS))
    memory.moves.give(Given(AWAY, MoveId(group, 5), settled=True))
    row = Remembered(Stands.WAITS, 0, 1_000, 1_000, 7, 1, 0, 10, 1_000, TENANT)
    memory.put(AWAY, 1, row)
    nobody: Any = None
    verifier = ClusterVerifier(
        reader, file, VerifiedTopics("belfry.{}".format, ()), nobody, lambda _: nobody
    )
    verifier._begin_partitions()
    verifier._decide(0, [])
    assert [(each.breach, each.spot.partition) for each in verifier.findings] == [
        (Breach.LEFT_BEHIND, AWAY)
    ]


def test_each_partition_asks_the_log_about_its_own_holes() -> None:
    topics = {"belfry.changelog": [0, 1, 2]}
    reader: Any = SimpleNamespace(topics=lambda: topics)
    nobody: Any = None
    verifier = ClusterVerifier(
        reader, StateFile(None, "a world"), VerifiedTopics("belfry.{}".format, ()), nobody, nobody
    )
    asked: list[tuple[str, int, int, int]] = []

    def is_void(*hole: Any) -> bool:
        asked.append(hole)
        return True

    verifier.is_void = is_void
    verifier._begin_partitions()
    for partition in (2, 0):
        assert verifier._partitions[partition].wholeness.is_void(812, 818)
    assert asked == [("belfry.changelog", 2, 812, 818), ("belfry.changelog", 0, 812, 818)]
