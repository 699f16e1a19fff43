"""A standby's watch over one owner: its heartbeats, and the time since the last one.

The owner keeps one heartbeat, however many partitions it owns, and each worker that stands by for
any of them reads it (`heartbeats.py`). Silence counts from the last heartbeat, and anew whenever
the broker did not answer promptly or this process itself did not run: the rules of `silence.py`,
for a worker instead of a partition.

    heartbeats    │    │    │    │    │ · · · · killed · · · ·
    quiet_ms      0    0    0    0    0 ─────────────► time-out: its partitions are taken over
"""

from __future__ import annotations

from math import inf
from typing import Final

from belfry.balance.heartbeat import Heartbeat
from belfry.group.silence import LONGEST_GAP_MS, PROMPT_MS

# The owner may find the broker again later than this worker does.
FOUND_AGAIN_MS: Final = 2_000.0


class HeartbeatWatch:
    """Heartbeats of one owner; instants come in, monotonic milliseconds.

    `heard_ms` is when the last heartbeat came, None before the first. `away_ms` is when the broker
    last could not be asked: after that, the owner may have to take its partitions over anew.

    One thread writes, the standbys' threads read; each field is written in one go.
    """

    def __init__(self, owner: str, now_ms: float) -> None:
        self.owner = owner
        self.heard_ms: float | None = None
        self.away_ms = -inf
        # The owner has just been assigned, and may be about to send its first heartbeat.
        self._excused_ms = now_ms + FOUND_AGAIN_MS
        self._quiet_since_ms = now_ms
        self._looked_ms = now_ms
        self._last: tuple[int, Heartbeat] | None = None
        self._well: frozenset[int] = frozenset()

    def looked(self, asked_ms: float, now_ms: float, number: int, found: Heartbeat | None) -> None:
        """Note the broker's answer: the number and the heartbeat that it holds."""
        was_here = asked_ms - self._looked_ms <= LONGEST_GAP_MS
        self._looked_ms = now_ms
        if not was_here or now_ms - asked_ms > PROMPT_MS:
            self._excused_ms = max(self._excused_ms, now_ms)
        if found is None or found.worker != self.owner or self._last == (number, found):
            return
        self._well = found.well
        # The first heartbeat that is found may come from an owner that died long ago.
        if self._last is not None:
            self.heard_ms = now_ms
            self._quiet_since_ms = now_ms
        self._last = number, found

    def unanswered(self, now_ms: float) -> None:
        """Note that the broker does not answer, or does not take this worker's heartbeats."""
        self._looked_ms = self.away_ms = now_ms
        self._excused_ms = now_ms + FOUND_AGAIN_MS

    def excused(self, now_ms: float) -> bool:
        """Whether the owner cannot be judged now: broker or process may have been silent."""
        return now_ms < self._excused_ms or now_ms - self._looked_ms > LONGEST_GAP_MS

    def quiet_ms(self, now_ms: float) -> float:
        """How long the owner has been silent, as far as that counts."""
        if self.excused(now_ms):
            return 0.0
        return now_ms - max(self._quiet_since_ms, self._excused_ms)

    def vouches(self, partition: int, now_ms: float, within_ms: float) -> bool:
        """Whether a heartbeat of the last `within_ms` says that a partition is well."""
        return self.lives(now_ms, within_ms) and partition in self._well

    def lives(self, now_ms: float, within_ms: float) -> bool:
        """Whether a heartbeat has come in the last `within_ms`."""
        return self.heard_ms is not None and now_ms - self.heard_ms < within_ms
