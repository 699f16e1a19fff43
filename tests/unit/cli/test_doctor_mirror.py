"""What the marks of a mirror mean to `belfry doctor`."""

from __future__ import annotations

import pytest

from belfry.cli.check import Status
from belfry.cli.doctor_mirror import OLD_MS, judge
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


def test_a_side_that_was_left_and_does_not_follow_is_told() -> None:
    check = judge({0: ACTIVE, 1: ACTIVE}, {0: None, 1: "cluster-c"}, NOW_MS)
    assert check.status is Status.RISK
    assert "Partition 1" in check.detail
    assert "cluster-c" in check.detail
