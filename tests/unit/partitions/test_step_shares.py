"""Steps of all partitions hold four full ones together; who waits for room has it soon."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.engine.effects import Effects
from belfry.host import machine
from belfry.kafka.outcome import Unknown
from belfry.partitions import steps
from belfry.partitions.step_shares import (
    FULL,
    LEAST,
    LIGHT,
    LONGEST_S,
    TIMEOUT_S,
    TOGETHER,
    WORTHWHILE,
    StepRoom,
    StepShare,
)


class Clock:
    """The machine's clock, which stands still."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(machine, "monotonic", found)
    return found


class Woken:
    """Shares of a room by number, and the numbers of those that were woken, in order."""

    def __init__(self, room: StepRoom, number: int) -> None:
        self.woken: list[int] = []
        self.shares = [
            StepShare(room, lambda n=n: self.woken.append(n))  # type: ignore[misc]
            for n in range(number)
        ]

    def ask(self) -> list[int]:
        """Let all ask in turn; how much each has at once."""
        for share in self.shares:
            share.wants = FULL
            share.ask()
        return [share.parts for share in self.shares]


def test_four_partitions_always_do_full_steps() -> None:
    room = StepRoom()
    four = Woken(room, 4)
    for number in range(40):
        share = four.shares[number % 4]
        with share:
            share.keep(0.5)
            share.ask()
            assert (share.parts, share.of(500), share.wait_s()) == (FULL, 500, 0.0)
        assert room.held == 0
    assert four.ask() == [FULL] * 4
    assert four.woken == []


def test_a_step_asks_for_twice_what_the_one_before_has_held() -> None:
    share, asked = StepShare(StepRoom(), MagicMock()), []
    for done in (1.0, 0.2, 0.4, 0.9, 0.01):
        with share:
            share.ask()
            asked.append(share.parts)
            share.keep(done)
    assert asked == [WORTHWHILE, FULL, 4_000, 8_000, FULL]
    with share:
        share.ask()
        assert share.parts == WORTHWHILE


def test_many_fire_a_quarter_of_a_step_each_at_first() -> None:
    room = StepRoom()
    shares = [StepShare(room, MagicMock()) for _ in range(64)]
    for share in shares:
        share.ask()
    assert [share.parts for share in shares] == [WORTHWHILE] * 16 + [0] * 48


def test_who_waits_is_woken_in_turn_by_what_is_given_back() -> None:
    room = StepRoom()
    seven = Woken(room, 7)
    assert seven.ask() == [FULL] * 4 + [0] * 3
    seven.shares[2].keep(0.9)
    assert seven.woken == [], "the rest is not worth a transaction"
    seven.shares[0].keep(0.5, 0.1)
    assert (seven.woken, seven.shares[4].parts) == ([4], 6_000), "it has what is left"
    with seven.shares[1]:
        pass
    assert (seven.woken, seven.shares[5].parts) == ([4, 5], FULL)
    with seven.shares[3]:
        pass
    assert seven.woken == [4, 5, 6]
    assert room.held == TOGETHER


@pytest.mark.parametrize("seed", range(20))
def test_nobody_waits_while_room_is_free_and_all_have_their_turns(seed: int) -> None:
    random, room = Random(seed), StepRoom()
    many = Woken(room, 64)
    idle, waiting, at_work = list(range(64)), list[int](), list[int]()
    turns = [0] * 64
    for _ in range(5_000):
        if idle and random.random() < 0.6:
            number = idle.pop(random.randrange(len(idle)))
            many.shares[number].ask()
            waiting.append(number)
        elif at_work:
            number = random.choice(at_work)
            if random.random() < 0.5:
                many.shares[number].keep(random.random())
            else:
                with many.shares[number]:
                    at_work.remove(number)
                idle.append(number)
        while waiting and many.shares[waiting[0]].parts:
            turns[waiting[0]] += 1
            at_work.append(waiting.pop(0))
        assert not any(many.shares[number].parts for number in waiting), "first come, first served"
        assert room.held == sum(share.parts for share in many.shares) <= TOGETHER
        assert not waiting or TOGETHER - room.held < WORTHWHILE
    assert min(turns) > 5


def test_nobody_waits_for_commits_that_hang(clock: Clock) -> None:
    room = StepRoom()
    eight = Woken(room, 8)
    eight.ask()
    last = eight.shares[7]
    assert last.wait_s() == TIMEOUT_S
    clock.now_s += TIMEOUT_S - 0.25
    assert last.wait_s() == 0.25
    clock.now_s += 0.25
    for share in eight.shares[4:]:
        assert (share.wait_s(), share.of(1_600)) == (0.0, 100)
    assert room.held == TOGETHER + 4 * LEAST
    for share in eight.shares[4:]:
        for _ in range(9):
            with share:
                pass
            share.wants = FULL
            share.ask()
            assert share.wait_s() == 0.0, "nor does it wait anew for each step"
            assert share.of(1_600) == 100
    assert eight.woken == [], "small steps leave no room for others"
    for share in eight.shares:
        with share:
            pass
    assert eight.ask() == [FULL] * 4 + [0] * 4
    assert last.wait_s() == TIMEOUT_S


def test_who_does_not_wait_any_longer_leaves_the_queue() -> None:
    room = StepRoom()
    seven = Woken(room, 7)
    seven.ask()
    assert seven.shares[4].of(FULL) == LEAST
    with seven.shares[5]:
        pass
    with seven.shares[0]:
        pass
    assert seven.woken == [6]
    assert [share.parts for share in seven.shares[4:]] == [LEAST, 0, FULL - LEAST]
    for share in seven.shares:
        with share:
            pass
    assert room.held == 0


def test_nobody_waits_for_long_though_others_are_given_shares(clock: Clock) -> None:
    """Three commits hang, and all others wait for what the fourth partition gives back."""
    room = StepRoom()
    many = Woken(room, 64)
    many.ask()
    last, waited_s = many.shares[63], 0.0
    for number in range(3, 60):
        if not last.wait_s():
            break
        with many.shares[number]:
            clock.now_s += 0.75
            waited_s += 0.75
    assert waited_s == 2.25 >= LONGEST_S
    assert last.of(1_600) == 100
    with last:
        pass
    last.ask()
    assert 0 < last.wait_s() <= TIMEOUT_S, "it is counted from when it asks anew"


def test_room_that_is_given_to_who_just_leaves_is_given_back() -> None:
    """As where its clock is not trusted any more, or its producer is fenced, when it has waited."""
    room = StepRoom()
    five = Woken(room, 5)
    five.ask()
    first, last = five.shares[0], five.shares[4]
    with last:
        # In another thread, right before the lock is held here.
        before = MagicMock()
        others = iter([first.__exit__])
        before.__enter__.side_effect = lambda: [happens() for happens in others]
        room._lock = before
    assert five.woken == [4]
    assert (last.parts, room.held) == (0, 3 * FULL)


def test_a_share_of_little_is_one_at_least() -> None:
    room = StepRoom()
    assert StepShare(room, MagicMock()).of(3) == 1


def test_a_share_is_given_back_however_the_step_ends() -> None:
    room = StepRoom()
    share = StepShare(room, MagicMock())
    share.wants = FULL

    def fails() -> None:
        with share:
            share.ask()
            raise Unknown("nobody knows")

    with pytest.raises(Unknown):
        fails()
    assert room.held == 0
    with share:
        share.ask()
        share.keep(0.5)
        share.keep(3.0)
        assert room.held == FULL // 2
    assert (room.held, share.parts) == (0, 0)


class Partition:
    """Steps of a partition, which fire by calls of this class, and their worker."""

    def __init__(self) -> None:
        self.room = StepRoom()
        given, upkeep, self.commits = MagicMock(), MagicMock(), MagicMock(at_most=320)
        given.opener.settings = SimpleNamespace(batch_records=160, step_bytes=1_600, fire_chunk=320)
        given.opener.clock.both_ms.return_value = (1.0, 1.0)
        given.opener.clock.monotonic_ms.return_value = 1.0
        given.opener.clock.wall_ms.return_value = 1.0
        given.guard.now_ms.return_value, given.guard.skew_ms = 1, 0
        self.guard, given.room = given.guard, self.room
        upkeep.add_to.side_effect = lambda _owned, effects, *_: effects
        upkeep.longest_s.return_value = 1.0
        self.commits.commit.return_value = True
        self.owned = MagicMock()
        self.engine = self.owned.engine
        self.engine.next_due_ms.return_value = 1
        self.engine.aside.any = False
        self.engine.effects = self.engine.fire_due.return_value = Effects(room=1_600)
        self.engine.changed = 0
        self.owned.resolver.deferred.any = self.owned.resolver.too_many = False
        self.owned.source.end = self.engine.position = 0
        self.loop: Any = MagicMock(asked=False)
        self.loop.stopping.is_set.return_value = False
        self.steps = steps.Steps(given, self.commits, upkeep, lambda: True, self.loop)
        self.steps._share.wants = FULL

    def others(self) -> list[StepShare]:
        """Other partitions hold all that there is room for."""
        shares = [StepShare(self.room, MagicMock()) for _ in range(4)]
        for share in shares:
            share.wants = FULL
            share.ask()
        return shares

    def step(self) -> list[float | None]:
        """One step; its pauses."""
        return list(self.steps.step(self.owned))

    @property
    def fired(self) -> list[tuple[int, int]]:
        """How many events and bytes each step so far might fire."""
        return [(call.args[1], call.args[3]) for call in self.engine.fire_due.call_args_list]


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch) -> Partition:
    monkeypatch.setattr(steps, "take_aside", lambda _owned, effects, *_: effects)
    return Partition()


def test_a_step_waits_for_room_and_fires_as_soon_as_it_has_some(partition: Partition) -> None:
    others = partition.others()
    step = partition.steps.step(partition.owned)
    assert next(step) == 0.0, "something is due"
    pause_s = next(step)
    assert pause_s is not None
    assert 0 < pause_s <= TIMEOUT_S
    assert partition.fired == []
    with others[0]:
        others[0].keep(0.5)
    partition.loop.wake.assert_called_once_with()
    assert list(step) == []
    assert partition.fired == [(320, 800)]
    assert partition.room.held == 3 * FULL


def test_a_step_fires_little_where_commits_hang(partition: Partition, clock: Clock) -> None:
    partition.others()
    step = partition.steps.step(partition.owned)
    assert [next(step), next(step)] == [0.0, TIMEOUT_S]
    clock.now_s += 0.75
    assert next(step) == 0.25, "somebody else woke it"
    clock.now_s += 0.25
    assert list(step) == []
    assert partition.step() == [0.0], "it does not wait anew"
    assert partition.fired == [(80, 100)] * 2
    assert partition.room.held == TOGETHER


def test_who_stops_waits_no_longer(partition: Partition) -> None:
    partition.others()
    partition.loop.stopping.is_set.return_value = True
    assert partition.step() == [0.0]
    step = partition.steps.step(partition.owned)
    partition.loop.stopping.is_set.return_value = False
    assert [next(step) is not None for _ in range(2)] == [True, True]
    step.close()  # type: ignore[attr-defined]
    assert partition.room.held == TOGETHER


@pytest.mark.parametrize(("due_ms", "may_fire"), [(None, True), (2, True), (1, False)])
def test_who_has_nothing_to_fire_waits_for_no_room(
    partition: Partition, due_ms: int | None, may_fire: bool
) -> None:
    partition.others()
    partition.engine.next_due_ms.return_value = due_ms
    partition.guard.may_fire = may_fire
    assert len(partition.step()) == 1
    assert partition.room.held == TOGETHER


def test_the_pace_of_a_partition_bounds_its_steps_as_well(partition: Partition) -> None:
    partition.commits.at_most = 50
    partition.step()
    assert partition.fired == [(50, 1_600)]


@pytest.mark.parametrize(
    ("fired", "changed", "room", "parts"),
    [
        (0, 0, 1_600, 0),
        (32, 32, 1_600, FULL // 10 // LIGHT),
        (32, 80, 1_600, FULL * 48 // 320),
        (32, 32, 800, FULL // 2),
        (0, 640, 1_600, FULL),
        (1, 1, -100, FULL),
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_a_step_holds_its_events_its_bytes_or_what_it_holds_back_to_its_end(
    partition: Partition, fired: int, changed: int, room: int, parts: int, committed: bool
) -> None:
    held: list[int] = []

    def commit(*_: Any) -> bool:
        held.append(partition.room.held)
        return committed

    partition.engine.changed = changed
    effects = Effects(fired=[MagicMock()] * fired, room=room, moved=True)
    partition.engine.fire_due.return_value = effects
    partition.commits.commit.side_effect = commit
    step = partition.steps.step(partition.owned)
    assert next(step) == 0.0
    next(step, None)
    assert held == [parts]
    assert partition.room.held == 0, "nor does it hold anything in the pause behind it"


def test_a_step_that_fails_gives_its_share_back(partition: Partition) -> None:
    partition.engine.fire_due.return_value = Effects(moved=True)
    partition.commits.commit.side_effect = Unknown("nobody knows")
    with pytest.raises(Unknown):
        partition.step()
    assert partition.room.held == 0
