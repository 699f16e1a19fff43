"""Key groups: the parts into which the tenants of a belfry are divided, so that a part can move.

A tenant's home is the partition that its name hashes to.  A key group is a finer part by the same
hash: all tenants of a group have one home, and a partition is the home of a thousand groups or so.

    4 partitions     hash("shop") = 580 163 220    580 163 220 mod 4 096 = 1 684    group 1 684
                                                   580 163 220 mod 4     = 0        home 0
                                                         1 684 mod 4     = 0        the same

The number of groups is a multiple of the number of partitions, so that the group alone determines
the home.  It is the first multiple from 4 096 on: 4 096 for 4 partitions, 4 098 for 6.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.identity import partition_of

LEAST_GROUPS: Final = 4096


class KeyGroups:
    """The key groups of a belfry whose schedules live in so many partitions."""

    def __init__(self, partitions: int) -> None:
        """`partitions` is 1 or more, the number by which homes are computed."""
        self.partitions = partitions
        self.count = -(-LEAST_GROUPS // partitions) * partitions

    def of(self, tenant: str) -> int:
        """The key group of a tenant."""
        return partition_of(tenant.encode(), self.count)

    def home(self, group: int) -> int:
        """The home of all tenants of a group."""
        return group % self.partitions
