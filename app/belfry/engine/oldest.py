"""Since when the oldest due event has been waiting, and for what: looked at in rounds.

The timeline's first event is known all the time.  Queues of tenants, and ack locks, may be very
many: each look reads the first row of some of them, and the findings of a round are told when it is
over.  So they are a second old, and older where more than `LOOKS` queues and locks hold something.

A round tells it of the partition (`due_ms`), and of each tenant (`waits`): where one waits for
several things, the one that its oldest due event waits for.  A tenant that is blocked and has
schedules is told of before any of them is due.

    look      1         2         3          200 looks with each sweep
    round     ├───── queues ─────┤├ locks ┤├ blocked tenants without a backlog ┤
    told                                                                        ▲ all at once

The findings are replaced as a whole at the end of a round, so a reader in another thread never sees
half of one.  The bounds below keep a look short however much waits; counts stop at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, NamedTuple

from belfry.engine.locks import UNREADABLE_LOCK, Lock
from belfry.engine.waiting import Waiting
from belfry.store.layout import keys
from belfry.store.layout.dependence import DEPENDENCES
from belfry.store.layout.locations import IN_BACKLOG, IN_CATCH_UP
from belfry.store.layout.pending_bytes import away
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants
from belfry.tenants.waits import (
    ACK_LOCK,
    CATCH_UP,
    DAY_FILE,
    FIRING,
    LATER_RELEASE,
    REASONS,
    TENANT_BLOCKED,
    TENANT_QUEUE,
    Wait,
    Why,
    why,
    why_locked,
)

__all__ = ["FIRING", "LOOKS", "REASONS", "Oldest"]

LOOKS: Final = 200
# Tenants that wait for nothing: so many of them are passed over for one look.
PASSED: Final = 10
# Rows that are counted: of a queue that holds later ones too, or of those behind a lock.
MOST_COUNTED: Final = 100
# The same of all locks of a round: their rows are read with their payloads.
MOST_BEHIND_LOCKS: Final = 2_000


class First(NamedTuple):
    """The result of one look: the tenant, why its rows wait, and the first of them that is due."""

    tenant: bytes
    why: Why
    due_ms: int | None
    waiting: int
    since_ms: int | None = None


class Oldest:
    """The earliest due instants outside the timeline, by the reason for which rows wait there."""

    def __init__(
        self,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        pending: Callable[[], Iterable[bytes]],
    ) -> None:
        """`pending` names the tenants that have schedules."""
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._pending = pending
        self._round: Iterator[First | None] | None = None
        self._found: dict[str, int] = {}
        self._found_of: dict[bytes, First] = {}
        self.due_ms: dict[str, int] = {}
        self.waits: Mapping[bytes, Wait] = {}

    def look(self, now_ms: int) -> None:
        """Look at some; the findings of a round are told from its end on."""
        if self._round is None:
            self._found, self._found_of, self._round = {}, {}, self._firsts(now_ms)
        some = list(islice(self._round, LOOKS))
        for first in some:
            if first is not None:
                self._note(first)
        if len(some) < LOOKS:
            self.due_ms, self._round = self._found, None
            self.waits = {name: self._wait(first, now_ms) for name, first in self._of_tenants()}

    def _note(self, first: First) -> None:
        reason, due_ms = first.why.waiting_for, first.due_ms
        if due_ms is not None:
            self._found[reason] = min(due_ms, self._found.get(reason, due_ms))
        known = self._found_of.get(first.tenant)
        if known is None or _age(first) < _age(known):
            self._found_of[first.tenant] = first

    def _of_tenants(self) -> Iterator[tuple[bytes, First]]:
        """Tenants that wait for something, and not only for the next step."""
        for name, first in self._found_of.items():
            if first.why.waiting_for != FIRING:
                yield name, first

    def _wait(self, first: First, now_ms: int) -> Wait:
        since_ms, before = first.since_ms, self.waits.get(first.tenant)
        if since_ms is None:
            goes_on = before is not None and before.why.cause == first.why.cause
            since_ms = before.since_ms if before is not None and goes_on else now_ms
        return Wait(first.why, since_ms, first.waiting, first.due_ms)

    def _firsts(self, now_ms: int) -> Iterator[First | None]:
        """The findings of a round, with a None for each few that were passed over."""
        for name in list(self._waiting.backlog):
            yield self._of_backlog(name, now_ms)
        for name, size in list(self._waiting.catch_up.items()):
            yield First(name, self._why(name, CATCH_UP), self._first_ms(IN_CATCH_UP, name, 0), size)
        yield from self._behind_locks()
        # A commit may change it between two looks of one round.
        for number, name in enumerate(list(self._pending())):
            if number % PASSED == 0:
                yield None
            if name not in self._waiting.backlog and self._tenants.of_bytes(name).stopped:
                yield First(name, self._why(name, TENANT_BLOCKED), None, 0)

    def _of_backlog(self, name: bytes, now_ms: int) -> First:
        levels = self._waiting.levels.of(IN_BACKLOG, name)
        hint = self._waiting.levels.first_hint(name)
        due_ms = self._first_ms(IN_BACKLOG, name, hint or 0)
        waiting = self._waiting.backlog.get(name, 0)
        reason = self._why(name, FIRING if hint is None else TENANT_QUEUE)
        if hint is not None:
            # It holds rows that are due later as well.
            between = self._store.queue_between
            due = chain(*(between(IN_BACKLOG, name, hint, now_ms, level) for level in levels))
            waiting = sum(1 for _ in islice(due, MOST_COUNTED))
            if not waiting and reason.waiting_for == TENANT_QUEUE:
                reason = why(FIRING, self._tenants.of_bytes(name))
        return First(name, reason, due_ms, waiting)

    def _first_ms(self, queue: int, name: bytes, from_ms: int) -> int | None:
        """The first of a tenant's queue that is due from then on, whatever its priority."""
        levels = self._waiting.levels.of(queue, name)
        firsts = [self._store.first_of_queue_ms(queue, name, from_ms, level) for level in levels]
        return min([each for each in firsts if each is not None], default=None)

    def _behind_locks(self) -> Iterator[First | None]:
        left = MOST_BEHIND_LOCKS
        for tenant, lock, due_ms in self._store.first_behind_locks():
            if lock[:1] in DEPENDENCES:
                # It waits to be due at all.
                yield None
                continue
            rows = islice(self._store.locked(tenant, lock), min(MOST_COUNTED, max(1, left)))
            if lock == UNREADABLE_LOCK:
                firsts = self._unreadable(tenant, rows)
                left -= sum(first.waiting for first in firsts)
                yield from firsts
                continue
            waiting = sum(1 for _ in rows)
            left -= waiting
            held = self._waiting.locks.holder(Lock(tenant, lock))
            if held is None:
                yield First(tenant, why(ACK_LOCK, self._tenants.of_bytes(tenant)), due_ms, waiting)
            else:
                key, awaited = held
                _, fire_id = keys.awaited_names(key)
                reason = why_locked(awaited.schedule_id.decode(), fire_id.decode())
                yield First(tenant, reason, due_ms, waiting, awaited.fired_ms)

    def _unreadable(self, tenant: bytes, rows: Iterable[tuple[bytes, bytes]]) -> list[First]:
        """Rows that cannot fire now: those whose payloads are away, and those of later releases."""
        found: dict[str, First] = {}
        for key, record in rows:
            reason = DAY_FILE if away(record) else LATER_RELEASE
            before = found.get(reason)
            if before is None:
                told = why(reason, self._tenants.of_bytes(tenant))
                before = First(tenant, told, keys.due_of(key), 0)
            found[reason] = before._replace(waiting=before.waiting + 1)
        return list(found.values())

    def _why(self, name: bytes, usual: str) -> Why:
        tenant = self._tenants.of_bytes(name)
        if tenant.stopped:
            return why(TENANT_BLOCKED, tenant)
        return why(TENANT_QUEUE if tenant.queued and usual == FIRING else usual, tenant)


def _age(first: First) -> tuple[bool, int]:
    """Sorts looks: those that found something due come first, the oldest of them at the front."""
    return first.due_ms is None, first.due_ms or 0
