"""The loop of one owned partition: a thread that takes over, takes requests in, and fires.

wait for a batch or the next due instant ─► fire_due ─► accept ─► one transaction ─► committed
                                                                      ├ Aborted: once more
                                                                      ├ Unknown: take over anew
                                                                      └ Fenced:  stop

A runner is *assigned* while the group assigns the partition to this worker.  One that is not goes
on until its successor fences it: the former owner in a move, or a standby that fenced a silent
owner before the group noticed.  It never takes over a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from belfry.engine.batches import GapInSource
from belfry.engine.effects import Effects
from belfry.engine.ownership import Event, Ownership, after
from belfry.engine.partition import PartitionEngine
from belfry.firing.clock_guard import ClockGuard
from belfry.host.background import END, Background
from belfry.kafka.agreement import OwnershipRefused
from belfry.kafka.outcome import Aborted, Fenced, Stopped, Unknown
from belfry.kafka.transactions import Receipt
from belfry.outputs.readiness import Outputs
from belfry.partitions.arrivals import LOOK_AGAIN_S, Arrivals, longest_s, take_aside, taken_in
from belfry.partitions.failure import PAUSE_AFTER_ABORT_S, PAUSE_AFTER_ERROR_S, Failures
from belfry.partitions.leasing import Leasing
from belfry.partitions.mailbox import Mailbox, MissingBatch
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.pacing import Linger, Pace
from belfry.partitions.resolver import MOST_AT_ONCE
from belfry.partitions.term import Owned, Term, Warm
from belfry.partitions.upkeep import Upkeep
from belfry.recovery.reading import ReplayProgress
from belfry.wire.batch import SourceBatch
from belfry.wire.lifecycle import LifecycleEvent

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPort:
    """What the loop of a partition tells its worker, and asks it; called from the loop's thread.

    `hand_over` gives a batch that was read to the agent, with the runner and the number of the term
    that it was read in; `refused` says why this worker must not run; `committed` hears of the
    outcomes of each commit; `is_asked` says whether somebody uses the HTTP port just now.
    """

    hand_over: Callable[[PartitionRunner, int, SourceBatch], None]
    refused: Callable[[str], None]
    committed: Callable[[Sequence[LifecycleEvent]], None]
    is_asked: Callable[[], bool]


class PartitionRunner:
    """Owns one partition in a thread of its own, until stopped or fenced off."""

    def __init__(
        self,
        partition: int,
        opener: PartitionOpener,
        guard: ClockGuard,
        outputs: Outputs,
        worker: WorkerPort,
        warm: Warm | None = None,
    ) -> None:
        settings, clock = opener.settings, opener.clock
        self.partition = partition
        self.assigned = True
        self.preemptive = False
        self.reading = ReplayProgress()
        self.arrivals = Arrivals(guard)
        self.state = Ownership.IDLE
        self.owned: Owned | None = None
        self._opener = opener
        self._guard = guard
        self._outputs = outputs
        self._worker = worker
        self._warm = warm
        self._clock = clock
        self._metrics = opener.metrics
        self._failpoint = opener.failpoints.reach
        self._catch_up_limit_ms = settings.catch_up_limit_ms
        self._mail = Mailbox(settings.batch_records, settings.step_bytes)
        self.leasing = Leasing(self._mail.wake)
        self.upkeep = Upkeep(guard, self.leasing, clock)
        self._missing = MissingBatch()
        self._pace = Pace(settings.fire_chunk)
        self._log = log.bind(partition=partition)
        self.failures = Failures(self._log, clock)
        self._thread = Background(f"partition-{partition}", self._turn, self._log, "stumbled")
        self._thread.last = self._leave
        self._stopping = self._thread.stopping
        self._waiting: SourceBatch | None = None
        self._turned_ms = clock.monotonic_ms()
        self._linger = Linger(settings.batch_records)

    # -- from other threads ----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take over."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to finish its step and give the partition up."""
        self._stopping.set()
        self._mail.wake()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the thread; False if it did not come in time."""
        return self._thread.join(timeout_s)

    def deliver(self, term: int, batch: SourceBatch) -> None:
        """Hand a batch over; those of an earlier term of this owner are not taken in."""
        self._mail.deliver(term, batch)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.alive

    def turned_ms_ago(self, now_ms: float) -> float:
        """For how long the loop of an owned partition has not come round."""
        return now_ms - self._turned_ms if self.owned is not None else 0.0

    @property
    def epoch(self) -> int | None:
        """Epoch of the present ownership, None while there is none."""
        return None if (owned := self.owned) is None else owned.epoch

    # -- the thread ------------------------------------------------------------------------------

    def _turn(self) -> object:
        """One term of ownership; the last where somebody else owns the partition after it."""
        if self._ends_for_good():
            return END
        if self.state not in (Ownership.IDLE, Ownership.STOPPED):
            self._move(Event.UNKNOWN)
        if not self.assigned:
            return END
        self.failures.pause(self._stopping.wait)
        return None

    def _ends_for_good(self) -> bool:
        """Own the partition until that ends; whether this worker is not to own it again."""
        try:
            self._one_term()
        except Unknown as error:
            self.failures.ended(error)
            self._pace.failed()
        except Fenced as error:
            # In an orderly move that is how it ends; otherwise somebody should know.
            told = self._log.warning if self.assigned else self._log.info
            told("fenced off by another owner", reason=str(error))
            self._move(Event.FENCED_OFF)
            return True
        except Stopped:
            pass
        except OwnershipRefused as error:
            self.failures.problem = str(error)
            self._worker.refused(self.failures.problem)
            return True
        except Exception as error:  # noqa: BLE001  # whatever it is, the changelog has the state
            self.failures.ended(error, self.owned)
        finally:
            self._give_up()
        return False

    def _leave(self) -> None:
        if self.state is not Ownership.STOPPED:
            self._move(Event.REVOKED)
        self._log.info("partition given up")

    def _one_term(self) -> None:
        term, self._waiting = self._mail.begin_term(), None
        self._move(Event.ASSIGNED)
        self._hold_blocked_tenants()
        self._pace.begin(self._outputs.topics)
        started_ms = self._clock.monotonic_ms()
        warm, self._warm = self._warm, None
        owned = self._opener.take_over(
            Term(
                self.partition,
                self._move if not self.assigned else self._move_while_assigned,
                lambda batch: self._worker.hand_over(self, term, batch),
                self.reading,
                self._mail.wake,
                self._wait_in_take_over,
                warm,
            )
        )
        # Whoever sees the partition owned is to see a loop that has just come round.
        self._comes_round()
        self.upkeep.begin(self._turned_ms)
        self.owned = owned
        engine = owned.engine
        # The claim is also the first measurement of the clock, which needs a look at it before.
        self._guarded_ms()
        new = owned.new_settings, owned.new_identity, owned.new_statement, owned.unclosed_rows
        while not self._commit(engine, engine.claim(*new)):
            if self._stopping.wait(PAUSE_AFTER_ERROR_S):
                raise Stopped
            self._comes_round()
        owned.kept()
        self.leasing.outwait(owned, self._stopping.wait)
        self._comes_round()
        self._move(Event.REPLAYED)
        self._told_taken_over(started_ms, warm=warm is not None)
        self._missing.arrived(self._clock.monotonic_ms())
        owned.source.start()
        deadline_ms = self._clock.monotonic_ms() + self._catch_up_limit_ms
        while not self._stopping.is_set():
            if self.state is Ownership.TAKING_IN and (
                taken_in(owned, self._clock.monotonic_ms())
                or self._clock.monotonic_ms() >= deadline_ms
            ):
                self._move(Event.TAKEN_IN)
                self.failures.problem = ""
                self._log.info("partition fires", pending=engine.pending, position=engine.position)
            self._step(owned)

    def _hold_blocked_tenants(self) -> None:
        """Hold tenants whose topic may not be written to; with none to hold, there is no hurry."""
        if self.failures.was_blocked() and not self._outputs.hold({}):
            self._stopping.wait(PAUSE_AFTER_ERROR_S)

    def _told_taken_over(self, started_ms: float, *, warm: bool) -> None:
        seconds = (self._clock.monotonic_ms() - started_ms) / 1000
        self._metrics.recovered(seconds)
        told = {"seconds": round(seconds, 3), "records": self.reading.records, "warm": warm}
        self._log.info("partition taken over", **told, by_the_group=self.assigned)

    def _step(self, owned: Owned) -> None:
        owned.check()
        self._await_work(owned)
        self._comes_round()
        engine, now_ms = owned.engine, self._guarded_ms()
        effects: Effects | None = None
        if self._may_fire():
            self._linger.fires(now_ms)
            effects = engine.fire_due(now_ms, self._pace.at_most)
            self._failpoint("S0")
        effects = take_aside(owned, effects, now_ms if self._guard.may_fire else None)
        batch = self._ready_batch(owned)
        if batch is not None:
            effects = self._accept(owned, batch, self.arrivals.instant_ms(batch, now_ms))
        effects = self.upkeep.add_to(owned, effects, self._clock.monotonic_ms(), self._guarded_ms)
        if effects is None or effects.empty or self._commit(engine, effects):
            self._settle(owned, effects, batch)

    def _comes_round(self) -> None:
        self._turned_ms = self._clock.monotonic_ms()

    def _guarded_ms(self) -> int:
        """Now, by what the guard makes of a look at both clocks."""
        wall_ms, monotonic_ms = self._clock.both_ms()
        self._guard.observe(int(wall_ms), int(monotonic_ms))
        return self._guard.now_ms(int(wall_ms))

    def _settle(self, owned: Owned, effects: Effects | None, batch: SourceBatch | None) -> None:
        events = len(effects.fired) if effects is not None else 0
        if batch is not None:
            events += len(batch.records)
            self._waiting = None
            # What comes next was not missing while this batch waited.
            self._missing.arrived(self._clock.monotonic_ms())
            if left := batch.behind(owned.engine.position):
                self._mail.put_back(left)
                return
            owned.source.taken(batch.parts)
            owned.resolver.taken()
        if events and self._worker.is_asked() and not owned.engine.drains:
            self._linger.after(events, owned.engine.next_due_ms(), self._clock.monotonic_ms())

    def _await_work(self, owned: Owned) -> None:
        """Wait for a batch, the next due instant, or a second, whichever comes first."""
        if self._waiting is not None:
            # Its schemas are asked for: fire meanwhile, and look again soon.
            self._stopping.wait(min(self._due_in_s(owned), LOOK_AGAIN_S))
            return
        if linger_s := self._linger.left_s(self._clock.monotonic_ms()):
            self._stopping.wait(linger_s)
        self._waiting = self._mail.next(self._due_in_s(owned), owned.resolver.knows)
        if self._waiting is None:
            now_ms = self._clock.monotonic_ms()
            self._missing.look(owned.source.end, owned.engine.position, now_ms)
        else:
            self._missing.arrived(self._clock.monotonic_ms())

    def _due_in_s(self, owned: Owned) -> float:
        due_ms = owned.engine.next_due_ms()
        most_s = min(longest_s(owned), self.upkeep.longest_s(owned))
        if due_ms is None or not self._may_fire():
            return most_s
        now_ms = self._clock.wall_ms() - self._guard.skew_ms
        return min(max((due_ms - now_ms) / 1000, 0.0), most_s)

    def _may_fire(self) -> bool:
        return self.state is Ownership.FIRING and self._guard.may_fire

    def _ready_batch(self, owned: Owned) -> SourceBatch | None:
        batch = self._waiting
        if batch is None:
            return None
        ready = owned.resolver.ready(batch.records)
        if owned.resolver.too_many:
            batch = self._waiting = self._mail.first_of(batch, MOST_AT_ONCE)
            ready = owned.resolver.ready(batch.records)
        return batch if ready and self.arrivals.may_enter(batch) else None

    def _accept(self, owned: Owned, batch: SourceBatch, now_ms: int) -> Effects:
        try:
            return owned.engine.accept(batch, now_ms, owned.resolver.refused)
        except GapInSource as error:
            raise Unknown(f"a batch is missing: {error}") from error

    def _commit(self, engine: PartitionEngine, effects: Effects) -> bool:
        """Make a step true; False if it was rolled back and is to be done again."""
        owned = self.owned
        assert owned is not None
        started_ms = self._clock.monotonic_ms()
        try:
            self._outputs.prepare(effects)
            leased = self.leasing.begin(owned, self._clock.monotonic_ms())
            engine.seal(owned.epoch, read_lease=leased)
            receipt = owned.producer.commit(effects)
        except Aborted as error:
            engine.aborted()
            owned.rolled_back()
            if not error.topics:
                self._pace.failed()
            self._outputs.hold(error.topics)
            self.failures.rolled_back(error)
            self._stopping.wait(PAUSE_AFTER_ABORT_S)
            return False
        self._failpoint("S8")
        engine.committed(receipt.next_offset, int(receipt.acknowledged_ms))
        owned.committed()
        self._failpoint("S9")
        self._after(effects, receipt, started_ms)
        return True

    def _after(self, effects: Effects, receipt: Receipt, started_ms: float) -> None:
        now_ms = self._clock.monotonic_ms()
        self.upkeep.committed(now_ms)
        self._pace.committed(len(effects.fired), now_ms - started_ms)
        self.failures.committed()
        self.leasing.appended_ms = receipt.appended_ms
        if self.owned is not None and self.owned.tenant_inputs is not None:
            self.owned.tenant_inputs.begin()
        if receipt.appended_ms is not None:
            self._guard.probed(
                int(receipt.sent_ms),
                receipt.appended_ms,
                int(receipt.acknowledged_ms),
                int(receipt.acknowledged_at_ms),
            )
        # Readers see what fired from now on, whatever the step took after it looked at the clock.
        since_begin_ms = round(now_ms - self._turned_ms)
        self._metrics.committed(effects, (now_ms - started_ms) / 1000, since_begin_ms)
        self._worker.committed(effects.lifecycle)

    def _give_up(self) -> None:
        self._opener.given_up(self.partition)
        held, self.owned, self._warm = (self.owned, self._warm), None, None
        for each in held:
            if each is not None:
                each.close()

    def _wait_in_take_over(self, seconds: float) -> None:
        """Wait, unless the worker stops or the group has given the partition to another one."""
        if self._stopping.wait(seconds):
            raise Stopped
        if not self.assigned and not self.preemptive:
            raise Fenced("the group moved the partition while it was being taken over")

    def _move_while_assigned(self, event: Event) -> None:
        """Fence nobody off once the group has given the partition to another worker."""
        if event is Event.CAUGHT_UP and not self.assigned:
            raise Fenced("the group moved the partition before it was taken over")
        self._move(event)

    def _move(self, event: Event) -> None:
        self.state = after(self.state, event)
        self._log.debug("ownership", state=str(self.state), because=str(event))
