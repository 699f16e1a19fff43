"""The number of partitions that hold schedules: that of homes, or more where a belfry has grown.

A tenant's home is computed with a number that never changes.  Partitions that are added later are
not the home of any tenant; they hold groups that were moved there (`belfry rebalance grow`):

    homes       4    partitions 0 to 3    requests of all tenants go by way of them
    count      16    partitions 4 to 15   hold groups that moved there, and send all else home

`count` is the number that a worker knows now.  It only grows, because Kafka removes no partition: a
partition that has once counted as one that holds schedules always does.
"""

from __future__ import annotations

from typing import Final

# The most partitions of a belfry; `BELFRY_CLUSTER__PARTITIONS` has the same bound for homes.
MOST_PARTITIONS: Final = 1024


class PartitionCount:
    """The number of homes, and of partitions that hold schedules by now; for any thread."""

    def __init__(self, homes: int, count: int = 0) -> None:
        """`homes` is 1 or more; a `count` below it counts as `homes`."""
        self.homes = homes
        # All counts that were ever seen: threads add to them without a lock, and the largest
        # counts.
        self._seen = {homes, count}

    @property
    def count(self) -> int:
        """How many partitions hold schedules, as far as is known here."""
        return max(self._seen)

    def grown(self, count: int) -> bool:
        """Note the present number; returns whether it is larger than the known one."""
        more = count > self.count
        self._seen.add(count)
        return more

    def holds(self, partition: int) -> bool:
        """Whether a partition holds schedules, as far as is known here."""
        return partition < self.count
