"""What `belfry doctor` says of key groups that move, by two looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from belfry.cli import doctor_moves
from belfry.cli.check import Check, Status
from belfry.cli.doctor_moves import MOST, judge, move_checks
from belfry.cli.failures import CommandError

TWO = {"one", "two"}


def group(number: int, state: str = "moving", **changed: Any) -> dict[str, Any]:
    given = {"group": number, "home": number % 4, "state": state, "lies": 1, "goes": 2}
    return {**given, "move": 7, "records": 120, "waiting": 14, **changed}


def answer(*groups: dict[str, Any], **changed: Any) -> dict[str, Any]:
    given = {"key_groups": list(groups), "refusing": [], "silent": [], "missing": []}
    return {**given, **changed}


def judged(*looks: dict[str, Any], workers: set[str] = TWO) -> list[Check]:
    return [*judge(looks[0], looks[-1], workers)]


def test_nothing_is_said_where_no_group_has_ever_moved() -> None:
    assert judged(answer()) == []
    assert judged(answer(refusing=["one", "two"])) == []


def test_groups_that_rest_or_go_on_are_well() -> None:
    rests = group(4, "rests", goes=None)
    (found,) = judged(answer(rests, group(9)), answer(rests, group(9, records=300)))
    assert (found.check, found.status) == ("key groups", Status.OK)
    assert found.detail == "1 key group away from home, 1 on the way, going on."


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({}, Status.PROBLEM, ("from 1 to 2 (moving)", "its events wait", "partition 1 has an")),
        (
            {"state": "arriving", "goes": None},
            Status.PROBLEM,
            ("to 1 (arriving)", "its events wait", "belfry rebalance resend 9"),
        ),
        ({"state": "other"}, Status.PROBLEM, ("(other)", "a later release")),
        ({"state": "asked"}, Status.RISK, ("(asked)", "for 3 s.", "belfry rebalance call-off 9")),
    ],
)
def test_a_group_that_does_not_go_on_is_told_with_what_to_do(
    changed: dict[str, Any], status: Status, words: tuple[str, ...]
) -> None:
    (found,) = judged(answer(group(9, **changed)))
    assert found.status is status
    for each in words:
        assert each in f"{found.detail} {found.to_do}"


def test_partitions_of_which_nobody_tells_are_named_beside_it() -> None:
    (found,) = judged(answer(group(9), missing=[2]))
    assert "Nobody tells of partition 2." in found.detail


def test_many_are_not_all_told_of() -> None:
    found = judged(answer(*[group(each) for each in range(MOST + 5)]))
    assert len(found) == MOST + 1
    assert found[-1].detail == "5 further key groups have not gone on either."
    assert found[-1].status is Status.PROBLEM


def test_moves_that_some_workers_alone_allow() -> None:
    (found,) = judged(answer(refusing=["two"]))
    assert found.status is Status.RISK
    assert found.detail.startswith("one let key groups move, and two do not")
    assert "BELFRY_KEY_GROUP_MOVES" in found.to_do
    # One that does not answer may be of either sort.
    assert judged(answer(refusing=["two"], silent=["one"])) == []


class Remote:
    """A worker, and its answers one after the other."""

    looks: ClassVar[Iterator[dict[str, Any]]]

    def __init__(self, _session: Any) -> None:
        """It is asked by two paths."""

    def get(self, path: str) -> Any:
        if path == "/v1/cluster":
            return {"members": [{"worker_id": "one"}, {"worker_id": "two"}]}
        return next(self.looks)


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(doctor_moves, "Remote", Remote)
    monkeypatch.setattr(doctor_moves, "sleep", pauses.append)
    return pauses


def test_it_looks_again_only_where_a_group_is_on_its_way(paused: list[float]) -> None:
    session: Any = None
    Remote.looks = iter([answer(group(4, "rests"))])
    assert [each.status for each in move_checks(session)] == [Status.OK]
    assert paused == []
    Remote.looks = iter([answer(group(9)), answer(group(9, "rests"))])
    assert [each.status for each in move_checks(session)] == [Status.OK]
    assert paused == [3.0]
    Remote.looks = iter([answer(group(9), refusing=["two"]), answer(group(9))])
    assert [each.status for each in move_checks(session)] == [Status.RISK, Status.PROBLEM]


def test_a_worker_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Remote):
        def get(self, path: str) -> Any:
            raise CommandError("this key may not")

    monkeypatch.setattr(doctor_moves, "Remote", Refusing)
    session: Any = None
    (found,) = move_checks(session)
    assert (found.status, "this key may not" in found.detail) == (Status.SKIPPED, True)
