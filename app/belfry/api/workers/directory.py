"""Who holds which partition, and under which address: told by the group itself.

Every member tells its address when it joins (`Standing`), and the broker that keeps the group tells
each of them what all said and got (`Roster`, `roster_client.py`).  So there is no topic of
addresses to keep and nothing to expire.  The answer is as old as the last rebalance; while one is
going on the last answer is kept, and who is asked wrongly says so.
"""

from __future__ import annotations

from belfry.group.group import Group


class Directory:
    """The workers of the group; every method is quick and may be called from any thread."""

    def __init__(self, group: Group, mine: str) -> None:
        self._group = group
        self.mine = mine

    def holder(self, partition: int) -> str | None:
        """Address of the worker that holds a partition, None where the group tells none."""
        seat = self._group.roster.owner(partition)
        return (seat.http or None) if seat is not None else None

    def standbys(self, partition: int) -> list[str]:
        """Addresses of those who take it over, ahead of the group, should the holder be silent."""
        seats = self._group.roster.seats
        return [seat.http for seat in seats if partition in seat.stands_by and seat.http]
