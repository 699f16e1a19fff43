"""What the marks of a mirror mean to `belfry doctor`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from belfry.cli import doctor
from belfry.cli.check import Check, Status
from belfry.cli.doctor_mirror import OLD_MS, is_passive, judge
from belfry.cli.doctor_worker import readiness
from belfry.mirror.marks import Activated, MirrorMark

NOW_MS = 1_800_000_000_000
YOUNG = MirrorMark("cluster-a", "log-a", "log-b", 1, {}, whole=True, level_ms=NOW_MS - 5_000)
OLD = YOUNG._replace(level_ms=NOW_MS - OLD_MS - 1)
LEAVING = YOUNG._replace(leaving=True)
ACTIVE = LEAVING._replace(activated=Activated(NOW_MS, True, {}))


@pytest.mark.parametrize(
    ("marks", "status", "said"),
    [
        ({0: YOUNG, 1: YOUNG}, Status.OK, "follows cluster-a"),
        ({0: ACTIVE, 1: ACTIVE}, Status.OK, "took over from cluster-a"),
        ({0: YOUNG, 1: OLD}, Status.RISK, "partition 1 "),
        ({0: YOUNG, 1: None}, Status.RISK, "partition 1 "),
        ({0: ACTIVE, 1: LEAVING, 2: YOUNG}, Status.PROBLEM, "partitions 1, 2"),
        ({0: LEAVING, 1: LEAVING}, Status.PROBLEM, "partitions 0, 1"),
    ],
    ids=["follows", "active", "old", "none", "interrupted", "fenced"],
)
def test_each_state_of_a_mirror_is_told(
    marks: dict[int, MirrorMark | None], status: Status, said: str
) -> None:
    check = judge(marks, {}, NOW_MS)
    assert check.status is status
    assert said in check.detail


WAITS = {"partition": 1, "missing": "other_cluster: the changelog was written in cluster a"}
RECOVERS = {"partition": 2, "missing": "replaying: 3 of 9"}
NO_CLOCK = "firing is paused: the clock has not been compared with the broker's yet"


@pytest.mark.parametrize(
    ("problems", "partitions", "passive", "status"),
    [
        ([], [WAITS], True, Status.OK),
        ([NO_CLOCK], [WAITS, WAITS], True, Status.OK),
        ([NO_CLOCK], [WAITS], False, Status.PROBLEM),
        ([NO_CLOCK], [WAITS, RECOVERS], True, Status.PROBLEM),
        (["the disk is full"], [WAITS], True, Status.PROBLEM),
        (["the worker starts"], [], True, Status.PROBLEM),
        # It tells callers without a key nothing more; those with one are told by other checks.
        ([], [], True, Status.SKIPPED),
        ([], [], False, Status.PROBLEM),
    ],
)
def test_a_worker_that_waits_in_a_cluster_that_follows_is_well(
    problems: list[str], partitions: list[dict[str, object]], passive: bool, status: Status
) -> None:
    told = {"ready": False, "problems": problems, "partitions": partitions}
    assert readiness("http://w", 503, json.dumps(told), passive=passive).status is status


def test_the_mark_says_whether_a_cluster_follows() -> None:
    assert is_passive(judge({0: YOUNG, 1: YOUNG}, {}, NOW_MS))
    for marks in ({0: ACTIVE}, {0: YOUNG, 1: OLD}, {0: LEAVING}):
        assert not is_passive(judge(marks, {}, NOW_MS))


def test_a_side_that_was_left_and_does_not_follow_is_told() -> None:
    check = judge({0: ACTIVE, 1: ACTIVE}, {0: None, 1: "cluster-c"}, NOW_MS)
    assert check.status is Status.RISK
    assert "Partition 1" in check.detail
    assert "cluster-c" in check.detail


@pytest.mark.parametrize(
    ("marks", "passive"), [({0: YOUNG}, True), ({0: OLD}, False), ({0: ACTIVE}, False)]
)
def test_the_checks_of_workers_are_told_whether_the_cluster_follows(
    monkeypatch: pytest.MonkeyPatch, marks: dict[int, MirrorMark | None], passive: bool
) -> None:
    told = list[bool]()

    def workers(*_: object, passive: bool) -> list[Check]:
        told.append(passive)
        return []

    found = [Check("kafka", Status.OK, "It answers."), judge(marks, {}, NOW_MS)]
    monkeypatch.setattr(doctor, "_kafka", lambda *_: [*found, Check("rights", Status.OK, "All.")])
    monkeypatch.setattr(doctor, "_registry", lambda _: [])
    monkeypatch.setattr(doctor, "worker_checks", workers)
    nothing: Any = None
    assert len([*doctor.checks(nothing)]) == 3
    assert told == [passive]
