"""Loads: what tenants weigh, summed up by key group, and by partition for what cannot move.

    shop     1 schedule waits, 9 fires/s    one shard     its key group, which can move
    bulky    8 wait, 2 fires/s              4 shards      2 and 0.5 for the partition of each shard,
                                                          where they stay: they are spread already

Three things are measured, and each in its own unit.  What a partition carries of all of them is one
number, its *share*: the mean of its shares of each.  10 % of what waits and 30 % of the fires are a
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
    """What is made even."""

    ALL = "all"
    PENDING = "pending"
    FIRES = "fires"
    BYTES = "bytes"


class LoadVector(NamedTuple):
    """What a tenant, a group or a partition carries: schedules, events a second, bytes held."""

    pending: float = 0.0
    fires: float = 0.0
    held_bytes: float = 0.0

    def plus(self, other: LoadVector, part: float = 1.0) -> LoadVector:
        """The same with a part of another load."""
        return LoadVector(*(mine + part * its for mine, its in zip(self, other, strict=True)))

    def share_of(self, total: LoadVector, measure: Measure) -> float:
        """Its share of all there is, by one measure, or in the mean of those of which there is any.

        Of nothing the share is 0.
        """
        shares = [mine / whole if whole else None for mine, whole in zip(self, total, strict=True)]
        if measure is not Measure.ALL:
            return shares[_MEASURED.index(measure)] or 0.0
        known = [share for share in shares if share is not None]
        return sum(known) / len(known) if known else 0.0


_MEASURED = (Measure.PENDING, Measure.FIRES, Measure.BYTES)


class TenantLoad(NamedTuple):
    """A tenant's load.  `spreads` are those that it had and, as the last one, that it has."""

    tenant: str
    load: LoadVector
    spreads: tuple[int, ...] = (1,)


class Loads:
    """The loads of all tenants, by key group; those that cannot move by partition.

    A tenant that is spread, or was, has its schedules in several partitions.  It is taken for
    divided evenly among the shards that it has now.
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
