"""Work under way: how many deliveries and bytes in all, and how many of them at each host.

Memory is bounded, so deliveries under way are.  No host may use all of that room up: each has a
share, an eighth.  If the share of a host is used up, the next step depends on the host:

    it answers      WAIT     reading waits for it: the next post ends in a moment
    it hangs        SILENT   its deliveries are postponed, and those of other hosts go on

A host hangs where nothing has been heard of it for a second, while its share was in use:

    12:00:00.0   625 of 5 000 deliveries are at one host          room for no more of them
    12:00:00.2   one is answered                                  the next one begins
    12:00:01.3   nothing was heard since                          SILENT: postponed by 5 s

It is pure: instants are milliseconds of a monotonic clock, and the dispatcher has it.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final

from belfry.delivery.answers import Answer, End
from belfry.delivery.work import Work, WorkId

# The part of all that one host may have.
SHARE: Final = 8
# A batch of the largest records may come on top.
MOST_BYTES: Final = 64 * 1024 * 1024
SILENT_HOST_MS: Final = 1_000.0
# A delivery waits for so long if its host does not answer.
POSTPONE_MS: Final = 5_000


class HostRoom(Enum):
    """Whether a host has room for one delivery more."""

    FREE = "free"
    WAIT = "wait"
    SILENT = "silent"


class UnderWay:
    """Deliveries that were handed to a sender and have not come back."""

    def __init__(self, most: int) -> None:
        """At most so many of them."""
        self._most = most
        self.share = most // SHARE
        self._hosts: dict[WorkId, str] = {}
        self._at_host: Counter[str] = Counter()
        self._heard_ms: dict[str, float] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def room(self) -> int:
        """How many more may be read now; 0 where they already hold too many bytes."""
        return 0 if self._bytes >= MOST_BYTES else self._most - len(self._hosts)

    def room_at(self, host: str, now_ms: float) -> HostRoom:
        """Whether a host has room for a delivery more."""
        if self._at_host[host] < self.share:
            return HostRoom.FREE
        answers = now_ms - self._heard_ms.get(host, now_ms) < SILENT_HOST_MS
        return HostRoom.WAIT if answers else HostRoom.SILENT

    def begin(self, work_id: WorkId, host: str, size: int, now_ms: float) -> None:
        """One of so many bytes is handed in, whose first target lies at this host."""
        self._hosts[work_id] = host
        self._at_host[host] += 1
        self._heard_ms.setdefault(host, now_ms)
        self._bytes += size

    def end(self, work_id: WorkId, size: int, heard_ms: float | None) -> bool:
        """It has come back: whether it was under way, and not of a term that is over.

        `heard_ms` is when its host has answered, None where it has not.
        """
        host = self._hosts.pop(work_id, None)
        if host is None:
            return False
        self._bytes -= size
        self._at_host[host] -= 1
        if heard_ms is not None:
            self._heard_ms[host] = heard_ms
        if not self._at_host[host]:
            del self._at_host[host]
            self._heard_ms.pop(host, None)
        return True

    def postponed(self, work: Work, now_ms: int) -> Answer:
        """The answer for a delivery to a silent host; `now_ms` is epoch ms."""
        reason = f"{self.share} deliveries wait for the host, and it does not answer"
        target, until_ms = work.state.targets[0].url, now_ms + POSTPONE_MS
        return Answer(End.POSTPONED, target, "host_silent", reason, until_ms)

    def clear(self) -> None:
        """Forget all of them: the dispatcher that reads their records next has them."""
        self._hosts.clear()
        self._at_host.clear()
        self._heard_ms.clear()
        self._bytes = 0
