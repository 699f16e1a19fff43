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
from belfry.engine.verdicts import Place
from belfry.schedules.identity import Homes
from belfry.schedules.tenant import Delivery, Level, Tenants
from belfry.settings import Settings
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.wire.batch import SourceBatch
from belfry.wire.requests import RequestReader
from belfry.worker.ingress import RENEW_MS
from belfry.worker.outcome import Fenced, Unknown
from belfry.worker.rests import REST_MS
from belfry.worker.runner import MOST_ENDS, PAUSE_AFTER_ERROR_S, PartitionRunner
from belfry.worker.transactions import Receipt


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
        runner.rightful = at_the_fence
        term.moved(Event.CAUGHT_UP)
        fenced.append(term.partition)
        raise Fenced("the end of this test")

    kit: Any = SimpleNamespace(
        clock=SimpleNamespace(monotonic_ms=float),
        settings=Settings(),
        take_over=take_over,
        outputs=SimpleNamespace(topics=0),
    )
    runner = PartitionRunner(3, kit)
    runner.rightful = at_first
    runner.start()
    assert runner.join(10)
    assert fenced == [3] * fences
    assert runner.state is Ownership.STOPPED


@pytest.mark.parametrize(
    ("barred", "anybody", "did"),
    [
        (True, True, ["held"]),
        (True, False, ["held", PAUSE_AFTER_ERROR_S]),
        (False, True, [PAUSE_AFTER_ERROR_S]),
    ],
    ids=["a tenant's topic", "a topic of belfry's own", "another cause"],
)
def test_who_may_not_write_waits_before_the_partition_is_taken_over_again(
    barred: bool, anybody: bool, did: list[str | float]
) -> None:
    """At once where that mends it; where it does not, never without a pause."""
    found: list[str | float] = []
    ends: list[Exception] = [Unknown("nothing to abort", barred=barred), Fenced("the end")]

    def take_over(_term: Any) -> None:
        raise ends.pop(0)

    def hold(topics: dict[str, str]) -> bool:
        assert not topics
        found.append("held")
        return anybody

    kit: Any = SimpleNamespace(
        clock=SimpleNamespace(monotonic_ms=float),
        settings=Settings(),
        take_over=take_over,
        outputs=SimpleNamespace(hold=hold, topics=0),
    )
    runner = PartitionRunner(3, kit)
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
    engine = PartitionEngine(Place("in", 7, Homes(4)), store, RequestReader(), tenants)
    engine.begin_at(41)
    owned = MagicMock(engine=engine, keeps_state=False, inlets=None, epoch=1, new_settings=None)
    owned.source = MagicMock(failure=None, end=41)
    owned.source_end, owned.end_asked_ms, owned.producer.commit = 0, 0.0, commit
    owned.ends_asked = MOST_ENDS

    def take_over(term: Any) -> MagicMock:
        term.moved(Event.CAUGHT_UP)
        term.moved(Event.FENCED)
        return owned

    kit = MagicMock(take_over=take_over, settings=Settings(catch_up_limit_ms=0))
    kit.outputs.topics = 0
    kit.guard.may_fire = False
    kit.clock = SimpleNamespace(monotonic_ms=wait, wall_ms=wait, both_ms=lambda: (now.ms, now.ms))
    runner = PartitionRunner(7, kit)
    runner.beat_ms = 1.0
    runner.start()
    assert runner.join(10)
    assert not runner.problem
    assert [position for _, position in said] == [41, 41, 41]
    pauses = [b - a for (a, _), (b, _) in pairwise(said)]
    assert all(RENEW_MS <= pause <= 2 * RENEW_MS for pause in pauses)


def test_what_comes_in_a_rest_goes_into_one_transaction() -> None:
    """After a small step, while somebody waits for an answer over HTTP."""
    now, more_in_ms = SimpleNamespace(ms=100.0), 1
    commits: list[float] = []

    def commit(_effects: Effects) -> Receipt:
        commits.append(now.ms)
        return Receipt(0, 0.0, None, 0.0, 0.0)

    def sleep(seconds: float) -> None:
        now.ms += seconds * 1000

    fired = Effects(fired=[("t", b"k", None, b"v", [])])
    engine = MagicMock(position=0, sweeps_behind=False, drains=False)
    engine.next_due_ms.side_effect = lambda: now.ms + more_in_ms
    engine.fire_due.side_effect = engine.accept.side_effect = lambda *_: fired
    owned = MagicMock(engine=engine, inlets=None, keeps_state=False)
    owned.source.failure, owned.source.end = None, 0
    owned.producer.commit = commit
    kit = MagicMock(settings=Settings(), is_asked=lambda: True)
    kit.clock = SimpleNamespace(
        monotonic_ms=lambda: now.ms,
        wall_ms=lambda: now.ms,
        both_ms=lambda: (now.ms, now.ms),
    )
    kit.guard.skew_ms, kit.guard.now_ms = 0.0, lambda wall_ms: wall_ms
    kit.guard.wants_probe = lambda _now_ms: False
    runner = PartitionRunner(3, kit)
    runner.state, runner.owned = Ownership.FIRING, owned
    runner._stopping = MagicMock(wait=sleep)

    runner._step(owned)
    runner.deliver(0, SourceBatch(0, 1, []))
    runner.deliver(0, SourceBatch(1, 2, []))
    runner._step(owned)
    assert commits == [100.0, 100.0 + REST_MS]
    assert engine.accept.call_args.args[0] == SourceBatch(0, 2, [], parts=2)
    owned.source.taken.assert_called_once_with(2)
    # They leave what was due at the step before already: nobody rests.
    more_in_ms = -3 * int(REST_MS)
    for _ in range(3):
        runner._step(owned)
    assert commits[2:] == [100.0 + 2 * REST_MS] * 3
    # Nor does who has a backlog to fire, whatever is due otherwise.
    more_in_ms, engine.drains = 1, True
    for _ in range(2):
        runner._step(owned)
    assert commits[5:] == [100.0 + 2 * REST_MS] * 2
