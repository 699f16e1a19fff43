"""Judges whether an owner has fallen silent, but only while broker and process work well.

An owner whose heartbeats do not count shows a sign of life in its changelog every few hundred
milliseconds: a committed step, or an open transaction that grows. A standby that sees no sign for
`timeout_ms` may fence the owner and fire: the fence makes that safe, and the time-out only decides
how often it happens without need. So silence counts from the last sign of life, and anew whenever
the broker did not answer promptly or this process itself did not run.
"""

from __future__ import annotations

from typing import Final

PROMPT_MS: Final = 250.0
LOOK_EVERY_MS: Final = 100.0
LONGEST_GAP_MS: Final = 600.0


class Silence:
    """Measures how long an owner has been silent; instants come in, monotonic milliseconds."""

    def __init__(self, timeout_ms: float, now_ms: float) -> None:
        self.timeout_ms = timeout_ms
        self.look_every_ms = LOOK_EVERY_MS
        self._quiet_since_ms = now_ms
        self._was_here_ms = now_ms
        self._looked_ms = now_ms
        self._end = 0

    def here(self, now_ms: float) -> None:
        """Note that this process runs; if it did not for a while, silence counts anew."""
        if now_ms - self._was_here_ms > LONGEST_GAP_MS:
            self._quiet_since_ms = now_ms
        self._was_here_ms = now_ms

    def heard(self, now_ms: float) -> None:
        """Note that a step of the owner has come."""
        self._quiet_since_ms = now_ms

    def wants_look(self, now_ms: float) -> bool:
        """Whether to ask the broker for the log's end: from a third of the time-out on."""
        quiet_ms = now_ms - self._quiet_since_ms
        return quiet_ms >= self.timeout_ms / 3 and now_ms - self._looked_ms >= self.look_every_ms

    def looked(self, asked_ms: float, now_ms: float, position: int, end: int) -> None:
        """Note a look at the log: it was read up to `position`, and ends at `end`.

        The records between are an open transaction: a sign of life if it grows, and no sign if a
        dead owner has left it.
        """
        self._looked_ms = now_ms
        if end > max(self._end, position):
            self._quiet_since_ms = asked_ms
        self._end = end
        if now_ms - asked_ms > PROMPT_MS:
            self._quiet_since_ms = now_ms

    def unanswered(self, now_ms: float) -> None:
        """Note that the broker did not answer: the silence may be its own."""
        self._looked_ms = self._quiet_since_ms = now_ms

    def over(self, now_ms: float) -> bool:
        """Whether the time-out is over."""
        return now_ms - self._quiet_since_ms >= self.timeout_ms
