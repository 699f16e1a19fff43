"""The group's client is made to look for partitions that this worker has seen, several times."""

from __future__ import annotations

from pathlib import Path

from belfry.group.group import Surroundings
from belfry.process.self_check import AGAIN_MS, LOOKS
from tests.unit.process.test_kafka_away import Cluster

# They take a minute, as what is said of them does.
assert LOOKS * AGAIN_MS == 60_000


class Looking:
    """A worker whose group's client counts how often it was made to look."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(folder)
        self.looks = 0
        self.cluster.group.connect(Surroundings(look_again=self._look))

    def _look(self) -> None:
        self.looks += 1

    def within(self, seconds: int) -> int:
        """How often it looks within these seconds."""
        before = self.looks
        self.cluster.left_within(seconds)
        return self.looks - before

    def see(self, partitions: int) -> None:
        """The worker is told of so many."""
        self.cluster.check._opener.identities.partitions = (partitions, partitions)


def test_the_group_looks_while_brokers_may_not_have_heard_of_partitions(tmp_path: Path) -> None:
    looking = Looking(tmp_path)
    # A worker that starts amid growth may have joined with fewer.
    assert looking.within(60) == LOOKS
    assert looking.within(60) == 0
    looking.see(4)
    assert looking.within(1) == 1
    assert looking.within(59) == LOOKS - 1
    assert looking.within(60) == 0


def test_a_pause_of_the_whole_process_uses_no_look_up(tmp_path: Path) -> None:
    """What was asked for before it is lost, and the client does not ask again by itself."""
    looking = Looking(tmp_path)
    looking.within(60)
    looking.see(4)
    assert looking.within(1) == 1
    looking.cluster.now_ms += 300_000.0
    assert looking.within(60) == LOOKS - 1


def test_a_worker_that_joins_late_looks_all_the_same(tmp_path: Path) -> None:
    looking = Looking(tmp_path)
    looking.cluster.check._owners.answered = False
    assert looking.within(90) == 0
    looking.cluster.check._owners.answered = True
    assert looking.within(60) == LOOKS


def test_nobody_looks_before_the_group_has_answered(tmp_path: Path) -> None:
    looking = Looking(tmp_path)
    looking.cluster.check._owners.answered = False
    assert looking.within(5) == 0
    looking.cluster.check._owners.answered = True
    assert looking.within(1) == 1
