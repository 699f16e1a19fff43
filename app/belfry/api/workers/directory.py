"""Holders of partitions with their addresses: told by the group itself.

Every member tells its address when it joins (`MemberMetadata`), and the broker that keeps the group
tells each of them what all said and got (`AssignmentMap`, `assignment_map_client.py`).  So there is
no topic of addresses to keep, and no entry expires. The answer is as old as the last rebalance;
during a rebalance the last answer is kept, and a worker that is asked wrongly says so.
"""

from __future__ import annotations

from belfry.group.group import Group


class Directory:
    """The workers of the group; every method is quick and may be called from any thread.

    `mine` is the address of this worker, under which others reach it.
    """

    def __init__(self, group: Group, mine: str) -> None:
        self._group = group
        self.mine = mine

    def holder(self, partition: int) -> str | None:
        """Address of the worker that holds a partition, None where the group tells none."""
        entry = self._group.assignment_map.owner(partition)
        return (entry.http or None) if entry is not None else None

    def standbys(self, partition: int) -> list[str]:
        """Addresses of those who take it over, ahead of the group, should the holder be silent."""
        entries = self._group.assignment_map.entries
        return [entry.http for entry in entries if partition in entry.stands_by and entry.http]

    def keepers(self, partition: int) -> list[str]:
        """Addresses of other workers that may keep a checkpoint of a partition.

        Standbys come first, for they have time; then the owner, and who owned it before the last
        rebalance.
        """
        entries = self._group.assignment_map.entries
        found = [
            *self.standbys(partition),
            *(entry.http for entry in entries if partition in entry.owns),
            *(entry.http for entry in entries if partition in entry.held),
        ]
        return list(dict.fromkeys(each for each in found if each and each != self.mine))
