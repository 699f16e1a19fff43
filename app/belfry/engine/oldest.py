"""Since when the oldest due event has been waiting, and for what: looked at in rounds.

The timeline's first event is known all the time.  What waits in queues of tenants, or behind ack
locks, may be of very many: each look reads the first row of some of them, and what a round found is
told when it is over.  So that is a second old, and older where more than `LOOKS` hold something.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from belfry.engine.ack_locks import UNREADABLE_LOCK
from belfry.engine.waiting import Waiting
from belfry.store.layout.records import IN_BACKLOG, IN_CATCH_UP
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import StepTenants

FIRING: Final = "firing"
TENANT_QUEUE: Final = "tenant_queue"
TENANT_BLOCKED: Final = "tenant_blocked"
CATCH_UP: Final = "catch_up"
ACK_LOCK: Final = "ack_lock"
LATER_RELEASE: Final = "later_release"
REASONS: Final = (FIRING, TENANT_QUEUE, TENANT_BLOCKED, CATCH_UP, ACK_LOCK, LATER_RELEASE)
LOOKS: Final = 200

First = tuple[str, int | None]


class Oldest:
    """The earliest due instants of what does not wait in the timeline, by what it waits for."""

    def __init__(self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._round: Iterator[First] | None = None
        self._found: dict[str, int] = {}
        self.due_ms: dict[str, int] = {}

    def look(self) -> None:
        """Look at some; what a round has found is told from its end on."""
        if self._round is None:
            self._found, self._round = {}, self._firsts()
        some = list(islice(self._round, LOOKS))
        for reason, due_ms in some:
            if due_ms is not None:
                self._found[reason] = min(due_ms, self._found.get(reason, due_ms))
        if len(some) < LOOKS:
            self.due_ms, self._round = self._found, None

    def _firsts(self) -> Iterator[First]:
        first_ms, hints = self._store.first_of_queue_ms, self._waiting.hints
        for name in list(self._waiting.backlog):
            reason = self._reason(name, TENANT_QUEUE if name in hints else FIRING)
            yield reason, first_ms(IN_BACKLOG, name, hints.get(name, 0))
        for name in list(self._waiting.catch_up):
            yield self._reason(name, CATCH_UP), first_ms(IN_CATCH_UP, name, 0)
        for lock, due_ms in self._store.first_behind_locks():
            yield LATER_RELEASE if lock == UNREADABLE_LOCK else ACK_LOCK, due_ms

    def _reason(self, name: bytes, usual: str) -> str:
        tenant = self._tenants.of_bytes(name)
        if tenant.stopped:
            return TENANT_BLOCKED
        return TENANT_QUEUE if tenant.queued and usual == FIRING else usual
