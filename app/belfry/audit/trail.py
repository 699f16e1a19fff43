"""Events on their way to the audit log: a queue that never makes its callers wait.

Noting an event takes a lock for a moment and returns.  The queue is bounded by the weight of its
events.  An event that comes while it is full is lost to the audit log, but not in silence: it is
counted, and the first losses of a minute are written to belfry's own log.

    request ─► note ──────────────┐
    refusal ─► refused ─► sums ───┴─► 50 000 events at most ─► take (500) ─► the writer's thread

An event weighs one, and one more for each of its objects: a request that creates 500 schedules
counts as 501.  If requests waited for the audit log, its failure would stop the service; if it lost
events in silence, nobody could rely on it.  So it never waits, and reports each loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from threading import Event, Lock
from typing import Any, Final, Literal

import structlog

from belfry.audit.refusals import Refusals
from belfry.telemetry.limited import LimitedLogger
from belfry.wire.audit import AuditEvent, bounded

Level = Literal["all", "policies", "none"]
MOST_WAITING: Final = 50_000

log = structlog.get_logger(__name__)


class Trail:
    """Events on their way to the log; safe to share between threads.

    `arrived` is set when there are events to take.  `worker` is put into events as they leave.
    """

    def __init__(self, level: Level = "all", most_waiting: int = MOST_WAITING) -> None:
        """`level` says which events are noted: all, all but changes of schedules, or none."""
        self._most = most_waiting
        self._level = level
        self._lock = Lock()
        self._waiting: deque[AuditEvent] = deque()
        self._weight = 0
        self._refusals = Refusals()
        self._losses = LimitedLogger(log)
        self.arrived = Event()
        self.worker: str | None = None
        # Called with the numbers of events that were written or lost.
        self.counted: Callable[[str, int], None] = lambda _outcome, _count: None

    def note(self, event: AuditEvent) -> None:
        """Take an event along; returns at once."""
        if self._level != "all" and not event.action.startswith("policy."):
            return
        if self._level == "none":
            return
        with self._lock:
            kept = self._keep(bounded(event))
        if not kept:
            self.lost(event, "more events than can be written")
        self.arrived.set()

    def refused(self, event: AuditEvent) -> None:
        """Take a refusal along, or count it where there were many of its kind; returns at once."""
        if self._level == "none":
            return
        cut = bounded(event)
        with self._lock:
            taken = self._refusals.take(cut)
            kept = taken is None or self._keep(cut)
        if not kept:
            self.lost(event, "more events than can be written")
        self.arrived.set()

    def take(self, most: int, now_ms: int, *, ending: bool = False) -> list[AuditEvent]:
        """The next events to be written, sums of refusals whose time is over among them.

        `ending` takes all sums, because this is the last call.
        """
        with self._lock:
            for each in self._refusals.over(now_ms, ending=ending):
                # A sum stands for refusals that were counted already: it is never turned away.
                self._waiting.append(each)
                self._weight += _weight(each)
            found = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            self._weight -= sum(map(_weight, found))
        return [self._signed(each) for each in found]

    def lost(self, event: AuditEvent, why: str) -> None:
        """Report that an event is not in the audit log: by a counter, and in belfry's own log.

        That log names the first losses of a minute, without values of policies.
        """
        self.counted("lost", 1)
        told: dict[str, Any] = {
            name: value
            for name in ("action", "result", "caller", "tenant", "object", "status", "count")
            if (value := getattr(event, name)) not in (None, "")
        }
        self._losses.error("audit_lost", "an audit event is lost", why=why, **told)

    def _keep(self, event: AuditEvent) -> bool:
        """Whether the event was taken; call it with the lock held.

        An event that is heavier than the limit is taken where no other event waits.
        """
        weight = _weight(event)
        if self._waiting and self._weight + weight > self._most:
            return False
        self._waiting.append(event)
        self._weight += weight
        return True

    def _signed(self, event: AuditEvent) -> AuditEvent:
        """The event with the name of this worker."""
        return event if self.worker is None else replace(event, worker=self.worker)


def _weight(event: AuditEvent) -> int:
    return 1 + len(event.objects)
