"""Due work of a partition: when there is something to do, and in which order a step does it.

    waits in                    is due
    the timeline                at the first row's due instant
    a tenant's backlog          at once, where the tenant may fire; else when its rate has room
    a catch-up queue            when the rate of catching up has room
    behind an ack lock          when the wait for the ACK ends; at once, where the lock lets go
    for an acknowledgement      when it comes, or at `latest_at`

    a step   backlogs ─► timeline ─► catch-up, in what is left ─► set aside rows find their place
                                                              ─► waits that are over end

Catching up comes last and has a little room even where live events take all of it, so that it comes
to an end.  A backlog may hold rows that are due up to the scan position; so it waits where a clock
went back, or an event would fire before its instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from belfry.engine.after_acks import AfterAcks
from belfry.engine.catch_up import CatchUp
from belfry.engine.firing import Firing
from belfry.engine.oldest import FIRING
from belfry.engine.queues import Queues
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.firing.due import ScanPosition
from belfry.store.schedules import ScheduleStore

# Of the room of a step, catching up has at least one part of so many.
LEAST_SHARE: Final = 16


class DueWork:
    """The due work of one partition; instants are epoch ms.

    `first_ms` is the due instant of the timeline's first row behind the scan position, None for no
    row; it is read from any thread.
    """

    def __init__(
        self,
        store: ScheduleStore,
        waiting: Waiting,
        queues: Queues,
        firing: Firing,
        catch_up: CatchUp,
        after_acks: AfterAcks,
    ) -> None:
        self.first_ms: int | None = None
        self._store = store
        self._waiting = waiting
        self._queues = queues
        self._firing = firing
        self._catch_up = catch_up
        self._after_acks = after_acks

    def look(self, scan: ScanPosition) -> None:
        """See the first row of the timeline, as far as it has not been emptied."""
        self.first_ms = self._store.first_due_ms(scan.next)

    def next_ms(self, scan: ScanPosition) -> int | None:
        """When there is something to fire, None for never; in the past where a backlog waits."""
        due_ms, reached_ms = self.first_ms, scan.reached_ms
        if self._queues.any_ready:
            held_ms = max(reached_ms, self._waiting.held_up_to_ms)
            due_ms = held_ms if due_ms is None else min(held_ms, due_ms)
        again_ms = self._catch_up.next_ms
        locks_ms = self._waiting.locks.next_ms(reached_ms)
        bound_ms = self._waiting.dependents.next_ms
        known = (due_ms, self._queues.next_ms(), again_ms, locks_ms, bound_ms)
        return min([each for each in known if each is not None], default=None)

    def drains(self, scan: ScanPosition) -> bool:
        """Whether something that was held back may fire at once, from a backlog or a lock."""
        lock_ms = self._waiting.locks.next_ms(scan.reached_ms)
        return (lock_ms is not None and lock_ms <= scan.reached_ms) or self._queues.any_ready

    def oldest_ms(self, elsewhere: Mapping[str, int]) -> dict[str, int]:
        """The earliest due instants that are known `elsewhere`, with that of the timeline."""
        found, due_ms = dict(elsewhere), self.first_ms
        if due_ms is not None:
            found[FIRING] = min(due_ms, found.get(FIRING, due_ms))
        return found

    def fire(self, step: Step, at_most: int) -> None:
        """Fire at most `at_most` events that are due, and a few more where some catch up."""
        scan = self._firing.fire_due(step, at_most)
        if self._waiting.catch_up:
            left = at_most - len(step.effects.fired)
            self._catch_up.fire(max(left, at_most // LEAST_SHARE), step)
        self._waiting.settle(scan, step)
        self._firing.end_waits(step)
        self._after_acks.end_bounds(step)
