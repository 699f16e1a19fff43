"""This worker in its group: what it says of itself, and what the leader answered.

Shared by the group's client (which carries both), the owners (which act on the answer) and whoever
shows it.  Every method may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock

from belfry.balance.roster import Roster, Standing, read_roster

Holdings = Callable[[], tuple[dict[int, int], tuple[int, ...]]]


def _nothing() -> tuple[dict[int, int], tuple[int, ...]]:
    return {}, ()


class Group:
    """A member's standing, and the roster that it was given."""

    def __init__(self, standing: Standing, static: bool = False) -> None:
        self._standing = standing
        self._lock = Lock()
        self._roster = Roster()
        self.static = static
        self.holdings: Holdings = _nothing
        self.rejoin: Callable[[], None] = lambda: None

    @property
    def worker(self) -> str:
        """This worker's name."""
        return self._standing.worker

    @property
    def leaving(self) -> bool:
        """Whether this worker has asked for no partitions."""
        return self._standing.leaving

    @property
    def roster(self) -> Roster:
        """What the leader told last."""
        with self._lock:
            return self._roster

    @property
    def alone(self) -> bool:
        """Whether nobody else could take this worker's partitions over."""
        return not self.roster.others(self.worker)

    def standing(self) -> Standing:
        """What to say at the next rebalance."""
        owns, warm = self.holdings()
        return replace(self._standing, owns=owns, warm=warm)

    def seated(self, told: bytes) -> None:
        """The leader has answered."""
        roster = read_roster(told)
        with self._lock:
            self._roster = roster

    def leave(self, leaving: bool = True) -> None:
        """Ask the group for no partitions, or for some again."""
        self._standing = replace(self._standing, leaving=leaving)
        self.rejoin()
