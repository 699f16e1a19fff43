"""What `belfry slo` prints of a report."""

from __future__ import annotations

from belfry.canary.objectives import Report
from belfry.cli.slo import QUIET_MS, lines, shown

T0 = 1_800_000_000_000
DAY_MS = 86_400_000


def test_each_goal_has_a_line_with_its_budget() -> None:
    found = Report(T0, T0 + DAY_MS, T0 + DAY_MS, 10_000, 10_000, 9_998, 9_998, 9_998, 9_988)
    heading, *told = lines(found)
    assert heading == "from 2027-01-15T08:00:00.000Z until 2027-01-16T08:00:00.000Z"
    assert [line.split()[0] for line in told] == ["availability", "reach", "within_1s"]
    assert "99.9800%" in told[0]
    assert "met" in told[0]
    assert "2 of 10,000 failed, 60% of the error budget left" in told[0]
    assert "MISSED" in told[2]
    assert "-100% of the error budget left" in told[2]
    assert [each["met"] for each in shown(found)["objectives"]] == [True, True, False]


def test_what_nobody_asked_for_is_told_and_how_to_end_the_time() -> None:
    found = Report(T0, T0 + QUIET_MS + 10_001, T0 + 10_000, 61, 1, 1, 1, 1, 1)
    told = lines(found)
    assert told[-2] == "60 of 61 events nobody asked for: no owner was there."
    assert "since 2027-01-15T08:00:10.000Z" in told[-1]
    assert "--until" in told[-1]


def test_nothing_to_judge_is_said() -> None:
    found = Report(T0, T0 + 20_000, T0, 2, 2, 0, 0, 0, 0)
    assert lines(found)[2].startswith("reach        nothing to judge")
    assert shown(found)["objectives"][1]["share"] is None
