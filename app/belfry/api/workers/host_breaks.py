"""Hosts of webhooks that people have broken: they get no posts until an instant.

    12:00:00   break hooks.example:8443 for 30 min: "maintenance"      deliveries are postponed
    12:10:00   close it                                                the next one goes out at once
    12:30:00   (or no close)                                           the break has ended by itself

A break ends by itself, so a forgotten break costs only deliveries that grow too old meanwhile. To
close a host also opens the way past its circuit breaker: one post is tried at once, and its result
decides.

Each process has all breaks in memory, and `shared_breaks.py` keeps them in Kafka.  So a close is
kept as well, for as long as the break that it ended would have stood, or until its room is needed:
of two entries on a host the later one counts, in whichever order a process hears of them.

The port writes, and the thread that posts reads: each mapping is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final, NamedTuple

# Hosts that may be broken at the same time.
MOST: Final = 1_000
# For how long a close is kept at least: time enough for all to hear of it.
CLOSED_MS: Final = 60_000


class HostBreak(NamedTuple):
    """A host without posts from one instant to another (epoch ms), and the caller that broke it.

    `closed`: the break has ended, and until that instant an older break must not count.
    """

    host: str
    since_ms: int
    until_ms: int
    by: str
    reason: str | None
    closed: bool = False


class HostBreaks:
    """Breaks by host: a name, and a port where the address has one, in lower case."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[str, HostBreak] = {}
        # Hosts whose next post is to be tried, whatever the circuit breaker says.
        self._tries: frozenset[str] = frozenset()
        self._listeners: list[Callable[[], object]] = []

    def listen(self, changed: Callable[[], object]) -> None:
        """Have this called after each change, by whichever thread has made it."""
        self._listeners.append(changed)

    def open(self, given: HostBreak) -> bool:
        """Break a host, or set another end of its break; False where too many are broken."""
        with self._lock:
            kept = self._kept(given.since_ms)
            if given.host not in kept and len(kept) >= MOST:
                return False
            self._entries = {**kept, given.host: _after(kept.get(given.host), given)}
            self._tries -= {given.host}
        self._tell()
        return True

    def close(self, host: str, now_ms: int, by: str = "", *, kept_always: bool = True) -> bool:
        """End a break, and have the next post tried; whether there was a break.

        Where not `kept_always`, a close that ends nothing has the post tried and is not kept.
        """
        with self._lock:
            kept = self._kept(now_ms)
            before = kept.get(host)
            if before is not None or (kept_always and len(kept) < MOST):
                kept[host] = _after(before, closing(host, now_ms, by, before))
            self._entries = kept
            self._try([host])
        self._tell()
        return before is not None and not before.closed

    def forget(self, gone: Iterable[HostBreak]) -> None:
        """Keep these no more, unless there is something later of their hosts."""
        with self._lock:
            rest = self._entries.items() - {each.host: each for each in gone}.items()
            self._entries = dict(rest)

    def merge(self, told: Iterable[HostBreak], now_ms: int) -> bool:
        """Take later entries than the known ones; whether `told` lacks a known one."""
        given = {each.host: each for each in told if now_ms < each.until_ms}
        with self._lock:
            kept = self._kept(now_ms)
            later = {h: e for h, e in given.items() if h not in kept or _order(e) > _order(kept[h])}
            lacking = any(h not in given or _order(e) > _order(given[h]) for h, e in kept.items())
            if later:
                self._entries = {**kept, **later}
                self._tries -= later.keys()
                self._try(host for host, each in later.items() if each.closed)
        if later:
            self._tell()
        return lacking

    def standing(self, host: str, now_ms: int) -> HostBreak | None:
        """The break of a host that stands; quick, for each post."""
        found = self._entries.get(host)
        stands = found is not None and not found.closed and now_ms < found.until_ms
        return found if stands else None

    def is_tried(self, host: str) -> bool:
        """Whether somebody asked for the next post to be tried; asked once, it is answered once."""
        if host not in self._tries:
            return False
        with self._lock:
            self._tries -= {host}
        return True

    def all(self, now_ms: int) -> list[HostBreak]:
        """The breaks that stand, by host."""
        return [each for each in self.entries(now_ms) if not each.closed]

    def entries(self, now_ms: int) -> list[HostBreak]:
        """The entries to keep, by host: present breaks, and closes that still count."""
        with self._lock:
            return sorted(self._kept(now_ms).values())

    def _try(self, hosts: Iterable[str]) -> None:
        self._tries = frozenset([*self._tries, *hosts][:MOST])

    def _kept(self, now_ms: int) -> dict[str, HostBreak]:
        return {host: each for host, each in self._entries.items() if now_ms < each.until_ms}

    def _tell(self) -> None:
        for each in self._listeners:
            each()


def closing(host: str, now_ms: int, by: str, before: HostBreak | None = None) -> HostBreak:
    """The close of a host, after its earlier entry."""
    until_ms = max(now_ms + CLOSED_MS, before.until_ms if before else 0)
    return HostBreak(host, now_ms, until_ms, by, None, closed=True)


def _order(each: HostBreak) -> tuple[int, bool, int]:
    """The later one counts; at the same instant a close does, and then what ends later."""
    return each.since_ms, each.closed, each.until_ms


def _after(before: HostBreak | None, given: HostBreak) -> HostBreak:
    """An entry that is later than the one before, though another machine's clock made that."""
    if before is None or given.since_ms > before.since_ms:
        return given
    return given._replace(since_ms=before.since_ms + 1)
