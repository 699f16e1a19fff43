"""A watch of one owner's heartbeats that looks often enough, by instants that a test chooses."""

from __future__ import annotations

from belfry.balance.heartbeat import Heartbeat
from belfry.group.heartbeat_watch import FOUND_AGAIN_MS, HeartbeatWatch

BEGUN = 10_000.0
# Long after the owner was assigned.
LATER = BEGUN + FOUND_AGAIN_MS + 1_000


def beat(*well: int, worker: str = "owner") -> Heartbeat:
    return Heartbeat(worker, frozenset(well))


class Looking(HeartbeatWatch):
    """One that has looked promptly every 100 ms; the owner's last heartbeat came at `LATER`."""

    def __init__(self, *, beats: bool = True) -> None:
        super().__init__("owner", BEGUN)
        self.number, self.found = 0, beat(1, 2) if beats else None
        now_ms = BEGUN
        while now_ms < LATER:
            now_ms += 100
            self.number += 1
            self.looked(now_ms, now_ms, self.number, self.found)

    def look(self, now_ms: float, took_ms: float = 0.0) -> None:
        """Find the heartbeat that is known, by an answer that came at this instant."""
        self.looked(now_ms - took_ms, now_ms, self.number, self.found)

    def look_on(self, from_ms: float, until_ms: float) -> None:
        """The same every 100 ms."""
        for now_ms in range(int(from_ms) + 100, int(until_ms) + 1, 100):
            self.look(now_ms)
