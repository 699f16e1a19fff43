"""Steps of a partition wait for room to fire in, and do all else meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.engine.effects import Effects
from belfry.firing.clock_guard import ClockGuard
from belfry.host.loop_threads import LoopThreads
from belfry.kafka.outcome import Fenced, Unknown
from belfry.partitions import steps
from belfry.partitions.owner import PartitionRunner
from belfry.partitions.step_shares import (
    FULL,
    LIGHT,
    TIMEOUT_S,
    TOGETHER,
    WORTHWHILE,
    StepRoom,
    StepShare,
)
from belfry.partitions.surroundings import RunnerDependencies
from belfry.settings import Settings
from tests.unit.partitions.still_clock import Clock


class Partition:
    """Steps of a partition, which fire by calls of this class, and their worker."""

    def __init__(self) -> None:
        self.room = StepRoom()
        given, self.commits = MagicMock(), MagicMock(at_most=320)
        upkeep = self.upkeep = MagicMock()
        given.opener.settings = SimpleNamespace(
            batch_records=160, step_bytes=1_600, fire_chunk=320, commit_interval_ms=0
        )
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

    def comes(self) -> Any:
        """A batch of requests comes, and is taken in as a whole."""
        batch, mail = MagicMock(), MagicMock(any=True)
        self.engine.accept.return_value = Effects(moved=True)
        batch.behind.return_value = None

        def take(_ready: Any) -> Any:
            found, mail.any = (batch if mail.any else None), False
            return found

        mail.next.side_effect = take
        self.steps.mail = mail
        return batch

    def step(self) -> list[float | None]:
        """One step; its pauses."""
        return list(self.steps.step(self.owned))

    @property
    def fired(self) -> list[tuple[int, int]]:
        """How many events and bytes each step so far might fire."""
        return [(call.args[1], call.args[3]) for call in self.engine.fire_due.call_args_list]


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Partition:
    """A partition for which time stands still: who waits does so for a second at most."""
    monkeypatch.setattr(steps, "take_aside", lambda _owned, effects, *_: effects)
    return Partition()


def test_a_step_waits_for_room_and_fires_as_soon_as_it_has_some(partition: Partition) -> None:
    others = partition.others()
    step = partition.steps.step(partition.owned)
    pause_s = next(step)
    assert pause_s is not None
    assert 0 < pause_s <= TIMEOUT_S
    assert partition.fired == []
    for other in others[1:]:
        other.keep(0.2)
    others[0].keep(0.15)
    partition.loop.wake.assert_called_once_with()
    assert list(step) == []
    assert partition.fired == [(320, 400)]
    assert partition.room.held == 3 * FULL // 4


def test_a_partition_that_waits_for_room_goes_on_with_all_else(partition: Partition) -> None:
    others = partition.others()
    batch = partition.comes()
    requests = Effects(moved=True)
    partition.engine.accept.return_value = requests
    assert partition.step() == [0.0], "a batch waits"
    assert partition.engine.accept.call_args.args[0] is batch
    partition.commits.commit.assert_called_once_with(partition.owned, requests, 1.0)
    manifest = Effects(moved=True)
    partition.upkeep.add_to.side_effect = lambda *_: manifest
    partition.upkeep.longest_s.return_value = 0.3
    assert partition.step() == [0.3], "as often as it shows that it lives, or is to renew its lease"
    assert partition.commits.commit.call_args.args[1] is manifest
    assert partition.owned.producer.serve.call_count == 2
    assert partition.fired == []
    partition.upkeep.add_to.side_effect = lambda _owned, effects, *_: effects
    with others[1]:
        pass
    assert partition.step() == [0.0]
    assert partition.fired == [(320, 1_600)]


def test_a_partition_that_takes_much_in_has_its_turn_to_fire(partition: Partition) -> None:
    """It never pauses, so room is given to it amid a step, in the order in which all came."""
    others = partition.others()
    partition.comes()
    partition.step()
    behind = StepShare(partition.room, MagicMock())
    behind.ask()

    def accept(*_: Any) -> Effects:
        with others[0]:
            return Effects(moved=True)

    partition.comes()
    partition.engine.accept.side_effect = accept
    partition.step()
    assert partition.fired == []
    assert (behind.parts, partition.steps._share.parts) == (0, FULL)
    partition.step()
    assert partition.fired == [(320, 1_600)]
    assert behind.parts == WORTHWHILE


def test_a_partition_that_waits_for_room_is_behind_and_does_not_linger(
    partition: Partition,
) -> None:
    """Room that it is given would lie idle in a rest, which nobody cuts short."""
    partition.others()
    partition.engine.drains = False
    clock: Any = partition.steps._clock
    for now_ms in (100, 200, 201):
        partition.guard.now_ms.return_value = now_ms
        clock.monotonic_ms.return_value = float(now_ms)
        partition.comes().records = ["a request"]
        step = partition.steps.step(partition.owned)
        assert next(step) == 0.0
        assert list(step) == []
    assert partition.fired == []


def test_a_step_fires_little_where_commits_hang(partition: Partition, clock: Clock) -> None:
    partition.others()
    assert partition.step() == [TIMEOUT_S]
    clock.now_s += 0.75
    assert partition.step() == [0.25], "somebody else woke it"
    clock.now_s += 0.25
    assert partition.fired == []
    assert partition.step() == [0.0]
    assert partition.step() == [0.0], "it does not wait anew"
    assert partition.fired == [(80, 100)] * 2
    assert partition.room.held == TOGETHER


def test_who_does_not_own_a_partition_any_more_waits_no_longer(partition: Partition) -> None:
    others = partition.others()
    partition.step()
    partition.steps.end_term()
    with others[0]:
        pass
    assert partition.room.held == 3 * FULL
    step = partition.steps.step(partition.owned)
    assert next(step) == 0.0
    step.close()  # type: ignore[attr-defined]
    assert partition.room.held == 3 * FULL
    partition.loop.wake.assert_not_called()


def test_who_is_fenced_off_while_it_waits_waits_no_longer(partition: Partition) -> None:
    others = partition.others()
    partition.upkeep.add_to.side_effect = lambda *_: Effects(moved=True)
    partition.step()
    partition.commits.commit.side_effect = Fenced("another owner")
    with pytest.raises(Fenced):
        partition.step()
    with others[0]:
        pass
    assert partition.room.held == 3 * FULL


def test_an_owner_that_ends_leaves_the_room_that_steps_share() -> None:
    kit, room = MagicMock(settings=Settings(), guard=ClockGuard(500)), StepRoom()
    kit.clock.monotonic_ms, kit.outputs.topics = float, 0
    kit.take_over.side_effect = Fenced("another owner")
    given = RunnerDependencies(kit, kit.guard, kit.outputs, LoopThreads(), room, kit)
    runner = PartitionRunner(3, given)
    runner._steps._share.ask()
    assert room.held == WORTHWHILE
    runner.start()
    assert runner.join(10)
    assert room.held == 0


@pytest.mark.parametrize(("due_ms", "may_fire"), [(None, True), (2, True), (1, False)])
def test_who_has_nothing_to_fire_any_more_leaves_the_room_to_others(
    partition: Partition, due_ms: int | None, may_fire: bool
) -> None:
    """What was due is cancelled or moved, or the clock is not trusted any more."""
    others = partition.others()
    partition.step()
    behind = StepShare(partition.room, MagicMock())
    behind.ask()
    with others[0]:
        pass
    partition.engine.next_due_ms.return_value = due_ms
    partition.guard.may_fire = may_fire
    partition.step()
    behind.wake.assert_called_once_with()  # type: ignore[attr-defined]
    assert partition.room.held == 3 * FULL + WORTHWHILE


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
