"""The steps of one partition while it is owned: the wait for work, and the work of one step.

wait for a batch or the next due instant ─► fire_due ─► accept ─► one transaction ─► committed
                 or for room to fire in    └ takes some of the room of all steps ─┘

A step for which there is no room yet fires nothing, and does all its other work (`step_shares.py`).

Each wait is a pause of the partition's loop (`host/loops.py`): other partitions' loops have their
turns meanwhile.  A step itself is one turn, its commit included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.engine.batches import GapInSource
from belfry.engine.effects import Effects
from belfry.host.loops import Loop, Turns
from belfry.kafka.outcome import Unknown
from belfry.partitions.arrivals import LOOK_AGAIN_S, Arrivals, longest_s, take_aside
from belfry.partitions.committing import StepCommits
from belfry.partitions.early_payloads import EarlyPayloads
from belfry.partitions.failure import PAUSE_AFTER_ABORT_S
from belfry.partitions.mailbox import Mailbox, MissingBatch
from belfry.partitions.pacing import Linger
from belfry.partitions.resolver import MOST_AT_ONCE
from belfry.partitions.step_shares import LIGHT, StepShare
from belfry.partitions.surroundings import RunnerDependencies
from belfry.partitions.term import Owned
from belfry.partitions.upkeep import Upkeep
from belfry.wire.batch import SourceBatch

# A step takes requests in for so long, and one request more: due events of other partitions wait.
MOST_TAKING_MS: Final = 250
# It fires for so long, and a few more: some take long to find their next instant, most do not.
MOST_FIRING_MS: Final = 2_000


class Steps:
    """One partition's steps, term after term; one turn at a time.

    `fires` says whether due events may fire. Steps are turns of `loop`; batches come by `mail`.
    """

    def __init__(
        self,
        given: RunnerDependencies,
        commits: StepCommits,
        upkeep: Upkeep,
        fires: Callable[[], bool],
        loop: Loop,
    ) -> None:
        settings = given.opener.settings
        self._clock = given.opener.clock
        self._failpoint = given.opener.failpoints.reach
        self._guard = given.guard
        self._worker = given.worker
        self._commits = commits
        self._upkeep = upkeep
        self._fires = fires
        self._loop = loop
        self._settings = settings
        self._share = StepShare(given.room, loop.wake)
        self._missing = MissingBatch()
        self._linger = Linger(settings.batch_records, settings.commit_interval_ms)
        self._waiting: SourceBatch | None = None
        self.arrivals = Arrivals(given.guard)
        self._early = EarlyPayloads(given.opener.payloads)
        self.mail = Mailbox(settings.batch_records, settings.step_bytes)
        self.turned_ms = self._clock.monotonic_ms()

    def begin_term(self) -> int:
        """Begin a term of ownership and return its number; batches of earlier terms are dropped."""
        self._waiting = None
        return self.mail.begin_term()

    def end_term(self) -> None:
        """A term of ownership is over, however it ended: stop waiting for room."""
        self._share.leave()

    def begin_reading(self) -> None:
        """Batches may come from now on: no batch is missing yet."""
        self._missing.arrived(self._clock.monotonic_ms())

    def comes_round(self) -> None:
        """Note that the loop comes round: it does not hang."""
        self.turned_ms = self._clock.monotonic_ms()

    def guarded_ms(self) -> int:
        """The present instant in epoch ms, as the clock guard judges both clocks."""
        wall_ms, monotonic_ms = self._clock.both_ms()
        self._guard.observe(wall_ms, monotonic_ms)
        return self._guard.now_ms(wall_ms)

    def commit(self, owned: Owned, effects: Effects) -> bool:
        """Commit a step; False if it was rolled back and is to be done again."""
        return self._commits.commit(owned, effects, self.turned_ms)

    def step(self, owned: Owned) -> Turns:
        """Wait for work, and do it."""
        owned.check()
        with self._share:
            yield from self._await_work(owned)
            self.comes_round()
            owned.producer.serve()
            done = self._do(owned, self.guarded_ms())
        if not done:
            yield from self._rest(PAUSE_AFTER_ABORT_S)

    def _do(self, owned: Owned, now_ms: int) -> bool:
        """Do the work of a step; False if it was rolled back and is to be done after a pause."""
        effects = self._fire(owned, now_ms) if self._has_room(owned, now_ms) else None
        batch = None
        over = self._time_is_up(self._clock.monotonic_ms() + MOST_TAKING_MS)
        if not self._early.under_way:
            effects = take_aside(owned, effects, now_ms if self._guard.may_fire else None, over)
            batch = self._ready_batch(owned)
        if batch is not None:
            effects = self._accept(owned, batch, self.arrivals.instant_ms(batch, now_ms), over)
        if self._early.puts_off(owned, effects):
            return True
        effects = self._upkeep.add_to(owned, effects, self._clock.monotonic_ms(), self.guarded_ms)
        done = effects is None or effects.empty or self.commit(owned, effects)
        if done:
            self._settle(owned, effects, batch)
        return done

    def _has_room(self, owned: Owned, now_ms: int) -> bool:
        """Whether to fire in this step: it may, and need not wait for room for due events."""
        due_ms, may_fire = owned.engine.next_due_ms(), self._may_fire()
        if may_fire:
            self._linger.fires(now_ms)
        if due_ms is None or due_ms > now_ms or not may_fire:
            self._share.leave()
            return may_fire
        self._share.ask()
        return not self._share.awaits()

    def _fire(self, owned: Owned, now_ms: int) -> Effects:
        """Fire due events, as many as this step's share allows, and keep the room they take."""
        over = self._time_is_up(self._clock.monotonic_ms() + MOST_FIRING_MS)
        engine, share = owned.engine, self._share
        chunk, most_bytes = self._settings.fire_chunk, self._settings.step_bytes
        room, at_most = engine.effects.room, min(self._commits.at_most, share.of(LIGHT * chunk))
        effects = engine.fire_due(now_ms, at_most, over, share.of(most_bytes))
        # Rows of events that are held back, since their topic is missing say, take room as well.
        events, rows = len(effects.fired), engine.changed
        share.keep(
            (room - effects.room) / most_bytes,
            events / (LIGHT * chunk),
            (rows - events) / chunk,
        )
        self._failpoint("S0")
        return effects

    def _settle(self, owned: Owned, effects: Effects | None, batch: SourceBatch | None) -> None:
        events = len(effects.fired) if effects is not None else 0
        if batch is not None:
            events += len(batch.records)
            self._waiting = None
            # The next batch was not missing while this one waited.
            self._missing.arrived(self._clock.monotonic_ms())
            if left := batch.behind(owned.engine.position):
                self.mail.put_back(left)
                return
            owned.source.taken(batch.parts)
            owned.resolver.taken()
        if events and not owned.engine.drains:
            step = events, owned.engine.next_due_ms(), self.turned_ms, self._clock.monotonic_ms()
            self._linger.after(*step, often=self._worker.is_asked_often())

    # -- waiting ---------------------------------------------------------------------------------

    def _await_work(self, owned: Owned) -> Turns:
        """Wait for a batch, the next due instant and room, or a second, whichever comes first."""
        if self._waiting is not None:
            # The schemas of the batch are looked up: fire meanwhile, and look again soon.
            yield from self._rest(min(self._due_in_s(owned), LOOK_AGAIN_S))
            return
        if linger_s := self._linger.left_s(self._clock.monotonic_ms()):
            yield from self._rest(linger_s)
        # A wake-up during a rest does not cut the rest short, and is kept in `asked`.
        yield 0.0 if self._loop.asked or self.mail.any else self._due_in_s(owned)
        # Reset before all looks: these looks, or the next step, see the cause of a later wake-up.
        self._loop.asked = False
        self._waiting = self.mail.next(owned.resolver.knows)
        now_ms = self._clock.monotonic_ms()
        if self._waiting is None:
            self._missing.look(owned.source.end, owned.engine.position, now_ms)
        else:
            self._missing.arrived(now_ms)

    def _rest(self, seconds: float) -> Turns:
        """Pause for so long, even if the loop is woken; shorter where it is to stop."""
        until_ms = self._clock.monotonic_ms() + 1000 * seconds
        yield seconds
        while (
            left_ms := until_ms - self._clock.monotonic_ms()
        ) > 0 and not self._loop.stopping.is_set():
            yield left_ms / 1000

    def _due_in_s(self, owned: Owned) -> float:
        """Seconds until an event can fire; asks for room where one is due already."""
        due_ms = owned.engine.next_due_ms()
        most_s = min(longest_s(owned), self._upkeep.longest_s(owned))
        if due_ms is None or not self._may_fire():
            return most_s
        due_in_s = (due_ms - self._clock.wall_ms() + self._guard.skew_ms) / 1000
        if due_in_s <= 0:
            self._share.ask()
            due_in_s = self._share.wait_s()
        return min(due_in_s, most_s)

    def _may_fire(self) -> bool:
        return self._fires() and self._guard.may_fire

    # -- a batch ---------------------------------------------------------------------------------

    def _ready_batch(self, owned: Owned) -> SourceBatch | None:
        batch = self._waiting
        if batch is None:
            return None
        ready = owned.resolver.ready(batch.records)
        if owned.resolver.too_many:
            batch = self._waiting = self.mail.first_of(batch, MOST_AT_ONCE)
            ready = owned.resolver.ready(batch.records)
        return batch if ready and self.arrivals.may_enter(batch) else None

    def _time_is_up(self, until_ms: float) -> Callable[[], bool]:
        return lambda: self._clock.monotonic_ms() >= until_ms

    def _accept(
        self, owned: Owned, batch: SourceBatch, now_ms: int, time_is_up: Callable[[], bool]
    ) -> Effects:
        try:
            return owned.engine.accept(batch, now_ms, owned.resolver.refused, time_is_up)
        except GapInSource as error:
            raise Unknown(f"a batch is missing: {error}") from error
