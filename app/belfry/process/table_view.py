"""What a worker holds, as Faust's table of schedules shows it."""

from __future__ import annotations

from belfry.api.workers.holdings import Holdings
from belfry.group.schedules_table import HeldPartitions
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.supervisor import Owners


def held_partitions(owners: Owners, opener: PartitionOpener) -> HeldPartitions:
    """The partitions of these owners and standbys; may be looked at from any thread."""
    holdings = Holdings(owners, opener.tenants, opener.partitions)

    def warm() -> list[int]:
        return [each.partition for each in owners.standbys() if each.warm]

    return HeldPartitions(
        holdings.held, warm, holdings.home_of, holdings.read, opener.clock.wall_ms
    )
