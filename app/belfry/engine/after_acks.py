"""After acknowledgements: the end of the wait of schedules that wait for one.

    ACK of x is taken in        what waits for x is due when the ACK arrived, and its delay later
    a group has ended           what waits for it is due now, and its delay later
    `latest_at` is over         it is due by that
    nothing is left of x        without `latest_at` it is given up: MISSED, `never_acknowledged`

One example, of y and z after x, where z has `latest_at` 12:10:

    12:00:00   x fires, and is to be acknowledged
    12:03:00   ACK of x, in the same step: y and z have their instant, and lie in the timeline
    12:03:00   the next step fires both

    12:05:00   no ACK: the time-out of x is over, and x has no other fire
    12:06:00   y is given up, for nobody can acknowledge x any more
    12:10:00   z fires, without an acknowledgement

An acknowledgement counts once, for schedules that were taken in before it.  A time-out does not
count as one.  All of it changes the rows of the schedules alone, in the step that took the ACK in,
so a kill or a roll-back leaves either both or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from belfry.engine.asked_rows import Asked
from belfry.engine.conditions import not_found
from belfry.engine.giving_up import give_up
from belfry.engine.group_ends import GroupEnds
from belfry.engine.job_counts import Budget
from belfry.engine.locks import Lock
from belfry.engine.reply import Reply
from belfry.engine.step import Step
from belfry.engine.undo import UndoLog
from belfry.engine.waiting import Waiting
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rule import decode_rule
from belfry.store.layout.dependence import (
    OF_GROUP,
    OF_SCHEDULE,
)
from belfry.store.layout.keys import awaited_key
from belfry.store.layout.locations import is_location
from belfry.store.layout.pending import decode_pending, encode_pending
from belfry.store.layout.records import (
    Awaited,
)
from belfry.store.schedules import ScheduleStore

# A schedule has to be gone for so long before those that wait for it are given up.  So it may be
# replaced by a cancel and a create, or be imported later.
GRACE_MS: Final = 60_000
# Locks that one sweep looks at.
LOOKS: Final = 200


class AfterAcks:
    """Lets dependents of one partition be due, or gives them up."""

    def __init__(
        self,
        store: ScheduleStore,
        waiting: Waiting,
        undo: UndoLog,
        is_quiet: Callable[[bytes], bool],
    ) -> None:
        """`is_quiet` tells of a tenant whether not all of its schedules may be here."""
        self._store = store
        self._waiting = waiting
        self._is_quiet = is_quiet
        self._dependents = waiting.dependents
        self._groups = GroupEnds(store, waiting.locks, undo)
        self._round: Iterator[Lock] = iter(())
        # Since when an awaited schedule has been gone; a new owner looks anew.
        self._gone_ms: dict[Lock, int] = {}

    # -- what ends a wait ------------------------------------------------------------------------

    def acknowledge(self, asked: Asked, step: Step) -> Reply:
        """Carry an ACK out: rows that wait for the fire, or for its schedule, go on."""
        fire_id = asked.request["fire_id"] or ""
        tenant, locks = asked.tenant.name_bytes, self._waiting.locks
        key = awaited_key(tenant, fire_id.encode())
        awaited = locks.awaited(key)
        if awaited is None or awaited.schedule_id != asked.request["schedule_id"].encode():
            if not asked.version:
                return not_found()
            reason = "It was acknowledged before, its time-out is over, or it asked for none."
            return Reply(Outcome.UNCHANGED, asked.version, None, "not_awaited", reason, fire_id)
        let_go = locks.open(key)
        step.effects.room -= sum([len(record) for _, record in let_go])
        self._waiting.let_go(let_go)
        if self._dependents.locks:
            self._acknowledged(tenant, awaited, asked.accepted_ms, step)
        return Reply(Outcome.UPDATED, awaited.version, awaited.due_ms, fire_id=fire_id)

    def _acknowledged(self, tenant: bytes, awaited: Awaited, at_ms: int, step: Step) -> None:
        """A fire was acknowledged by an ACK that arrived then (epoch ms)."""
        lock = Lock(tenant, OF_SCHEDULE + awaited.schedule_id)
        if lock in self._dependents.locks:
            self._release(lock, at_ms, step)
        if awaited.group:
            self._groups.look(Lock(tenant, OF_GROUP + awaited.group))

    def end_bounds(self, step: Step) -> None:
        """Let go those that are due without an acknowledgement by now."""
        next_ms = self._dependents.next_ms
        if next_ms is not None and next_ms <= step.now_ms:
            for name in self._dependents.due(step.now_ms):
                self._let_go(name, None, step)

    @property
    def under_way(self) -> bool:
        """Whether a group is to be walked through, to see whether it has ended."""
        return self._groups.under_way or bool(self._dependents.fresh_groups)

    def advance(
        self, step: Step, budget: Budget, let_go: AbstractSet[bytes] | None = None
    ) -> Budget:
        """Walk on through groups; the rest of the budget.

        Where a log tells which names were `let_go`, no walk is made: how far one has come is in no
        log.  Those groups end that one of these waits for, unless a fire of theirs is awaited.
        """
        if let_go is not None:
            return budget.less(0, self._end_as_logged(let_go, step))
        for lock in list(self._dependents.fresh_groups):
            # No walk sees rows that joined in this very step: the next step begins one.
            if not (self._dependents.has_joined(lock) or self._is_quiet(lock.tenant)):
                del self._dependents.fresh_groups[lock]
                self._groups.watch(lock)
        ended, names = self._groups.walk(
            budget.names, self._dependents.fresh_groups, self._is_quiet
        )
        for lock in ended:
            self._release(lock, step.now_ms, step)
        return budget.less(budget.names - names, len(ended))

    def _end_as_logged(self, let_go: AbstractSet[bytes], step: Step) -> int:
        """Let the groups end that one of these has waited for; how many those are."""
        told = [
            lock
            for lock in self._dependents.groups_of(let_go)
            if not (self._is_quiet(lock.tenant) or self._groups.is_awaited(lock))
        ]
        for lock in told:
            self._release(lock, step.now_ms, step)
        return len(told)

    def _release(self, lock: Lock, from_ms: int, step: Step) -> None:
        """Let all that wait behind a lock be due, each its delay behind this instant."""
        for name in self._dependents.names(lock):
            self._let_go(name, from_ms, step)
        self._forget(lock)

    def _let_go(self, name: bytes, from_ms: int | None, step: Step) -> None:
        """Let one be due, counted from an instant; None: by its `latest_at`."""
        place = self._store.named(name)
        assert place is not None, "who waits behind a lock has a place"
        row = decode_pending(self._store.pending_at(name, place))
        if from_ms is not None:
            rule = decode_rule(row.extra)
            nominal_ms = from_ms + (rule.ack_delay_ms or 0)
            if rule.latest_at is not None:
                nominal_ms = min(nominal_ms, rule.latest_at)
            most_ms = row.jitter_ms
            row = row.at(
                nominal_ms + (jitter_ms(name, nominal_ms, most_ms) if most_ms else 0), nominal_ms
            )
        kept = encode_pending(row)
        step.effects.room -= len(kept)
        self._store.remove(name, place)
        self._store.rewrite(name, kept)
        self._waiting.put(row, kept, step)

    # -- what is looked at now and then ----------------------------------------------------------

    def sweep(self, step: Step) -> None:
        """Look at some of the schedules that others wait for."""
        if not self._dependents.locks:
            return
        some = list(islice(self._round, LOOKS))
        if len(some) < LOOKS:
            self._round = iter(list(self._dependents.locks))
        for lock in some:
            if self._is_quiet(lock.tenant):
                continue
            if lock in self._dependents.locks and not self._forget(lock):
                self._look(lock, step)

    def _look(self, lock: Lock, step: Step) -> None:
        whom = lock.name[1:]
        if lock.name[:1] == OF_GROUP:
            self._groups.look(lock)
        elif self._may_be_acknowledged(lock.tenant, whom):
            self._gone_ms.pop(lock, None)
        elif step.now_ms - self._gone_ms.setdefault(lock, step.now_ms) >= GRACE_MS:
            for name in self._dependents.names(lock):
                give_up(self._store, name, whom, step)
            self._forget(lock)

    def _may_be_acknowledged(self, tenant: bytes, schedule_id: bytes) -> bool:
        """Whether a schedule waits, or a fire of it is to be acknowledged."""
        row = self._store.named(tenant + b"/" + schedule_id)
        waits = row is not None and is_location(row)
        return waits or self._waiting.locks.awaits_fire_of(tenant, schedule_id)

    def _forget(self, lock: Lock) -> bool:
        """Forget a schedule that no other waits for any more; whether that is so."""
        if not self._dependents.forget_empty(lock):
            return False
        self._groups.forget(lock)
        self._gone_ms.pop(lock, None)
        return True
