"""Which tenants may fire to which topics, and when those that are held are tried again.

    ready tenant ── kept back ──► held, tried again after 1 s, 2 s, 4 s … 60 s ── released ──► ready
                                  └ if a leader is missing: with the look that finds one

A step asks once (`covers`), from its partition's thread.  Threads that look at topics change it.
Each method holds the lock while it runs, and no method waits for a broker.

    12:00:00.000   the topic of `shop` refuses a record        shop is held, its topic closed
    12:00:01       tried again: still refused                  pause 2 s
    12:00:03       tried again: the right was granted          released; the next step opens it

A *tenant* is ready or held; a *topic* is open if all tenants that fire to it are ready. Both are
kept, because a step knows its topics, and a policy or a registry is about a tenant.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from belfry.host import machine

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


class OutputState:
    """Ready tenants, open topics (all of whose tenants are ready), and pauses; for all threads.

    Instants and pauses are seconds of one monotonic clock.  A tenant that was never looked at is
    not ready, and a topic that was never looked at is not open.
    """

    def __init__(self) -> None:
        self._lock = machine.Lock()
        self._ready: set[str] = set()
        self._open: set[str] = set()
        self._retry: dict[str, tuple[float, float]] = {}

    def covers(self, topics: AbstractSet[str], tenants: AbstractSet[str]) -> bool:
        """Whether all of these topics are open and all of these tenants ready.

        A step in which nothing is new asks only this; it takes two comparisons of sets.
        """
        with self._lock:
            return topics <= self._open and tenants <= self._ready

    def closed(self, topics: AbstractSet[str]) -> AbstractSet[str]:
        """The topics, of these, that are not open."""
        with self._lock:
            return topics - self._open

    def opened(self) -> list[str]:
        """All open topics."""
        with self._lock:
            return list(self._open)

    def open(self, topics: Iterable[str]) -> None:
        """Mark these topics as open: all their tenants are ready."""
        with self._lock:
            self._open.update(topics)

    def close(self, topics: Iterable[str]) -> None:
        """Mark these topics as not open: some tenant of them may not be ready any more.

        A step that fires there checks again; this alone refuses no event.
        """
        with self._lock:
            self._open.difference_update(topics)

    def fresh(self, names: Iterable[str]) -> list[str]:
        """The tenants, of these, that are not ready."""
        with self._lock:
            return [name for name in names if name not in self._ready]

    def unready(self, names: Iterable[str]) -> None:
        """Have these tenants checked again before they fire."""
        with self._lock:
            self._ready.difference_update(names)

    def let_go(self, name: str) -> None:
        """Mark a tenant as ready."""
        with self._lock:
            self._ready.add(name)
            self._retry.pop(name, None)

    def keep_back(self, name: str, topic: str, now_s: float | None, *, grows: bool = True) -> None:
        """Mark a tenant as held, until a pause from `now_s` on is over, which doubles each time.

        With None for `now_s` there is no pause: the thread that makes its topic releases it.
        Without `grows` the pause is the first one again, and the next one that grows starts there
        too.
        """
        with self._lock:
            self._ready.discard(name)
            self._open.discard(topic)
            if now_s is None:
                return
            _, pause_s = self._retry.get(name, (0.0, FIRST_PAUSE_S / 2))
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S) if grows else FIRST_PAUSE_S
            self._retry[name] = (now_s + pause_s, pause_s if grows else pause_s / 2)

    def pauses(self, name: str, now_s: float) -> bool:
        """Whether a tenant is held, and it is not yet time to try again."""
        with self._lock:
            return self._retry.get(name, (0.0, 0.0))[0] > now_s

    def due(self, now_s: float) -> list[str]:
        """Tenants that are to be tried again."""
        with self._lock:
            return [name for name, (at_s, _) in self._retry.items() if at_s <= now_s]
