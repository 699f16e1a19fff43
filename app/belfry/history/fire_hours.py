"""The fires of each hour, counted from commits: at every lifecycle level, without any record.

Fires are lifecycle records only at the level ALL.  So each commit of this worker adds here how many
events of each tenant fired, and how many of them at most a second late:

    09:59:58   step: t fired 3, one of them 4 s late     t, 09:00   fires 3, within_1s 2
    10:00:01   step: t fired 1                           t, 10:00   fires 1, within_1s 1
    10:00:20   the follower moves all of these into its store

A step costs a few additions for each tenant that fired in it.  The hour is that of the step, as in
its lifecycle records, and not that of the commit.  For each hour a query takes the larger of the
two counts, so a step that counted in two different hours would count twice.  Counts that were not
moved when the process is killed are lost: those of at most `FLUSH_S` (`follower.py`).

Partitions' threads add, the follower's thread moves, and a query reads both the store and the
counts here.  `turn` tells a query whether counts moved into the store meanwhile; it is odd while
they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from belfry.history.counters import IN_TIME_MS
from belfry.history.layout import HOUR_MS
from belfry.host import machine

# A tenant's hours, each with its fires, and those of them at most a second late.
Hours = dict[int, tuple[int, int]]
NOTHING: Final = (0, 0)


class FireHours:
    """Fires of this worker that its store does not have yet; safe from any thread."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        """`now_ms` is the wall clock, by which the store forgets."""
        self.now_ms = now_ms
        self._lock = machine.Lock()
        self._counts: dict[str, Hours] = {}
        self.turn = 0

    def add(self, lateness: Mapping[str, list[int]], at_ms: int) -> None:
        """Count a committed step of this instant: how late each fire of a tenant was, in ms."""
        hour = at_ms // HOUR_MS
        with self._lock:
            for name, late_ms in lateness.items():
                in_time = fires = len(late_ms)
                if late_ms and max(late_ms) > IN_TIME_MS:
                    in_time = sum(each <= IN_TIME_MS for each in late_ms)
                self._put(name, hour, (fires, in_time))

    def _put(self, name: str, hour: int, more: tuple[int, int]) -> None:
        hours = self._counts.setdefault(name, {})
        fires, in_time = hours.get(hour, NOTHING)
        hours[hour] = fires + more[0], in_time + more[1]

    @contextmanager
    def taken(self) -> Iterator[Mapping[str, Hours]]:
        """All counts here, to be written to the store; they come back where the block raises."""
        with self._lock:
            found, self._counts = self._counts, {}
            self.turn += 1
        try:
            yield found
        except BaseException:
            with self._lock:
                for name, hours in found.items():
                    for hour, counted in hours.items():
                        self._put(name, hour, counted)
            raise
        finally:
            with self._lock:
                self.turn += 1

    def of_tenant(self, tenant: str) -> tuple[Hours, int]:
        """The counts here of a tenant, and the turn at which they were read."""
        with self._lock:
            return dict(self._counts.get(tenant, ())), self.turn
