"""An owner renews its lease while it is read, gives it up in a move, and waits out another's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from belfry.api.holdings import NotHeld
from belfry.engine.effects import Effects
from belfry.engine.ownership import Ownership
from belfry.schedules.tenant import Delivery, Level
from belfry.schedules.tenants import Tenants
from belfry.worker.holdings import Holdings
from belfry.worker.lease import LEASE_MS, OUTWAIT_MS, RENEW_MS, ReadLease
from belfry.worker.outcome import Fenced
from tests.unit.worker.test_runner import Firing


class Owner(Firing):
    """A runner that has nothing to do but to prove what was read, and the holdings in front."""

    def __init__(self) -> None:
        super().__init__()
        self.engine.fire_due.side_effect = lambda *_: Effects()
        self.engine.sweep.side_effect = lambda *_: Effects()
        self.engine.claim.side_effect = lambda *_: Effects(moved=True)
        self.owned.keeps_state = True
        self.owned.producer.lease = self.lease = ReadLease()
        self.sealed: list[bool] = []
        self.engine.seal.side_effect = lambda _epoch, *, read_lease: self.sealed.append(read_lease)
        self.runner._beaten_ms = self.now_ms
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
    leasing = owner.runner.leasing
    assert leasing.outwait_s(owner.owned) == 0
    leasing.appended_ms = 100
    owner.owned.lent_ms, owner.owned.former_epoch = lent_ms, former_epoch
    assert leasing.outwait_s(owner.owned) == waits_ms / 1000
