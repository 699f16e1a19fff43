"""The partitions that this worker holds, for those who only read them.

A schedule lives in one partition, its home, and each partition is held by one worker at a time.
Reads go to the holder, see what has been committed and nothing else, and never wait for the engine.

Another thread than the partition's own may look into its RocksDB at any time: the store holds what
has been committed and nothing else.  What may happen meanwhile is that the partition is given up,
and then the read fails with `NotHeld` and is to be asked again, of the next owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from rocksdict import DbClosedError

from belfry.engine.drained import Drained
from belfry.engine.ownership import Ownership
from belfry.engine.read_lease import ReadLease
from belfry.host.rocks import RocksMap
from belfry.partitions.supervisor import Owners
from belfry.partitions.term import Owned
from belfry.placement.key_groups import KeyGroups
from belfry.schedules.identity import Homes
from belfry.store.group_lookup import lies_at
from belfry.store.ordered_map import OrderedMap
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import EffectivePolicy, Level, Tenant
from belfry.tenants.payload_keys import PayloadKeys
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.waits import Wait, Why, why_not_firing

# In both states the store is the changelog up to its end, and nobody else writes to it.
HOLDING: Final = frozenset({Ownership.TAKING_IN, Ownership.FIRING})
T = TypeVar("T")
_DEFAULT: Final = TenantPolicy("")


class NotHeld(Exception):
    """This worker does not hold the partition, or not any more."""

    def __init__(self, partition: int) -> None:
        super().__init__(f"partition {partition} is not held here")
        self.partition = partition


class Holdings:
    """The partitions of one worker; every method is quick and may be called from any thread."""

    def __init__(self, owners: Owners, tenants: Tenants, partitions: int) -> None:
        self.partitions = partitions
        self._owners = owners
        self._tenants = tenants
        self._homes = Homes(partitions)
        self._groups = KeyGroups(partitions)

    def home_of(self, tenant: str, schedule_id: str) -> int:
        """The partition in which a schedule lives."""
        return self._homes.of(tenant, schedule_id, self._spread(tenant))

    def former_homes_of(self, tenant: str, schedule_id: str) -> list[int]:
        """Partitions in which it may live since the tenant was spread otherwise."""
        now = self.home_of(tenant, schedule_id)
        former = [self._homes.of(tenant, schedule_id, spread) for spread in self._former(tenant)]
        return [home for home in dict.fromkeys(former) if home != now]

    def homes_of(self, tenant: str) -> list[int]:
        """All partitions in which a tenant may have schedules, in their order."""
        found: set[int] = set()
        for spread in (self._spread(tenant), *self._former(tenant)):
            if spread == 1:
                found.add(self._homes.of(tenant))
            else:
                found |= {self._homes.shard(tenant, number) for number in range(spread)}
        return sorted(found)

    def tenant(self, tenant: str) -> Tenant | None:
        """This worker's facts on a tenant; a question must not create the tenant."""
        return self._tenants.known(tenant.encode())

    def level(self, tenant: str) -> Level:
        """Which lifecycle records a tenant gets, whether this worker has met it or not."""
        known = self.tenant(tenant)
        if known is not None:
            return known.level
        effective = self._tenants.effective_of(tenant) or self._tenants.defaults(tenant)
        return Level(effective.policy.lifecycle)

    def payload_keys(self, tenant: str) -> PayloadKeys | None:
        """The keys of a tenant's payloads, whether this worker has met it or not."""
        effective = self._effective(tenant)
        return None if effective is None else effective.payload_keys

    def _spread(self, tenant: str) -> int:
        return self._policy(tenant).spread

    def _former(self, tenant: str) -> tuple[int, ...]:
        return self._policy(tenant).former_spreads

    def _policy(self, tenant: str) -> TenantPolicy:
        """The tenant's policy, also if no schedule of the tenant is held here."""
        effective = self._effective(tenant)
        return _DEFAULT if effective is None else effective.policy

    def _effective(self, tenant: str) -> EffectivePolicy | None:
        known = self.tenant(tenant)
        return self._tenants.effective_of(tenant) if known is None else known.effective

    def held(self) -> list[int]:
        """The partitions that are held now."""
        return [
            runner.partition
            for runner in self._owners.runners()
            if runner.state in HOLDING and runner.owned is not None
        ]

    def lease(self, partition: int) -> ReadLease:
        """The lease of the present term of ownership; raises `NotHeld`."""
        return self._owned(partition).producer.lease

    def proven(self, partition: int, lease: ReadLease, read_ms: float) -> bool:
        """Whether reads in that term up to that instant were valid; raises `NotHeld`."""
        covered = lease.covers(read_ms)
        if lease.asked(read_ms):
            runner = self._owners.runner(partition)
            if runner is not None:
                runner.leasing.wake()
        if not covered and self.lease(partition) is not lease:
            raise NotHeld(partition)
        return covered

    def position(self, partition: int) -> int:
        """Requests before this offset show in the store; raises `NotHeld`."""
        return self._owned(partition).engine.manifest.position

    def lies_at(self, partition: int, tenant: str, *, handed_on: bool) -> int | None:
        """Where what a partition is asked for of a tenant lies (`store/group_lookup.py`)."""
        if not (handed_on or self._owned(partition).engine.manifest.grouped):
            return partition
        groups = self._groups
        return self.read(
            partition, lambda rows: lies_at(rows, groups, partition, tenant, handed_on=handed_on)
        )

    def drained(self, partition: int) -> tuple[Drained, ...]:
        """Minute buckets that ended lately under this owner; raises `NotHeld`."""
        return self._owned(partition).engine.drained()

    def waits(self, partition: int, tenant: str) -> tuple[Wait | None, Why | None]:
        """Why a tenant's events wait in a partition, and why it does not fire; or None."""
        runner = self._owners.runner(partition)
        owned = None if runner is None else runner.owned
        if runner is None or owned is None:
            raise NotHeld(partition)
        state = "" if runner.state is Ownership.FIRING else str(runner.state)
        stands_still = why_not_firing(clock=runner.arrivals.paused_because, partition=state)
        return owned.engine.wait_of(tenant.encode()), stands_still

    def read(self, partition: int, look: Callable[[OrderedMap], T]) -> T:
        """The finds of `look` in a partition's rows; raises `NotHeld`.

        `look` runs in the thread of the caller, and must be short: a partition that is given up
        waits for nobody, and its store is closed under a look, which ends that with `NotHeld`.
        """
        rows = self._owned(partition).rows
        if not isinstance(rows, RocksMap):
            raise NotHeld(partition)
        try:
            return look(rows)
        except (DbClosedError, AttributeError) as error:
            # Given up meanwhile; a RocksMap that was closed has no database any more.
            if isinstance(error, AttributeError) and rows.is_open:
                raise
            raise NotHeld(partition) from error

    def _owned(self, partition: int) -> Owned:
        """The present term of a partition, if its store may be read; raises `NotHeld`."""
        runner = self._owners.runner(partition)
        owned = None if runner is None or runner.state not in HOLDING else runner.owned
        if owned is None:
            raise NotHeld(partition)
        return owned
