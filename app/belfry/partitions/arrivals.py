"""Which requests the loop of a partition may take in now: which clock counts, and those set aside.

**The instant of a batch.**  A request counts from its arrival, so a batch needs an instant of
arrival.  The worker's clock gives it while the clock guard trusts that clock.  Otherwise the
broker's append time of the batch stands in, so a bad clock stops the firing and not the intake.
Only records without an append time have to wait, and `Arrivals.problem` says so.

    clock trusted     append time     taken in at
    yes               any             the worker's now
    no                yes             the newest append time of the batch
    no                no              it waits

**Those set aside.**  A request whose schema is not known yet waits as a row of the engine
(`engine/aside.py`), while `resolver.py` asks the registry for the schema.  These two modules do not
know each other.  `take_aside` brings them together once in each step.  While anything is set aside,
the loop looks again after 20 ms instead of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.engine.arrival import newest_ms
from belfry.engine.effects import Effects
from belfry.firing.clock_guard import ClockGuard
from belfry.partitions.term import Owned
from belfry.wire.batch import SourceBatch

TIMELESS: Final = (
    "requests wait: this worker's clock is not trusted, and the records have no append time of the"
    " broker's. Set message.timestamp.type=LogAppendTime on the topic, and synchronise the clocks"
)
# The longest wait of a partition's loop: usually, and while requests are set aside.
LONGEST_WAIT_S: Final = 1.0
LOOK_AGAIN_S: Final = 0.02


class Arrivals:
    """Judges batches for one partition; `problem` says why the last one has to wait, if it has."""

    def __init__(self, guard: ClockGuard) -> None:
        self._guard = guard
        self.problem = ""

    @property
    def paused_because(self) -> str:
        """Why the clock keeps the partition from firing; empty where it does not."""
        return self._guard.paused_because

    def may_enter(self, batch: SourceBatch) -> bool:
        """Whether there is a clock to take this batch in by."""
        known = self._guard.may_fire or newest_ms(batch) is not None
        self.problem = "" if known else TIMELESS
        return known

    def instant_ms(self, batch: SourceBatch, now_ms: int) -> int:
        """The instant at which a batch that may enter is taken in."""
        return now_ms if self._guard.may_fire else newest_ms(batch) or now_ms


def take_aside(
    owned: Owned, effects: Effects | None, now_ms: int | None, time_is_up: Callable[[], bool]
) -> Effects | None:
    """Look after requests that are set aside, and add those that can be read now to the step.

    Without a trusted clock (`now_ms` is None) they go on waiting.
    """
    engine, resolver = owned.engine, owned.resolver
    if not (resolver.deferred.any or engine.aside.any):
        return effects
    resolver.look_after(engine.aside.heads())
    if now_ms is None:
        return effects
    return engine.take_aside(now_ms, resolver.deferred.refused, time_is_up)


def longest_s(owned: Owned) -> float:
    """How long the loop may wait before it has to look at its work again, in seconds."""
    return LOOK_AGAIN_S if owned.engine.aside.any else LONGEST_WAIT_S


def taken_in(owned: Owned, now_ms: float) -> bool:
    """Whether all requests in the source have been taken in, up to an end that is not old.

    A partition fires after that, or after a while: a waiting request may cancel a due event.
    `now_ms` is of the monotonic clock.
    """
    position = owned.engine.position
    if not owned.intake.reached(position):
        return False
    if owned.tenant_inputs is not None and not owned.tenant_inputs.caught_up:
        # Requests in tenants' own topics are handed over first, behind the former end.
        return False
    return owned.intake.fresh(position, now_ms)
