"""How many partitions hold schedules: as many as there are homes, or more where a belfry has grown.

A tenant's home is worked out with a number that never changes.  Partitions that are added later are
nobody's home; groups lie in them that were moved there (`belfry rebalance grow`):

    homes       4    partitions 0 to 3    requests of all tenants go by way of them
    count      16    partitions 4 to 15   hold what moves there, and send everything else home

`count` is what a worker knows of it now.  It only grows, since Kafka removes no partition, so a
worker that has once taken a partition for one that holds schedules never takes it for another.
"""

from __future__ import annotations

from typing import Final

# The most that a belfry can have, as `BELFRY_CLUSTER__PARTITIONS` says of its homes.
MOST_PARTITIONS: Final = 1024


class PartitionCount:
    """How many homes there are, and how many partitions hold schedules by now; for any thread."""

    def __init__(self, homes: int, count: int = 0) -> None:
        """`homes` is 1 or more; a `count` below it stands for as many."""
        self.homes = homes
        # All that was ever seen: threads add to it without a lock, and the largest one counts.
        self._seen = {homes, count}

    @property
    def count(self) -> int:
        """How many partitions hold schedules, as far as is known here."""
        return max(self._seen)

    def grown(self, count: int) -> bool:
        """Take note of how many there are now; whether that is more than was known."""
        more = count > self.count
        self._seen.add(count)
        return more

    def holds(self, partition: int) -> bool:
        """Whether a partition holds schedules, as far as is known here."""
        return partition < self.count
