"""An owner renews its lease while it is read, gives it up in a move, and waits out another's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from belfry.api.workers.holdings import Holdings, NotHeld
from belfry.engine.effects import Effects
from belfry.engine.ownership import Event, Ownership
from belfry.engine.read_lease import LEASE_MS, RENEW_MS, ReadLease
from belfry.kafka.outcome import Fenced
from belfry.kafka.step_producer import Receipt
from belfry.partitions.leasing import OUTWAIT_MS
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from tests.unit.partitions.test_owner import Firing


class Owner(Firing):
    """A runner that has nothing to do but to prove what was read, and the holdings in front."""

    def __init__(self) -> None:
        super().__init__()
        self.engine.fire_due.side_effect = lambda *_: Effects()
        self.engine.sweep.side_effect = lambda *_: Effects()
        self.engine.claim.side_effect = lambda *_: Effects(moved=True)
        self.owned.keeps_state, self.owned.resigning = True, None
        self.owned.producer.lease, self.owned.lent_ms = ReadLease(), None
        self.lease = self.owned.producer.lease
        self.owned.committed, self.owned.rolled_back = self.lease.committed, self.lease.aborted
        self.sealed: list[bool] = []
        self.engine.seal.side_effect = lambda _epoch, *, read_lease: self.sealed.append(read_lease)
        self.runner.upkeep.committed(self.now_ms)
        owners: Any = SimpleNamespace(runner=lambda _partition: self.runner)
        tenants = Tenants("fired.", Delivery.PAYLOAD, Level.OUTCOMES)
        self.holdings = Holdings(owners, tenants, 4)

    def _commit(self, effects: Effects) -> Any:
        self.lease.serves()
        self.lease.sent(self.now_ms)
        return super()._commit(effects)

    def read(self) -> bool:
        """Whether what is read now is known to be the truth at once."""
        return self.holdings.proven(3, self.lease, self.now_ms)


def test_a_read_of_an_idle_owner_makes_it_prove_itself() -> None:
    owner = Owner()
    assert owner.step() is None
    assert not owner.read()
    read_ms = owner.now_ms
    assert owner.step() is not None
    assert owner.sealed == [True]
    assert owner.holdings.proven(3, owner.lease, read_ms)
    assert owner.step() is None, "one commit serves all who read meanwhile"


def test_while_somebody_reads_nobody_waits() -> None:
    owner = Owner()
    owner.read()
    owner.step()
    commits = len(owner.commits)
    for _ in range(200):
        owner.now_ms += 10
        assert owner.read()
        owner.step()
    assert len(owner.commits) - commits <= 2_000 / RENEW_MS
    owner.now_ms += LEASE_MS + RENEW_MS
    assert not owner.read(), "as after a SIGSTOP"


def test_who_is_fenced_answers_nothing_that_was_read_after_its_lease() -> None:
    owner = Owner()
    owner.read()
    owner.step()
    owner.now_ms += LEASE_MS + 1
    read_ms = owner.now_ms
    assert not owner.holdings.proven(3, owner.lease, read_ms)
    owner.ends = [Fenced("by a successor")]
    with pytest.raises(Fenced):
        owner.step()
    assert not owner.holdings.proven(3, owner.lease, read_ms)
    owner.runner.owned, owner.runner.state = None, Ownership.STOPPED
    with pytest.raises(NotHeld):
        owner.holdings.proven(3, owner.lease, read_ms)


def test_rows_of_a_former_term_are_not_proven_by_a_later_one() -> None:
    """Its last commit may have been visible while its rows were not in the store."""
    owner = Owner()
    assert not owner.read()
    former, owner.owned.producer.lease = owner.lease, ReadLease()
    with pytest.raises(NotHeld):
        owner.holdings.proven(3, former, owner.now_ms)


def test_in_a_rebalance_the_lease_is_given_up_at_once_and_each_read_waits_for_a_commit() -> None:
    owner = Owner()
    owner.read()
    owner.step()
    owner.runner.leasing.allow(False)
    assert owner.step() is not None
    assert owner.sealed == [True, False]
    owner.now_ms += 1
    assert not owner.read()
    read_ms = owner.now_ms
    owner.step()
    assert owner.sealed == [True, False, False]
    assert owner.holdings.proven(3, owner.lease, read_ms)
    owner.runner.leasing.allow(True)
    owner.now_ms += RENEW_MS + 1
    owner.read()
    owner.step()
    assert owner.sealed[-1]


class EndOfTest(Exception):
    """An owner has got as far as the test goes."""


class Successor(Owner):
    """An owner that takes over from `log`: appended manifests, as (instant, whether leased)."""

    def __init__(self, log: list[tuple[float, bool]], epoch: int, now_ms: float) -> None:
        super().__init__()
        self.now_ms, self.log = now_ms, log
        appended_ms, leased = log[-1]
        self.owned.lent_ms = appended_ms if leased else None
        self.owned.former_epoch, self.owned.epoch = epoch - 1, epoch
        self.owned.source.start.side_effect = EndOfTest
        self.waits_up_to_ms = float("inf")
        self.stops = False
        self.runner.owned = None
        opener: Any = self.runner._opener
        outputs: Any = self.runner._outputs
        outputs.topics, opener.take_over = 0, self._take_over
        stopping: Any = MagicMock(wait=self._wait)
        self.runner._stopping = stopping

    def _take_over(self, term: Any) -> Any:
        term.moved(Event.CAUGHT_UP)
        term.moved(Event.FENCED)
        return self.owned

    def _commit(self, effects: Effects) -> Any:
        receipt = super()._commit(effects)
        self.log.append((self.now_ms, self.sealed[-1]))
        return Receipt(0, receipt.sent_ms, int(self.now_ms), 0.0, 0.0)

    def _wait(self, seconds: float) -> bool:
        end_ms = self.now_ms + seconds * 1000
        self.now_ms = min(end_ms, self.waits_up_to_ms)
        if end_ms > self.waits_up_to_ms and not self.stops:
            raise EndOfTest
        return self.stops

    def takes_over(self) -> float:
        """When it begins to change something, or has ended before."""
        self.runner.state = Ownership.IDLE
        with pytest.raises(EndOfTest):
            self.runner._begin_term()
        return self.now_ms


@pytest.mark.parametrize("stops", [False, True], ids=["crashes", "stops"])
def test_of_three_owners_in_turn_the_last_one_waits_for_the_first_ones_lease(stops: bool) -> None:
    """B is fenced, or gives the partition on, while it still waits for A's lease.

    A    1000 manifest, lease ├──── answers reads ────┤ 1800
    B         1100 first manifest ├─ waits ─ 1300
    C                                        1310 first manifest ├─ has to wait ─┤ changes
    """
    frozen = ReadLease()
    frozen.asked(1_000.0)
    assert frozen.begin(1_000.0, may=True)
    frozen.sent(1_000.0)
    frozen.committed()
    log = [(1_000.0, True)]
    second = Successor(log, 6, 1_100.0)
    second.waits_up_to_ms, second.stops = 1_300.0, stops
    assert second.takes_over() == 1_300.0
    third = Successor(log, 7, 1_310.0)
    changes_ms = third.takes_over()
    assert [appended_ms for appended_ms, _ in log] == [1_000.0, 1_100.0, 1_310.0]
    assert not frozen.covers(changes_ms), "what A answers is what C has changed since"
    assert changes_ms <= 1_100.0 + OUTWAIT_MS


def test_who_has_waited_for_a_lease_tells_no_more_of_it() -> None:
    owner = Successor([(1_000.0, True)], 6, 1_100.0)
    owner.takes_over()
    assert owner.now_ms == 1_000.0 + OUTWAIT_MS
    owner.runner.upkeep.committed(0.0)
    owner.runner.upkeep.idle_commit_ms = 1.0
    list(owner.runner._steps.step(owner.owned))
    assert owner.sealed == [True, False]


@pytest.mark.parametrize(
    ("lent_ms", "former_epoch", "waits_ms"),
    [(None, 6, 0), (100, 6, OUTWAIT_MS), (100, 7, 0)],
    ids=["no lease", "another's lease", "its own"],
)
def test_a_new_owner_changes_nothing_before_its_predecessors_lease_is_over(
    lent_ms: int | None, former_epoch: int, waits_ms: float
) -> None:
    owner = Owner()
    owner.owned.lent_ms, owner.owned.former_epoch, owner.owned.epoch = None, None, 7
    leasing, waited = owner.runner.leasing, list[float]()
    leasing.outwait(owner.owned, waited.append)
    leasing.appended_ms = 100
    owner.owned.lent_ms, owner.owned.former_epoch = lent_ms, former_epoch
    leasing.outwait(owner.owned, waited.append)
    assert waited == [0, waits_ms / 1000]
