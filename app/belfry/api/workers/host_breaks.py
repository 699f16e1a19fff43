"""Hosts of webhooks that people have broken: nothing is posted there until then.

    12:00:00   break hooks.example:8443 for 30 min: "maintenance"      deliveries are postponed
    12:10:00   close it                                                the next one goes out at once
    12:30:00   (or nobody did)                                         the break has ended by itself

A break ends by itself, so one that is forgotten loses no more than what grows too old meanwhile.
It is kept in the memory of the process that posts, and ends with it.  To close a host also opens
the way past its circuit breaker: one post is tried at once, and what it comes to decides.

The port writes, and the thread that posts reads: each mapping is replaced as a whole.
"""

from __future__ import annotations

from threading import Lock
from typing import Final, NamedTuple

# Hosts that may be broken at the same time.
MOST: Final = 1_000


class HostBreak(NamedTuple):
    """A host that nothing is posted to from one instant to another (epoch ms), and who says so."""

    host: str
    since_ms: int
    until_ms: int
    by: str
    reason: str | None


class HostBreaks:
    """Breaks by host: a name, and a port where the address has one, in lower case."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._breaks: dict[str, HostBreak] = {}
        # Hosts whose next post is to be tried, whatever the circuit breaker says.
        self._tries: frozenset[str] = frozenset()

    def open(self, given: HostBreak) -> bool:
        """Break a host, or set another end of its break; False where too many are broken."""
        with self._lock:
            kept = self._standing(given.since_ms)
            if given.host not in kept and len(kept) >= MOST:
                return False
            self._breaks = {**kept, given.host: given}
            self._tries -= {given.host}
            return True

    def close(self, host: str, now_ms: int) -> bool:
        """End a break, and have the next post tried; whether there was a break."""
        with self._lock:
            kept = self._standing(now_ms)
            was_broken = kept.pop(host, None) is not None
            self._breaks = kept
            if len(self._tries) < MOST:
                self._tries |= {host}
            return was_broken

    def standing(self, host: str, now_ms: int) -> HostBreak | None:
        """The break of a host that stands; quick, for each post."""
        found = self._breaks.get(host)
        return found if found is not None and now_ms < found.until_ms else None

    def is_tried(self, host: str) -> bool:
        """Whether somebody asked for the next post to be tried; asked once, it is answered once."""
        if host not in self._tries:
            return False
        with self._lock:
            self._tries -= {host}
        return True

    def all(self, now_ms: int) -> list[HostBreak]:
        """The breaks that stand, by host."""
        with self._lock:
            return sorted(self._standing(now_ms).values())

    def _standing(self, now_ms: int) -> dict[str, HostBreak]:
        return {host: each for host, each in self._breaks.items() if now_ms < each.until_ms}
