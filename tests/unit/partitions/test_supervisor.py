"""What ended here: it is shown as owned no more, and who owns it is settled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.balance.assignment import Assignment
from belfry.balance.assignment_map import IDLE_COMMIT_MS, MemberMetadata
from belfry.balance.owners import even
from belfry.engine.ownership import Ownership
from belfry.group.group import Group, Surroundings
from belfry.host import machine
from belfry.partitions import rivals
from belfry.partitions import supervisor as module
from belfry.partitions.supervisor import Owners
from belfry.partitions.upkeep import HEARTBEAT_MS
from belfry.placement.partition_count import PartitionCount


def test_an_assignment_takes_the_gauges_of_ended_runners_away() -> None:
    lost: list[int] = []
    opener: Any = SimpleNamespace(metrics=SimpleNamespace(lost=lost.append), settings=None)
    owners = Owners(opener, MagicMock(), Group(MemberMetadata("one")))
    leases: list[tuple[int, bool]] = []
    ended: Any = SimpleNamespace(partition=3, alive=False, leasing=SimpleNamespace(allow=bool))
    going: Any = SimpleNamespace(
        partition=1, alive=True, leasing=SimpleNamespace(allow=lambda may: leases.append((1, may)))
    )
    owners._runners |= {3: ended, 1: going}
    owners.assign([0, 1])
    assert lost == [3]
    assert owners.runners() == [going]
    owners.assign([0])
    assert leases == [(1, True), (1, False)]


def test_who_takes_a_partition_over_says_so_and_who_owns_it_has_the_better_claim() -> None:
    """Else a second rebalance would give it to somebody else, who begins anew."""

    def runner(partition: int, epoch: int | None, **but: Any) -> Any:
        usual = {
            "alive": True,
            "assigned": True,
            "failures": SimpleNamespace(since_ms=None),
            "leasing": SimpleNamespace(allow=lambda may: leases.append((partition, may))),
        }
        return SimpleNamespace(partition=partition, epoch=epoch, **usual | but)

    opener: Any = SimpleNamespace(settings=None)
    owners = Owners(opener, MagicMock(), Group(MemberMetadata("one")))
    leases: list[tuple[int, bool]] = []
    found = [
        runner(0, 7),
        runner(1, None),
        runner(2, None, assigned=False),
        runner(3, None, failures=SimpleNamespace(since_ms=1.0)),
        runner(4, 7, alive=False),
    ]
    owners._runners |= {each.partition: each for each in found}
    owns, _ = owners.holdings()
    assert owns == {0: 7, 1: module.NO_EPOCH}
    assert leases == [(partition, False) for partition in range(5)]
    late = MemberMetadata("two", owns={1: 0}).member("two")
    mine = MemberMetadata("one", owns=owns).member("one")
    assert even([0, 1], [mine, late]) == {0: "one", 1: "two"}
    gone = MemberMetadata("two", warm=(1,)).member("two")
    assert even([1], [mine, gone]) == {1: "one"}


def test_a_heartbeat_vouches_for_loops_that_come_round() -> None:
    """Not for what is being taken over, has ended, or hangs."""

    def runner(partition: int, turned_ms: float, **but: Any) -> Any:
        usual = {"alive": True, "owned": object()}
        return SimpleNamespace(
            partition=partition, turned_ms_ago=lambda now_ms: now_ms - turned_ms, **usual | but
        )

    heartbeats: Any = SimpleNamespace()
    opener: Any = SimpleNamespace(
        clock=SimpleNamespace(monotonic_ms=lambda: 10_000.0), settings=None
    )
    owners = Owners(opener, MagicMock(), Group(MemberMetadata("one")), heartbeats)
    found = [
        runner(0, 9_000.0),
        runner(1, 10_000.0 - module.HANGS_MS),
        runner(2, 9_000.0, owned=None),
        runner(3, 9_000.0, alive=False),
    ]
    owners._runners |= {each.partition: each for each in found}
    assert owners.well() == [0]


@pytest.mark.parametrize(("owned", "every_ms"), [(1, 1_000), (16, 1_000), (64, 4_000)])
def test_a_worker_of_many_partitions_sweeps_each_of_them_less_often(
    owned: int, every_ms: int
) -> None:
    """A sweep costs half a millisecond, however little there is to forget."""
    owners = Owners(MagicMock(), MagicMock(), Group(MemberMetadata("one")))
    for partition in range(owned):
        upkeep = SimpleNamespace(proves_every_ms=lambda _often_ms: HEARTBEAT_MS)
        owners._runners[partition] = MagicMock(partition=partition, upkeep=upkeep)
    owners._set_paces(Assignment())
    assert {each.upkeep.sweep_every_ms for each in owners.runners()} == {every_ms}


@pytest.mark.parametrize(
    ("assigned", "commits_for", "acknowledged", "young", "often"),
    [
        (True, (), True, False, False),
        (True, (3,), True, False, True),
        (False, (), True, False, True),
        (True, (), False, False, True),
        # A former owner that was slow to take over may have fenced it.
        (True, (), True, True, True),
    ],
)
def test_an_owner_commits_often_only_where_heartbeats_do_not_tell(
    assigned: bool, commits_for: tuple[int, ...], acknowledged: bool, young: bool, often: bool
) -> None:
    heartbeats: Any = SimpleNamespace(acknowledged=lambda: acknowledged)
    owners = Owners(MagicMock(), MagicMock(), Group(MemberMetadata("one")), heartbeats)
    runner: Any = SimpleNamespace(
        partition=3,
        assigned=assigned,
        upkeep=SimpleNamespace(
            idle_commit_ms=0.0,
            proves_every_ms=lambda often_ms: often_ms if young else HEARTBEAT_MS,
        ),
    )
    owners._runners[3] = runner
    owners._set_paces(Assignment(commits_for=commits_for))
    assert runner.upkeep.idle_commit_ms == (IDLE_COMMIT_MS if often else HEARTBEAT_MS)


def test_who_is_fenced_off_what_the_group_gave_it_asks_the_group_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a former owner that was late keeps a partition until a session is over."""
    now = [0.0]
    monkeypatch.setattr(machine, "monotonic", lambda: now[0])
    settings = SimpleNamespace(session_timeout_ms=30_000)
    opener: Any = SimpleNamespace(
        settings=settings, metrics=SimpleNamespace(lost=lambda _: None), clock=MagicMock()
    )
    asked: list[float] = []
    group = Group(MemberMetadata("one"))
    group.connect(Surroundings(rejoin=lambda: asked.append(now[0])))
    owners = Owners(opener, MagicMock(), group)
    owners.assign([3])
    fenced: Any = SimpleNamespace(
        partition=3,
        alive=False,
        state=Ownership.STOPPED,
        assigned=True,
        preemptive=False,
        upkeep=SimpleNamespace(idle_commit_ms=0.0, proves_every_ms=lambda _often_ms: HEARTBEAT_MS),
    )
    owners._runners[3] = fenced
    monkeypatch.setattr(owners, "_stand_by", lambda *_, **__: None)
    for tenths in range(290):
        now[0] = tenths / 10
        owners._reconcile({3}, Assignment())
    assert asked == [rivals.ASK_S]
    assert owners.runners() == [fenced]
    owners.assign([3])
    assert owners.runners() == []


@pytest.mark.parametrize(("partition", "followed"), [(1, [1]), (2, [])])
def test_a_partition_without_state_is_not_stood_by_for_while_its_owner_backs_off(
    monkeypatch: pytest.MonkeyPatch, partition: int, followed: list[int]
) -> None:
    """Partition 2 was added to the input: it has no changelog, and nothing would be closed."""
    opener: Any = SimpleNamespace(settings=None, counted=PartitionCount(2))
    owners = Owners(opener, MagicMock(), Group(MemberMetadata("one")))
    asked: list[int] = []
    follow = lambda number, *_, **__: asked.append(number)  # noqa: E731
    monkeypatch.setattr(owners, "_standbys", SimpleNamespace(follow=follow))
    owners._runners[partition] = SimpleNamespace(alive=False)  # type: ignore[assignment]
    owners._stand_by(partition, Assignment(), watched=False)
    assert asked == followed
