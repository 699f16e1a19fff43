"""Catching up: schedules that fire each occurrence they missed, slowly and after everybody else.

A rate per partition keeps a week of missed seconds from filling the output topics at once, and a
step gives catching up the room that live events leave, or a little where they leave none.

An example: a schedule of each second was held for an hour; the rate is 1 000 a second, and a step
has room for 120:

    missed     1  2  3  …  3 600 │ 3 601  3 602            live from here on
    step 1     ├── 120 ──┤                                 burst by burst, in order
    step 2               ├── 120 ──┤
    …                                                      3.6 s later the queue is empty
    event      carries nominal instant and occurrence number of the second that it stands for

The schedule is one row in the queue, and the row remembers the next occurrence that was missed. An
occurrence that becomes due meanwhile is a later one of the same row, so none overtakes another.
Each fire has the id that it would have had in time: a step that is rolled back fires the same ones
again under the same ids.
"""

from __future__ import annotations

from belfry.engine.culprits import DUE, FAULTS, Culprits
from belfry.engine.emit import Route, route_to
from belfry.engine.late_runs import too_old
from belfry.engine.occurrences import Occurrences
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.firing.due import Most, take
from belfry.store.layout.locations import IN_CATCH_UP
from belfry.store.layout.pending import decode_pending
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants


class CatchUp:
    """Fires catch-up queues, as fast as the rate lets them.

    The rate is that of the partition (`firing/rates.py`, 2 000 a second); tenants share the rest of
    it in a step, and schedules of one tenant share its part.
    """

    def __init__(
        self,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        occurrences: Occurrences,
        culprits: Culprits,
    ) -> None:
        self._culprits = culprits
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._occurrences = occurrences

    @property
    def next_ms(self) -> int | None:
        """When there is something to fire, or None."""
        waiting = (*self._waiting.catch_up, *self._waiting.slowed)
        ready = any(not self._tenants.of_bytes(name).stopped for name in waiting)
        return self._occurrences.judgement.rate.again_ms if ready else None

    def fire(self, room: int, step: Step) -> None:
        """Fire late occurrences, as many as there is room and rate for."""
        rate = self._occurrences.judgement.rate.filled(step.now_ms)
        left = budget = min(room, rate.left)
        ready = [n for n in self._waiting.catch_up if not self._tenants.of_bytes(n).stopped]
        for number, name in enumerate(ready):
            share = -(-left // (len(ready) - number))
            if share > 0 and not (left < budget and step.time_is_up()):
                left -= self._fire_of(name, share, step)
                step.effects.moved = True
        self._occurrences.judgement.set_rate(rate.less(budget - left))

    def _fire_of(self, name: bytes, share: int, step: Step) -> int:
        """Fire a tenant's share; the number of its fires."""
        route = route_to(self._tenants.of_bytes(name), step)
        fired = 0
        for level in self._waiting.levels.of(IN_CATCH_UP, name):
            if fired < share and (step.effects.room > 0 or not fired):
                fired += self._fire_level((name, level), share - fired, route, step)
        return fired

    def _fire_level(self, of: tuple[bytes, bytes], share: int, route: Route, step: Step) -> int:
        """Fire the rest of a tenant's share for one level of its queue."""
        name, level = of
        queue = self._store.queue(IN_CATCH_UP, name, level)
        rows, _ = take(queue, Most(share, step.effects.room // 2))
        if not rows:
            # They joined in this step.
            return 0
        fired = 0
        for number, (_, record) in enumerate(rows):
            if number and step.time_is_up():
                rows = rows[:number]
                break
            burst = max(1, (share - fired) // (len(rows) - number))
            try:
                fired += self._fire_some(record, route, burst, step)
            except FAULTS as error:
                self._culprits.blame(error, (DUE, record))
                raise
        self._store.take(rows)
        self._waiting.levels.grow(IN_CATCH_UP, name, level, -len(rows))
        self._waiting.shrink(name, len(rows), IN_CATCH_UP)
        return fired

    def _fire_some(self, record: bytes, route: Route, burst: int, step: Step) -> int:
        """Fire a schedule's next few late occurrences, and put it where it waits then."""
        due = decode_pending(record)
        if self._culprits.some and self._occurrences.hold_failed(due, record, step):
            return 0
        followed = self._occurrences.followed(due, record, route.tenant, step)
        if followed is None:
            return 0
        row, record, rule = followed
        now_ms = step.now_ms
        fired = 0
        while fired < burst and now_ms - row.due_ms > rule.limit_ms:
            if fired and (step.effects.room <= 0 or step.time_is_up()):
                break
            if too_old(row, rule, route.tenant, step):
                following = self._occurrences.judgement.pass_over(row, record, rule, route, step)
            else:
                following = self._occurrences.fires.fire(row, record, rule, route, step)
                fired += 1
            if following is None:
                return fired
            row, record = row.following(*following[:3]), following[3]
        if now_ms - row.due_ms > rule.limit_ms:
            self._waiting.hold(row, record, IN_CATCH_UP)
        else:
            step.set_aside.append((row, record))
        return fired
