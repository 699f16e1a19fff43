"""A partition that this worker cannot fire all of is left to another one, before any fence."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.balance.assignment import Assignment
from belfry.balance.assignment_map import MemberMetadata, read_metadata
from belfry.group.group import Group, Surroundings
from belfry.host.failpoints import Failpoints
from belfry.recovery import takeover
from belfry.recovery.reading import ReplayProgress
from belfry.recovery.takeover import LeftToOthers, TakeOver
from belfry.store.ordered_map import MemoryMap
from tests.unit.engine.driver import T0, Driver
from tests.unit.engine.unreadable import newer_rule, pending


class Clock:
    def wall_ms(self) -> float:
        return T0


class Rows(MemoryMap):
    def close(self) -> None:
        """Nothing is open."""


class Local:
    clock = Clock()

    def open_newest(self, _changelog: Any) -> Rows:
        return Rows()


class Evidence:
    def check(self, _replay: Any, _hides: Any = None) -> None:
        """Nothing contradicts itself."""

    def identity(self, _replay: Any) -> tuple[None, None]:
        return None, None


class Message:
    def __init__(self, offset: int, change: tuple[bytes, bytes | None]) -> None:
        self._offset, self._change = offset, change

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._change[0]

    def value(self) -> bytes | None:
        return self._change[1]


class Changelog:
    position = 0
    newest_ms = None
    hides = 0
    holds_records = True

    def __init__(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        self._changes = changes

    def ends(self) -> tuple[int, int]:
        return 0, len(self._changes)

    def seek(self, offset: int, manifest_at: int = -1, known: Any = None) -> None:
        self.position = offset

    def read_until(self, end: int, _most: int) -> Iterator[list[Message]]:
        found = [Message(at, self._changes[at]) for at in range(self.position, end)]
        self.position = end
        if found:
            yield found

    def changes(self, found: list[Message]) -> Any:
        return [(m.key(), m.value()) for m in found], [m.offset() for m in found]


class Producer:
    fenced = False

    def open(self) -> None:
        self.fenced = True


def changes() -> list[tuple[bytes, bytes | None]]:
    """A changelog that holds a schedule of a later release."""
    driver = Driver()
    driver.ask(at=T0 + 5)
    driver.step(T0, fire=False)
    newer = pending(newer_rule(), "new", T0 + 9)
    driver.engine._store.keep_in_timeline(b"demo/new", newer, T0 + 9, 0)
    driver.engine.claim(None)
    driver.end(T0)
    return driver.changelog


def take_over(*, others: bool) -> tuple[Producer, str]:
    """Take that partition over, where others can fire it or not; what was said."""
    producer: Any = Producer()
    local: Any = Local()
    changelog: Any = Changelog(changes())
    evidence: Any = Evidence()
    take = TakeOver(
        local,
        evidence,
        ReplayProgress(),
        Failpoints(""),
        lambda _event: None,
        lambda log: log.ends()[1],
    )
    try:
        take.run(changelog, producer, None, lambda unable: unable and others)
    except LeftToOthers as error:
        return producer, str(error)
    return producer, ""


def test_nobody_is_fenced_who_can_fire_it() -> None:
    producer, said = take_over(others=True)
    assert not producer.fenced
    assert said.startswith("1 schedules cannot be fired by this worker (demo/new: A rule starts")
    assert said.endswith("); the partition is left to one that can")


def test_a_name_that_is_no_text_is_shown_by_its_bytes() -> None:
    replay: Any = SimpleNamespace(unreadable={b"demo/\xff": "of a later release"})
    with pytest.raises(LeftToOthers, match=r"\(demo/\\xff: of a later release\)"):
        takeover._leave_what_others_can_fire(replay, bool)


def test_where_nobody_else_can_it_is_taken_over_and_held_back() -> None:
    producer, said = take_over(others=False)
    assert (producer.fenced, said) == (True, "")


def group(*, others: bool = True) -> tuple[Group, list[str]]:
    """A member of a group, and how often it asked to share anew."""
    asked: list[str] = []
    found = Group(MemberMetadata("w"))
    found.seated(Assignment(others=others).encode())
    found.connect(Surroundings(rejoin=lambda: asked.append("rejoin")))
    return found, asked


def shared_anew(member: Group) -> tuple[int, ...]:
    """A rebalance: what the member says, and an answer."""
    said = read_metadata(member.member_metadata().encode(), "w").cannot
    member.seated(Assignment(others=True).encode())
    return said


def test_the_group_is_told_and_asked_once() -> None:
    member, asked = group()
    assert not member.leaves(3, False)
    assert (member.leaves(3, True), member.leaves(3, True)) == (True, True)
    assert asked == ["rejoin"]
    assert shared_anew(member) == (3,)
    # It was given to this worker all the same: nobody else can.
    assert not member.leaves(3, True)
    assert asked == ["rejoin"]


def test_an_answer_to_what_was_said_before_counts_for_nothing() -> None:
    member, _ = group()
    said = member.member_metadata()
    assert member.leaves(3, True)
    member.seated(Assignment(others=True).encode())
    assert said.cannot == ()
    assert member.leaves(3, True)


def test_who_is_alone_leaves_nothing() -> None:
    member, asked = group(others=False)
    assert not member.leaves(3, True)
    assert asked == []


def test_what_can_be_fired_again_is_no_longer_said() -> None:
    member, asked = group()
    assert member.leaves(3, True)
    assert shared_anew(member) == (3,)
    assert not member.leaves(3, False)
    assert shared_anew(member) == ()
    assert member.leaves(3, True)
    assert asked == ["rejoin", "rejoin"]


def test_a_wish_that_came_amid_a_rebalance_is_repeated_after_it() -> None:
    """The group's client drops it, and the answer is to what was said before."""
    member, asked = group()
    member.member_metadata()
    assert member.leaves(3, True)
    member.seated(Assignment(others=True).encode())
    assert asked == ["rejoin", "rejoin"]
    assert shared_anew(member) == (3,)
    assert asked == ["rejoin", "rejoin"], "the group has heard it"
    assert not member.leaves(3, True)


@pytest.mark.parametrize("leaving", [True, False])
def test_who_asks_for_no_partitions_amid_a_rebalance_asks_again_after_it(leaving: bool) -> None:
    member, asked = group()
    member.leave(not leaving)
    shared_anew(member)
    asked.clear()
    member.member_metadata()
    member.leave(leaving)
    member.seated(Assignment(others=True).encode())
    assert asked == ["rejoin", "rejoin"]
    assert member.member_metadata().leaving == leaving
    member.seated(Assignment(others=True).encode())
    assert asked == ["rejoin", "rejoin"]


def test_an_unfit_worker_that_stops_amid_a_rebalance_says_so_after_it() -> None:
    """Where all are unfit it has partitions, and has to be rid of them before it ends."""
    member, asked = group()
    member.leave(unfit=True)
    shared_anew(member)
    asked.clear()
    member.member_metadata()
    member.leave()
    member.seated(Assignment(others=True).encode())
    assert asked == ["rejoin", "rejoin"]


def test_a_rebalance_that_fails_amid_it_does_not_end_the_wish() -> None:
    member, asked = group()
    member.member_metadata()
    member.leave()
    member.member_metadata()
    member.member_metadata()
    member.seated(Assignment(others=True).encode())
    assert asked == ["rejoin"]


def test_what_can_be_fired_again_meanwhile_is_no_wish() -> None:
    member, asked = group()
    member.member_metadata()
    member.leaves(3, True)
    member.leaves(3, False)
    member.seated(Assignment(others=True).encode())
    assert asked == ["rejoin"]


def test_who_was_alone_until_this_rebalance_tells_the_one_who_came() -> None:
    member, asked = group(others=False)
    member.member_metadata()
    assert not member.leaves(3, True)
    member.seated(Assignment(others=True).encode())
    assert asked == ["rejoin"]
