"""A take-over fences only while there is a reason to: the group's word, or a silent owner.

And what an owner does when nothing comes in.
"""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.engine.effects import Effects
from belfry.engine.ownership import Event, Ownership
from belfry.engine.partition import PartitionEngine
from belfry.engine.read_lease import ReadLease
from belfry.engine.reports import SourcePartition
from belfry.firing.clock_guard import ClockGuard
from belfry.host.loop_threads import LoopThreads
from belfry.kafka.outcome import Aborted, Fenced, Unknown
from belfry.kafka.step_producer import Receipt
from belfry.partitions.failure import PAUSE_AFTER_ERROR_S, PAUSE_LEFT_S
from belfry.partitions.forwarding import RENEW_MS
from belfry.partitions.owner import PartitionRunner
from belfry.partitions.pacing import FEW, LINGER_MS
from belfry.partitions.step_shares import StepRoom
from belfry.partitions.supervisor import HANGS_MS
from belfry.partitions.surroundings import RunnerDependencies
from belfry.recovery.takeover import LeftToOthers
from belfry.schedules.identity import Homes
from belfry.settings import Settings
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.wire.batch import SourceBatch
from belfry.wire.requests import RequestReader


def runner_of(partition: int, kit: Any) -> PartitionRunner:
    """A runner of which one object is all that it asks."""
    given = RunnerDependencies(kit, kit.guard, kit.outputs, LoopThreads(), StepRoom(), kit)
    return PartitionRunner(partition, given)


@pytest.mark.parametrize(
    ("at_first", "at_the_fence", "fences"),
    [(True, True, True), (True, False, False), (False, False, True)],
    ids=["assigned", "moved meanwhile", "ahead of the group"],
)
def test_who_lost_a_partition_while_taking_it_over_fences_nobody(
    at_first: bool, at_the_fence: bool, fences: bool
) -> None:
    fenced: list[int] = []

    def take_over(term: Any) -> None:
        runner.assigned = at_the_fence
        term.moved(Event.CAUGHT_UP)
        fenced.append(term.partition)
        raise Fenced("the end of this test")

    kit = MagicMock(
        clock=SimpleNamespace(monotonic_ms=float),
        guard=ClockGuard(500),
        settings=Settings(),
        take_over=take_over,
        outputs=SimpleNamespace(topics=0),
        watch=MagicMock(),
        trust=MagicMock(),
    )
    runner = runner_of(3, kit)
    runner.assigned = at_first
    runner.start()
    assert runner.join(10)
    assert fenced == [3] * fences
    assert runner.state is Ownership.STOPPED


@pytest.mark.parametrize(
    ("blocked", "anybody", "did"),
    [
        (True, True, ["held"]),
        (True, False, ["held", PAUSE_AFTER_ERROR_S]),
        (False, True, [PAUSE_AFTER_ERROR_S]),
    ],
    ids=["a tenant's topic", "a topic of belfry's own", "another cause"],
)
def test_who_may_not_write_waits_before_the_partition_is_taken_over_again(
    blocked: bool, anybody: bool, did: list[str | float]
) -> None:
    """At once where that mends it; where it does not, never without a pause."""
    found: list[str | float] = []
    ends: list[Exception] = [Unknown("nothing to abort", blocked=blocked), Fenced("the end")]

    def take_over(_term: Any) -> None:
        raise ends.pop(0)

    def hold(topics: dict[str, str]) -> bool:
        assert not topics
        found.append("held")
        return anybody

    kit = MagicMock(
        clock=SimpleNamespace(monotonic_ms=float),
        guard=ClockGuard(500),
        settings=Settings(),
        take_over=take_over,
        outputs=SimpleNamespace(hold=hold, topics=0),
        watch=MagicMock(),
        trust=MagicMock(),
    )
    runner = runner_of(3, kit)
    stopping: Any = SimpleNamespace(is_set=lambda: False, wait=found.append)
    runner._stopping = stopping
    runner.start()
    assert runner.join(10)
    assert found == did
    assert not ends


def test_an_added_partition_says_its_position_again_before_it_is_forgotten() -> None:
    """Kafka forgets the offsets of a group without members, and idle partitions commit none."""
    now = SimpleNamespace(ms=0.0)
    said: list[tuple[float, int]] = []

    def commit(effects: Effects) -> Receipt:
        assert effects.manifest is not None
        said.append((now.ms, effects.manifest.position))
        if len(said) == 3:
            runner.stop()
        return Receipt(0, 0.0, None, 0.0, 0.0)

    def wait() -> Any:
        now.ms += RENEW_MS / 8
        return now.ms

    store = ScheduleStore(MemoryMap())
    tenants = Tenants("fired.", Delivery.PAYLOAD, Level.OUTCOMES)
    engine = PartitionEngine(SourcePartition("in", 7, Homes(4)), store, RequestReader(), tenants)
    engine.begin_at(41)
    owned = MagicMock(
        engine=engine, keeps_state=False, tenant_inputs=None, epoch=1, new_settings=None
    )
    owned.source, owned.new_identity = MagicMock(failure=None, end=41), None
    owned.producer.lease, owned.lent_ms = ReadLease(), None
    owned.producer.commit = commit

    def take_over(term: Any) -> MagicMock:
        term.moved(Event.CAUGHT_UP)
        term.moved(Event.FENCED)
        return owned

    kit = MagicMock(take_over=take_over, settings=Settings(catch_up_limit_ms=0))
    kit.outputs.topics = 0
    kit.guard.may_fire = False
    kit.clock = SimpleNamespace(monotonic_ms=wait, wall_ms=wait, both_ms=lambda: (now.ms, now.ms))
    runner = runner_of(7, kit)
    runner.upkeep.idle_commit_ms = 1.0
    runner.start()
    assert runner.join(10)
    assert not runner.failures.problem
    assert [position for _, position in said] == [41, 41, 41]
    pauses = [b - a for (a, _), (b, _) in pairwise(said)]
    assert all(RENEW_MS <= pause <= 2 * RENEW_MS for pause in pauses)


def taking_over(now: list[float], take_over: Any) -> PartitionRunner:
    """A runner that takes over so; the list's only number is its clock."""
    kit = MagicMock(settings=Settings(), take_over=take_over)
    kit.outputs.topics = 0
    kit.clock = SimpleNamespace(
        monotonic_ms=lambda: now[0], wall_ms=lambda: now[0], both_ms=lambda: (now[0], now[0])
    )
    return runner_of(3, kit)


@pytest.mark.parametrize("rolled_back", [0, 300], ids=["at once", "its claim fails for long"])
def test_a_long_take_over_is_no_loop_that_hangs(rolled_back: int) -> None:
    now, seen, ends = [0.0], list[float](), [Aborted("refused")] * rolled_back
    owned = MagicMock(tenant_inputs=None, lent_ms=None)

    def take_over(term: Any) -> MagicMock:
        now[0] += 600_000
        term.moved(Event.CAUGHT_UP)
        term.moved(Event.FENCED)
        return owned

    def commit(_effects: Effects) -> Receipt:
        assert runner.owned is owned
        seen.append(runner.turned_ms_ago(now[0]))
        if ends:
            raise ends.pop()
        raise Fenced("the end of this test")

    def wait(seconds: float) -> bool:
        now[0] += seconds * 1000
        return False

    owned.producer.commit = commit
    runner = taking_over(now, take_over)
    stopping: Any = SimpleNamespace(is_set=lambda: False, wait=wait)
    runner._stopping = stopping
    runner.start()
    assert runner.join(10)
    assert len(seen) == rolled_back + 1
    assert max(seen) < HANGS_MS


def test_who_is_to_stop_does_not_repeat_a_claim_that_is_rolled_back() -> None:
    owned = MagicMock(tenant_inputs=None, lent_ms=None)

    def take_over(term: Any) -> MagicMock:
        term.moved(Event.CAUGHT_UP)
        term.moved(Event.FENCED)
        return owned

    def commit(_effects: Effects) -> Receipt:
        runner.stop()
        raise Aborted("refused")

    owned.producer.commit = commit
    runner = taking_over([0.0], take_over)
    runner.start()
    assert runner.join(2)


def test_what_is_left_to_others_is_no_failure_of_this_worker() -> None:
    waits: list[float] = []

    def take_over(_term: Any) -> None:
        if len(waits) == 3:
            raise Fenced("the end of this test")
        raise LeftToOthers("1 schedules cannot be fired by this worker")

    runner = taking_over([0.0], take_over)
    stopping: Any = SimpleNamespace(is_set=lambda: False, wait=waits.append)
    runner._stopping = stopping
    runner.start()
    assert runner.join(10)
    assert waits == [PAUSE_LEFT_S] * 3
    assert runner.failures.since_ms is None
    assert runner.failures.problem == "1 schedules cannot be fired by this worker"


class Firing:
    """A runner without threads: each step fires or takes in something, by a clock of its own.

    `commits` are the instants of its transactions, `ends` what goes wrong with the next ones.
    """

    def __init__(self, *, asked: bool = True) -> None:
        self.now_ms = 100.0
        self.next_in_ms = 1
        self.commits: list[float] = []
        self.ends: list[Exception] = []
        effects = Effects(fired=[("t", b"k", None, b"v", [])])
        self.engine = MagicMock(position=0, sweeps_behind=False, drains=False)
        self.engine.effects, self.engine.changed = effects, 1
        self.engine.next_due_ms.side_effect = lambda: self.now_ms + self.next_in_ms
        self.engine.fire_due.side_effect = lambda *_: effects
        self.engine.accept.side_effect = self._accept
        self.effects, self.most = effects, 1_000
        self.engine.aside.any = False
        self.owned = MagicMock(engine=self.engine, tenant_inputs=None, keeps_state=False)
        self.owned.resolver.deferred.any = self.owned.resolver.too_many = False
        self.owned.source.failure, self.owned.source.end = None, 0
        self.owned.producer.commit = self._commit
        self.owned.producer.lease = ReadLease()
        kit = MagicMock(settings=Settings(), is_asked_often=lambda: asked, day_store=None)
        kit.clock = SimpleNamespace(
            monotonic_ms=lambda: self.now_ms,
            wall_ms=lambda: self.now_ms,
            both_ms=lambda: (self.now_ms, self.now_ms),
        )
        kit.guard.skew_ms, kit.guard.now_ms = 0.0, lambda wall_ms: wall_ms
        kit.guard.wants_probe = lambda _now_ms: False
        self.runner = runner_of(3, kit)
        self.runner.state, self.runner.owned = Ownership.FIRING, self.owned
        self.runner._stopping = MagicMock(wait=self._sleep)

    def step(self, *batches: SourceBatch) -> float | None:
        """One step, before which these batches have come; when it was committed, or None."""
        before = len(self.commits)
        for batch in batches:
            self.runner.deliver(0, batch)
        for pause_s in self.runner._steps.step(self.owned):
            # What is due is so at once: only rests take time.
            rests = self.runner._steps._waiting is not None
            if pause_s is not None and (rests or pause_s > self.next_in_ms / 1000):
                self._sleep(pause_s)
        return self.commits[-1] if self.commits[before:] else None

    def _accept(self, batch: SourceBatch, *_: object) -> Effects:
        self.engine.position = min(batch.start + self.most, batch.next_position)
        return self.effects

    def _commit(self, _effects: Effects) -> Receipt:
        if self.ends:
            raise self.ends.pop(0)
        self.commits.append(self.now_ms)
        return Receipt(0, 0.0, None, 0.0, 0.0)

    def _sleep(self, seconds: float) -> None:
        self.now_ms += seconds * 1000


def batch(start: int, records: int = 0) -> SourceBatch:
    """A batch of so many requests, of which nobody looks into any."""
    return SourceBatch(start, start + max(records, 1), [(start, 0, b"", b"", None)] * records)


def test_what_comes_in_a_rest_goes_into_one_transaction() -> None:
    """After a small step, while somebody waits for an answer over HTTP."""
    firing = Firing()
    assert firing.step() == 100.0
    assert firing.step(batch(0), batch(1)) == 100.0 + LINGER_MS
    assert firing.engine.accept.call_args.args[0] == SourceBatch(0, 2, [], parts=2)
    firing.owned.source.taken.assert_called_once_with(2)
    # They leave what was due at the step before already: nobody rests.
    firing.next_in_ms = -3 * int(LINGER_MS)
    assert [firing.step() for _ in range(3)] == [100.0 + 2 * LINGER_MS] * 3
    # Nor does who has a backlog to fire, whatever is due otherwise.
    firing.next_in_ms, firing.engine.drains = 1, True
    assert [firing.step() for _ in range(2)] == [100.0 + 2 * LINGER_MS] * 2


def test_who_is_woken_in_a_rest_goes_on_right_after_it() -> None:
    """A reader over HTTP waits for a commit for a second at most, as long as an idle pause."""
    firing = Firing()
    firing.step()
    firing.next_in_ms = 60_000
    pauses = firing.runner._steps.step(firing.owned)
    assert next(pauses) == LINGER_MS / 1000
    firing.runner._loop.wake()
    # Woken amid the rest, the loop has a turn: what is left of the rest is waited for.
    assert next(pauses) == LINGER_MS / 1000
    firing.now_ms += LINGER_MS
    assert next(pauses) == 0.0
    assert [*pauses] == []
    firing.now_ms += LINGER_MS
    # Once: the next pause is as long as any.
    assert next(firing.runner._steps.step(firing.owned))


def test_nobody_rests_where_few_ask_or_nobody() -> None:
    firing = Firing(asked=False)
    assert [firing.step(batch(0)), firing.step(batch(1))] == [100.0, 100.0]


def test_who_takes_in_many_requests_does_not_rest() -> None:
    firing = Firing()
    assert [firing.step(batch(0, FEW)), firing.step(batch(FEW, 1))] == [100.0, 100.0]
    assert firing.step() == 100.0 + LINGER_MS


def test_joined_batches_of_a_step_that_was_rolled_back_are_taken_in_together_again() -> None:
    firing = Firing()
    firing.ends = [Aborted("the broker was away", {})]
    assert firing.step(batch(0, 1), batch(1, 2)) is None
    firing.engine.aborted.assert_called_once_with()
    firing.owned.source.taken.assert_not_called()
    assert firing.step(batch(3, 1)) is not None
    taken_in = [call.args[0] for call in firing.engine.accept.call_args_list]
    assert [(each.start, each.next_position, each.parts) for each in taken_in] == [(0, 3, 2)] * 2
    firing.owned.source.taken.assert_called_once_with(2)
    firing.step()
    assert firing.engine.accept.call_args.args[0].start == 3


def test_what_a_step_leaves_of_a_batch_goes_into_the_next_at_once() -> None:
    """It was read, so it keeps its room until all of it has been taken in."""
    firing = Firing()
    firing.most = 4
    assert firing.step(batch(0, 10)) == 100.0
    taken = firing.owned.source.taken
    taken.assert_not_called()
    assert firing.step() == 100.0
    assert firing.engine.accept.call_args.args[0].start == 4
    taken.assert_not_called()
    assert firing.step() == 100.0
    taken.assert_called_once_with(1)


def test_the_rest_of_a_batch_is_done_again_with_its_step() -> None:
    firing = Firing()
    firing.most = 4
    firing.step(batch(0, 6))
    firing.ends = [Aborted("no", {})]
    assert firing.step() is None
    assert firing.step() is not None
    assert [call.args[0].start for call in firing.engine.accept.call_args_list] == [0, 4, 4]
    firing.owned.source.taken.assert_called_once_with(1)
