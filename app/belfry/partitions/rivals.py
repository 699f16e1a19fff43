"""Fences between workers: when to take over again after one, and when a standby may fence again.

    fenced off, and the group still assigns the partition     after a second ask it to share anew,
                                                              after a session take over again
    a standby fenced a silent owner, and was fenced by it     wait twice as long the next time,
                                                              until five minutes were steady

An owner that takes over again fences the other one, which is alive.  So it waits first.
"""

from __future__ import annotations

from typing import Final

import structlog

from belfry.balance.assignment import Watched
from belfry.engine.ownership import Ownership
from belfry.group.failure_detector import DetectorTimeouts, Timeouts
from belfry.group.group import Group
from belfry.host import machine
from belfry.partitions.owner import PartitionRunner
from belfry.settings import Settings

STEADY_S: Final = 300.0
# A move under way has so long, in seconds, to become known to both workers.
ASK_S: Final = 1.0

log = structlog.get_logger(__name__)


class Rivals:
    """Decides how soon to try again; for the supervisor's thread, `assigned_anew` for any."""

    def __init__(self, settings: Settings, group: Group) -> None:
        self._settings = settings
        self._group = group
        self._ended_at: dict[int, float] = {}
        self._asked: set[int] = set()
        self._backing_off: dict[int, tuple[int, float]] = {}

    def assigned_anew(self) -> None:
        """The group has assigned partitions anew: a fenced worker may own again what it assigns."""
        self._ended_at.clear()
        self._asked.clear()

    def fenced_in_haste(self, partition: int) -> None:
        """A standby took a partition over ahead of the group, and was fenced."""
        times, _ = self._backing_off.get(partition, (0, 0.0))
        self._backing_off[partition] = times + 1, machine.monotonic()

    def timeouts(self, partition: int, owner: Watched) -> Timeouts | None:
        """For how long the owner may be silent; None where that is left to the group.

        The second standby waits for the first one, and a standby that was wrong lately waits
        longer.
        """
        settings = self._settings
        if not settings.silence_limit_ms:
            return None
        times, since = self._backing_off.get(partition, (0, 0.0))
        if times and machine.monotonic() - since > STEADY_S:
            del self._backing_off[partition]
            times = 0
        waits = DetectorTimeouts(settings.silence_limit_ms, 2.0 * settings.session_timeout_ms)
        return waits.timeouts(owner.owns, owner.ranks[partition], times)

    def may_restart(self, ended: PartitionRunner) -> bool:
        """Whether a partition that ended by itself is to be tried again.

        A fenced owner knows that another one is alive: it tries again only if the group has not
        moved the partition within a session.  The other one may be a late owner of before the last
        rebalance, so the group is asked to assign anew; its answer is acted on at once.
        """
        if ended.state is not Ownership.STOPPED:
            return True
        since = self._ended_at.setdefault(ended.partition, machine.monotonic())
        waited_s = machine.monotonic() - since
        if waited_s >= ASK_S and ended.partition not in self._asked:
            self._asked.add(ended.partition)
            log.warning(
                "owned here by the group and fenced off: asking it", partition=ended.partition
            )
            self._group.rejoin()
        if waited_s < self._settings.session_timeout_ms / 1000:
            return False
        self._ended_at.pop(ended.partition, None)
        self._asked.discard(ended.partition)
        return True
