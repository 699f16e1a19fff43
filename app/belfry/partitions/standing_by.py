"""The standbys of a worker: begun, watched, promoted and ended, as its supervisor says.

    beside owned partitions  followed warm, and watched: an owner's long silence raises an alarm
    owned, not run here      followed warm, until this worker may take over again
    promoted                 asked to stop with the others, and hands over what it has

The supervisor's thread begins and ends them; any thread may look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from belfry.balance.assignment import Assignment
from belfry.group.heartbeats import Heartbeats
from belfry.host import machine
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.rivals import Rivals
from belfry.partitions.standby import Standby
from belfry.partitions.term import Warm


class Standbys:
    """Partitions that are stood by for."""

    def __init__(
        self,
        opener: PartitionOpener,
        rivals: Rivals,
        heartbeats: Heartbeats | None,
        alarmed: Callable[[int], None],
    ) -> None:
        """`alarmed` is called in a standby's thread, once its owner has been silent for long."""
        self._opener = opener
        self._rivals = rivals
        self._heartbeats = heartbeats
        self._alarmed = alarmed
        self._lock = machine.Lock()
        self._standbys: dict[int, Standby] = {}

    def all(self) -> list[Standby]:
        """All of them, by partition; from any thread."""
        with self._lock:
            return [self._standbys[key] for key in sorted(self._standbys)]

    def follow(self, partition: int, told: Assignment, *, watched: bool) -> bool:
        """Stand by for a partition; returns whether it is to be taken over from a silent owner."""
        standby = self._standbys.get(partition)
        if standby is None:
            standby = Standby(partition, self._opener, self._alarmed)
            with self._lock:
                self._standbys[partition] = standby
            standby.start()
        owner = told.owner(partition) if watched else None
        if owner is None:
            standby.watch(None)
        else:
            heard = None if self._heartbeats is None else self._heartbeats.watch(owner.heartbeat)
            standby.watch(self._rivals.timeouts(partition, owner), heard)
        return standby.silent

    def promote(self, partition: int) -> Warm | None:
        """End the standby of a partition and return its parts, None where no usable one is open."""
        with self._lock:
            standby = self._standbys.pop(partition, None)
        return None if standby is None else standby.hand_over()

    def end(self, kept: Collection[int] = (), promoted: Collection[int] = ()) -> None:
        """End all but `kept`; those of `promoted` are only asked to stop, and handed over later."""
        leaving = [standby for standby in self.all() if standby.partition not in kept]
        for standby in leaving:
            standby.ask_to_stop()
        for standby in leaving:
            if standby.partition not in promoted:
                standby.stop()
                with self._lock:
                    self._standbys.pop(standby.partition, None)
