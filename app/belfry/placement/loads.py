"""Loads: the loads of tenants, summed up by key group, and by partition for those that cannot move.

    shop     1 schedule waits, 9 fires/s    one shard     its key group, which can move
    bulky    8 wait, 2 fires/s              4 shards      2 and 0.5 for the partition of each shard,
                                                          where they stay: they are spread already

There are three measures, each in its own unit.  The load of a partition is one number, its *share*:
the mean of its shares of each measure.  10 % of the pending schedules and 30 % of the fires are a
share of 20 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from belfry.placement.key_groups import KeyGroups
from belfry.schedules.identity import Homes


class Measure(StrEnum):
    """The measure that is made even."""

    ALL = "all"
    PENDING = "pending"
    FIRES = "fires"
    BYTES = "bytes"


class LoadVector(NamedTuple):
    """The load of a tenant, a group or a partition: schedules, events a second, bytes held."""

    pending: float = 0.0
    fires: float = 0.0
    held_bytes: float = 0.0

    def plus(self, other: LoadVector, part: float = 1.0) -> LoadVector:
        """This load plus a part of another one."""
        return LoadVector(*(mine + part * its for mine, its in zip(self, other, strict=True)))

    def share_of(self, total: LoadVector, measure: Measure) -> float:
        """Its share of the total, by one measure, or the mean over measures whose total is not 0.

        The share of a total of 0 is 0.
        """
        shares = [mine / whole if whole else None for mine, whole in zip(self, total, strict=True)]
        if measure is not Measure.ALL:
            return shares[_MEASURED.index(measure)] or 0.0
        known = [share for share in shares if share is not None]
        return sum(known) / len(known) if known else 0.0


_MEASURED = (Measure.PENDING, Measure.FIRES, Measure.BYTES)


class TenantLoad(NamedTuple):
    """A tenant's load.  `spreads` are its former numbers of shards, and the present one last."""

    tenant: str
    load: LoadVector
    spreads: tuple[int, ...] = (1,)


class Loads:
    """The loads of all tenants, by key group; those that cannot move by partition.

    A tenant that is spread, or was, has its schedules in several partitions.  Its load counts as
    divided evenly among its present shards.
    """

    def __init__(self, tenants: Iterable[TenantLoad], groups: KeyGroups) -> None:
        self.groups = groups
        self.by_group: dict[int, LoadVector] = {}
        self.tenants: defaultdict[int, list[TenantLoad]] = defaultdict(list)
        self.fixed: dict[int, LoadVector] = {}
        self.spread: list[TenantLoad] = []
        self.total = LoadVector()
        homes = Homes(groups.partitions)
        for each in tenants:
            self.total = self.total.plus(each.load)
            if each.spreads != (1,):
                self._stay(each, homes)
                continue
            group = groups.of(each.tenant)
            self.by_group[group] = self.by_group.get(group, LoadVector()).plus(each.load)
            self.tenants[group].append(each)

    def _stay(self, tenant: TenantLoad, homes: Homes) -> None:
        """Add a tenant that cannot move to the partitions of its shards."""
        self.spread.append(tenant)
        spread = tenant.spreads[-1]
        for number in range(spread):
            name = tenant.tenant
            home = homes.of(name) if spread == 1 else homes.shard(name, number)
            self.fixed[home] = self.fixed.get(home, LoadVector()).plus(tenant.load, 1 / spread)
