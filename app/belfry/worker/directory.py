"""Who holds which partition, and under which address: told by the group's own leader.

Every member tells its address when it joins (`Standing`), and the leader's answer to all names who
got what (`Roster`).  So there is no topic of heartbeats to keep, nothing to expire, no broker to
ask, and the answer is as old as the last rebalance.  While one is going on the last answer is kept,
and who is asked wrongly says so.
"""

from __future__ import annotations

from belfry.worker.group import Group


class Directory:
    """Implements `belfry.api.directory.Directory` on the roster of this worker's group."""

    def __init__(self, group: Group, mine: str) -> None:
        self._group = group
        self.mine = mine

    def holder(self, partition: int) -> str | None:
        """Address of the worker that holds a partition, None where the group tells none."""
        seat = self._group.roster.owner(partition)
        return (seat.http or None) if seat is not None else None
