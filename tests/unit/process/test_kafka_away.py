"""Time in which Kafka does not answer says nothing against a worker; its clock is virtual here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from belfry.balance.assignment import Assignment
from belfry.balance.assignment_map import MemberMetadata
from belfry.group.group import Group
from belfry.process.self_check import FIRST_PAUSE_MS, SelfCheck

LIMIT_S = 10


class Cluster:
    """A worker of two partitions and a Kafka that is there or not; a look lasts a second."""

    def __init__(self, folder: Path, *, free_mb: int = 0) -> None:
        self.now_ms = 0.0
        self.answers = True
        self.identities_wait_ms = 0.0
        self.failing = [SimpleNamespace(since_ms=None, problem="") for _ in range(2)]
        self.group = Group(MemberMetadata("one"))
        self.group.seated(Assignment(others=True).encode())
        runners = [
            SimpleNamespace(assigned=True, epoch=1, failures=each, partition=number)
            for number, each in enumerate(self.failing)
        ]
        settings = SimpleNamespace(
            unfit_limit_ms=LIMIT_S * 1000, data_dir=folder, disk_reserve_mb=free_mb
        )
        opener: Any = SimpleNamespace(
            settings=settings,
            clock=SimpleNamespace(monotonic_ms=lambda: self.now_ms),
            identities=SimpleNamespace(look=self._identities, partitions=(2, 2)),
            counted=SimpleNamespace(grown=lambda _: False),
            trust=SimpleNamespace(marks=SimpleNamespace(look=lambda _: None)),
            output_topics=SimpleNamespace(changelog="changelog"),
            log_ends=SimpleNamespace(end=self._end),
        )
        guard: Any = SimpleNamespace(may_fire=True, paused_because="")
        owners: Any = SimpleNamespace(runners=lambda: runners, answered=True)
        self.check = SelfCheck(opener, guard, owners, self.group)

    def _identities(self, _now_ms: float) -> None:
        self.now_ms += self.identities_wait_ms

    def _end(self, _topic: str, _partition: int, wait_s: float) -> int:
        if not self.answers:
            self.now_ms += 1000 * wait_s
            raise ConnectionError("no answer")
        return 7

    def fail(self) -> None:
        """No partition commits from now on."""
        for each in self.failing:
            each.since_ms, each.problem = self.now_ms, "timed out"

    def commit(self) -> None:
        """One of them commits."""
        self.failing[0].since_ms = None

    def left_within(self, seconds: int) -> bool:
        """Look once a second, for so long; whether the worker has given its partitions away."""
        for _ in range(seconds):
            self.now_ms += 1000
            self.check._look()
        return self.group.leaving


def test_a_worker_that_cannot_commit_while_kafka_answers_leaves(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.fail()
    assert not cluster.left_within(LIMIT_S)
    assert cluster.left_within(1)
    assert "none of its 2 partitions has committed for 11 s: timed out" in cluster.check.reason
    said = cluster.group.member_metadata()
    assert (said.leaving, said.unfit) == (True, True)


def test_who_commits_soon_after_kafka_is_back_stays(tmp_path: Path) -> None:
    """A lone broker was away for longer than the limit."""
    cluster = Cluster(tmp_path)
    cluster.answers = False
    cluster.fail()
    assert not cluster.left_within(2 * LIMIT_S)
    cluster.answers = True
    assert not cluster.left_within(LIMIT_S)
    cluster.commit()
    assert not cluster.left_within(2 * LIMIT_S)
    assert cluster.check.reason == ""


def test_an_absence_that_is_shorter_than_the_limit_does_not_count_either(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.answers = False
    cluster.fail()
    assert not cluster.left_within(LIMIT_S // 2 - 1)
    cluster.answers = True
    assert not cluster.left_within(LIMIT_S)


def test_who_still_cannot_commit_when_kafka_is_back_for_long_leaves(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.answers = False
    cluster.fail()
    assert not cluster.left_within(2 * LIMIT_S)
    cluster.answers = True
    assert not cluster.left_within(LIMIT_S)
    assert cluster.left_within(1)


def test_a_look_that_has_waited_for_kafka_does_not_count_its_wait(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.identities_wait_ms = 1000.0 * LIMIT_S
    cluster.fail()
    assert not cluster.left_within(1)
    cluster.identities_wait_ms = 0.0
    assert not cluster.left_within(LIMIT_S - 1)
    assert cluster.left_within(1)


def test_a_full_disk_is_a_reason_whether_kafka_answers_or_not(tmp_path: Path) -> None:
    """Its owner is no better off for Kafka's absence: it leaves once Kafka hears of it."""
    cluster = Cluster(tmp_path, free_mb=2**40)
    cluster.answers = False
    assert not cluster.left_within(2 * LIMIT_S)
    cluster.answers = True
    assert cluster.left_within(1)


def test_who_left_asks_for_partitions_again_as_a_fit_worker(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.fail()
    assert cluster.left_within(LIMIT_S + 1)
    cluster.commit()
    assert not cluster.left_within(int(FIRST_PAUSE_MS / 1000))
    said = cluster.group.member_metadata()
    assert (said.leaving, said.unfit) == (False, False)
