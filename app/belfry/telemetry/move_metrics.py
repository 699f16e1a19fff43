"""Moves of key groups as metrics, and the last of them by themselves.

    increase(belfry_key_group_moves_total{outcome="stayed"}[1h])   moves that came to nothing
    sum(belfry_key_groups_away)                                    groups that lie away from home
    max_over_time(belfry_key_groups_moving[1m])                    groups that are on their way
    sum(belfry_key_group_requests_waiting)                         requests that wait for them

The owner of a group's home counts its moves, and remembers the last ones with the reason of those
that came to nothing.  Another owner does not know them; the log of this one has them as well.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Final, NamedTuple

from belfry.telemetry.metric_maker import MetricMaker

OUTCOMES: Final = ("moved", "stayed")
MOST_ENDS: Final = 1_000


class EndedMove(NamedTuple):
    """A move that is over; `why` its group stays where it lay, None: it has moved."""

    group: int
    move: int
    source: int
    target: int
    why: str | None


class MoveMetrics:
    """Counts moves that are over; safe from any thread."""

    def __init__(self, make: MetricMaker) -> None:
        self._moves = make.outcomes("belfry_key_group_moves_total", *OUTCOMES)
        self._away = make.gauge("belfry_key_groups_away")
        self._moving = make.gauge("belfry_key_groups_moving")
        self._waiting = make.gauge("belfry_key_group_requests_waiting")
        self._lock = Lock()
        self._ends: deque[EndedMove] = deque(maxlen=MOST_ENDS)

    def ends(self, end: EndedMove) -> None:
        """A move is over."""
        self._moves.labels("stayed" if end.why else "moved").inc()
        with self._lock:
            self._ends.append(end)

    def ended(self) -> list[EndedMove]:
        """The last moves that were over, the latest last."""
        with self._lock:
            return list(self._ends)

    def stand(self, away: int, moving: int, waiting: int) -> None:
        """Show how many groups lie away from homes that are owned here, how many are on their way,
        and how many requests wait for them.
        """
        self._away.set(away)
        self._moving.set(moving)
        self._waiting.set(waiting)
