"""The read leases of a partition's owner, from term to term.

An owner may answer reads for `LEASE_MS` after each commit (`engine/read_lease.py`). So a successor
changes nothing until its predecessor's lease is over for certain (`outwait`). An owner lets its own
lease end before the group moves partitions, so that no successor has to wait.

    12:00:00.000  W1 commits, and its manifest says that a lease runs: reads until 12:00:00.800
    12:00:00.100  W1 is cut off from Kafka, and goes on answering reads, rightly so
    12:00:00.300  W2 fences W1, and commits its first manifest, which changes nothing
    12:00:01.000  a second after W1's manifest was appended: W2 takes in and fires
    12:00:01.000  W1's lease is over for 200 ms, so no read of W1 is older than the changes of W2

Both append times are the broker's, so the two workers' clocks need not agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.engine.read_lease import ReadLease
from belfry.partitions.term import Owned

# Longer than the lease, because brokers' clocks differ, and a successor judges by their append
# times.
OUTWAIT_MS: Final = 1_000.0


class Leasing:
    """Grants and outwaits read leases for a partition's runner, from term to term."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` makes the runner's loop look at whether a commit is wanted."""
        self.wake = wake
        # False while the group moves partitions.
        self.allowed = True
        # When the last manifest of this runner was appended, in the broker's epoch ms.
        self.appended_ms: int | None = None
        self._own_epoch: int | None = None

    def allow(self, allowed: bool) -> None:
        """Set whether reads may be answered within a lease; without one, each waits for a commit.

        It is False while the group moves partitions: a successor would have to wait for the lease's
        end.
        """
        if self.allowed != allowed:
            self.allowed = allowed
            self.wake()

    def wants_commit(self, lease: ReadLease) -> bool:
        """Whether a commit is wanted for the lease alone."""
        return lease.wanted or (lease.held and not self.allowed)

    def begin(self, owned: Owned, now_ms: float) -> bool:
        """A commit begins; returns whether its manifest is to say that a lease may run.

        That may be its own lease, or one of a former owner that this owner has yet to wait for.
        """
        takes = owned.producer.lease.begin(now_ms, may=self.allowed)
        return takes or self._lent_ms(owned) is not None

    def outwait(self, owned: Owned, wait: Callable[[float], object]) -> None:
        """Change nothing, in a term that has just begun, while a former owner's lease may run.

        `wait` lets so many seconds pass; it returns True where this owner is to stop instead.
        """
        seconds = outwait_ms(self._lent_ms(owned), self.appended_ms) / 1000
        self._own_epoch = owned.epoch
        if not wait(seconds):
            owned.lent_ms = None

    def _lent_ms(self, owned: Owned) -> int | None:
        """The append time of the manifest that tells of another owner's lease; None for none."""
        return None if owned.former_epoch == self._own_epoch else owned.lent_ms


def outwait_ms(lent_ms: int | None, appended_ms: int | None) -> float:
    """How long a new owner may change nothing, in ms, because of its predecessor's lease.

    `lent_ms` is the append time of the predecessor's last manifest, None where that manifest says
    that no lease is held. `appended_ms` is the append time of the new owner's first manifest.
    """
    if lent_ms is None:
        return 0.0
    passed_ms = 0 if appended_ms is None else max(0, appended_ms - lent_ms)
    return max(0.0, OUTWAIT_MS - passed_ms)
