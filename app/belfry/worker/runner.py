"""The loop of one owned partition: a thread that takes over, takes requests in, and fires.

wait for a batch or the next due instant ─► fire_due ─► accept ─► one transaction ─► committed
                                                                      ├ Aborted: once more
                                                                      ├ Unknown: take over anew
                                                                      └ Fenced:  stop

A runner is *rightful* while the group assigns the partition to this worker.  One that is not goes
on until its successor fences it: the former owner in a move, or a standby that fenced a silent
owner before the group noticed.  It never takes over a second time.
"""

from __future__ import annotations

from threading import Event as Flag
from threading import Thread
from typing import Final

import structlog

from belfry.engine.effects import Effects
from belfry.engine.ownership import Event, Ownership, after
from belfry.engine.partition import GapInSource, PartitionEngine
from belfry.wire.batch import SourceBatch
from belfry.worker.arrivals import Arrivals
from belfry.worker.failure import PAUSE_AFTER_ERROR_S, Failures
from belfry.worker.ingress import RENEW_MS
from belfry.worker.lease import Leasing
from belfry.worker.mailbox import Mailbox
from belfry.worker.missing_batch import MissingBatch
from belfry.worker.outcome import Aborted, Fenced, Stopped, Unknown
from belfry.worker.ownership_kit import Kit, Owned, Refused, Term
from belfry.worker.pace import Pace
from belfry.worker.reading import Reading
from belfry.worker.rests import Rests
from belfry.worker.standby import Warm
from belfry.worker.transactions import Receipt

LONGEST_WAIT_S: Final = 1.0
SWEEP_ROWS: Final = 500
SWEEP_EVERY_MS: Final = 1_000
SWEEP_BEHIND_MS: Final = 100
HEARTBEAT_MS: Final = 30_000.0
PAUSE_AFTER_ABORT_S: Final = 0.05
FLUSH_EVERY_MS: Final = 20_000
RESIGN_EVERY_S: Final = 0.05

log = structlog.get_logger(__name__)


class PartitionRunner:
    """Owns one partition in a thread of its own, until stopped or fenced off."""

    def __init__(self, partition: int, kit: Kit, warm: Warm | None = None) -> None:
        self.partition = partition
        self.rightful = True
        self.early = False
        self.beat_ms = HEARTBEAT_MS
        self.reading = Reading()
        self.arrivals = Arrivals(kit.guard)
        self.state = Ownership.IDLE
        self.owned: Owned | None = None
        self._kit = kit
        self._warm = warm
        self._clock = kit.clock
        self._mail = Mailbox(kit.settings.batch_records, kit.settings.step_bytes)
        self.leasing = Leasing(self._mail.wake)
        self._missing = MissingBatch()
        self._stopping = Flag()
        self._pace = Pace(kit.settings.fire_chunk)
        self._log = log.bind(partition=partition)
        self.failures = Failures(self._log, kit.clock)
        self._thread = Thread(target=self._run, name=f"belfry-partition-{partition}", daemon=True)
        self._waiting: SourceBatch | None = None
        self._turned_ms = kit.clock.monotonic_ms()
        self._swept_ms = self._beaten_ms = self._flushed_ms = 0.0
        self._rests = Rests(kit.settings.batch_records)

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
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def deliver(self, term: int, batch: SourceBatch) -> None:
        """Hand a batch over; those of an earlier term of this owner are not taken in."""
        self._mail.deliver(term, batch)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def turned_ms_ago(self, now_ms: float) -> float:
        """For how long the loop of an owned partition has not come round."""
        return now_ms - self._turned_ms if self.owned is not None else 0.0

    @property
    def epoch(self) -> int | None:
        """Epoch of the present ownership, None while there is none."""
        owned = self.owned
        return None if owned is None else owned.epoch

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._one_term()
            except Unknown as error:
                self.failures.ended(error)
                self._pace.failed()
            except Fenced as error:
                # In an orderly move that is how it ends; otherwise somebody should know.
                told = self._log.warning if self.rightful else self._log.info
                told("fenced off by another owner", reason=str(error))
                self._move(Event.FENCED_OFF)
                break
            except Stopped:
                pass
            except Refused as error:
                self.failures.problem = str(error)
                self._kit.refused(self.failures.problem)
                break
            except Exception as error:  # noqa: BLE001  # whatever it is, the changelog has the state
                self.failures.ended(error)
            finally:
                self._give_up()
            if self.state not in (Ownership.IDLE, Ownership.STOPPED):
                self._move(Event.UNKNOWN)
            if not self.rightful:
                break
            self.failures.pause(self._stopping.wait)
        if self.state is not Ownership.STOPPED:
            self._move(Event.REVOKED)
        self._log.info("partition given up")

    def _one_term(self) -> None:
        term, self._waiting = self._mail.begin_term(), None
        self._move(Event.ASSIGNED)
        self._hold_who_is_barred()
        self._pace.begin(self._kit.outputs.topics)
        started_ms = self._clock.monotonic_ms()
        warm, self._warm = self._warm, None
        owned = self._kit.take_over(
            Term(
                self.partition,
                self._move if not self.rightful else self._move_while_rightful,
                lambda batch: self._kit.hand_over(self, term, batch),
                self.reading,
                self._mail.wake,
                self._wait_in_take_over,
                warm,
            )
        )
        # Whoever sees the partition owned is to see a loop that has just come round.
        self._comes_round()
        self.owned = owned
        engine = owned.engine
        # The claim is also the first measurement of the clock, which needs a look at it before.
        self._guarded_ms()
        while not self._commit(engine, engine.claim(owned.new_settings, owned.new_identity)):
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
        deadline_ms = self._clock.monotonic_ms() + self._kit.settings.catch_up_limit_ms
        while not self._stopping.is_set():
            if self.state is Ownership.TAKING_IN and (
                self._taken_in(owned) or self._clock.monotonic_ms() >= deadline_ms
            ):
                self._move(Event.TAKEN_IN)
                self.failures.problem = ""
                self._log.info("partition fires", pending=engine.pending, position=engine.position)
            self._step(owned)

    def _hold_who_is_barred(self) -> None:
        """Whoever's topic may not be written to waits, before it costs another take-over.

        Where that is no tenant's, holding nobody mends anything, and there is no hurry.
        """
        if self.failures.was_barred() and not self._kit.outputs.hold({}):
            self._stopping.wait(PAUSE_AFTER_ERROR_S)

    def _told_taken_over(self, started_ms: float, *, warm: bool) -> None:
        seconds = (self._clock.monotonic_ms() - started_ms) / 1000
        self._kit.metrics.recovered(seconds)
        self._log.info(
            "partition taken over",
            seconds=round(seconds, 3),
            records=self.reading.records,
            warm=warm,
            by_the_group=self.rightful,
        )

    def _taken_in(self, owned: Owned) -> bool:
        """Whether what the source holds has been taken in, up to an end that is not old."""
        position = owned.engine.position
        if not owned.intake.reached(position):
            return False
        if owned.inlets is not None and not owned.inlets.caught_up:
            # What tenants' own topics hold is handed over first, behind what was the end.
            return False
        return owned.intake.fresh(position, self._clock.monotonic_ms())

    def _step(self, owned: Owned) -> None:
        owned.check()
        self._await_work(owned)
        self._comes_round()
        engine, now_ms = owned.engine, self._guarded_ms()
        effects: Effects | None = None
        if self._may_fire():
            self._rests.fires(now_ms)
            effects = engine.fire_due(now_ms, self._pace.at_most)
            self._kit.failpoints.reach("S0")
        batch = self._ready_batch(owned)
        if batch is not None:
            effects = self._accept(owned, batch, self.arrivals.instant_ms(batch, now_ms))
        effects = self._chores(owned, effects, self._clock.monotonic_ms())
        if effects is None or effects.empty or self._commit(engine, effects):
            self._settle(owned, effects, batch)

    def _comes_round(self) -> None:
        self._turned_ms = self._clock.monotonic_ms()

    def _guarded_ms(self) -> int:
        """Now, by what the guard makes of a look at both clocks."""
        wall_ms, monotonic_ms = self._clock.both_ms()
        self._kit.guard.observe(int(wall_ms), int(monotonic_ms))
        return self._kit.guard.now_ms(int(wall_ms))

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
        if events and self._kit.is_asked() and not owned.engine.drains:
            self._rests.after(events, owned.engine.next_due_ms(), self._clock.monotonic_ms())

    def _await_work(self, owned: Owned) -> None:
        """Wait for a batch, the next due instant, or a second, whichever comes first."""
        if self._waiting is not None:
            # Its schemas are asked for: fire meanwhile, and look again soon.
            self._stopping.wait(min(self._due_in_s(owned), 0.02))
            return
        if rest_s := self._rests.left_s(self._clock.monotonic_ms()):
            self._stopping.wait(rest_s)
        self._waiting = self._mail.next(self._due_in_s(owned), owned.resolver.knows)
        if self._waiting is None:
            now_ms = self._clock.monotonic_ms()
            self._missing.look(owned.source.end, owned.engine.position, now_ms)
        else:
            self._missing.arrived(self._clock.monotonic_ms())

    def _due_in_s(self, owned: Owned) -> float:
        due_ms = owned.engine.next_due_ms()
        longest_s = min(LONGEST_WAIT_S, self.beat_ms / 1000)
        if owned.resigning is not None and owned.resigning.under_way:
            longest_s = min(longest_s, RESIGN_EVERY_S)
        if due_ms is None or not self._may_fire():
            return longest_s
        now_ms = self._clock.wall_ms() - self._kit.guard.skew_ms
        return min(max((due_ms - now_ms) / 1000, 0.0), longest_s)

    def _may_fire(self) -> bool:
        return self.state is Ownership.FIRING and self._kit.guard.may_fire

    def _ready_batch(self, owned: Owned) -> SourceBatch | None:
        batch = self._waiting
        if batch is None or not owned.resolver.ready(batch.records):
            return None
        return batch if self.arrivals.may_enter(batch) else None

    def _accept(self, owned: Owned, batch: SourceBatch, now_ms: int) -> Effects:
        try:
            return owned.engine.accept(batch, now_ms)
        except GapInSource as error:
            raise Unknown(f"a batch is missing: {error}") from error

    def _chores(self, owned: Owned, effects: Effects | None, now_ms: float) -> Effects | None:
        """Sweep now and then; a manifest every half minute, or beat, proves clock and fence."""
        if not owned.keeps_state:
            silent = now_ms - self._beaten_ms >= RENEW_MS
            return owned.engine.claim(None) if silent else effects
        every_ms = SWEEP_BEHIND_MS if owned.engine.sweeps_behind else SWEEP_EVERY_MS
        if now_ms - self._swept_ms >= every_ms and self._kit.guard.may_fire:
            self._swept_ms = now_ms
            effects = owned.engine.sweep(self._guarded_ms(), SWEEP_ROWS)
        beats = now_ms - self._beaten_ms >= self.beat_ms or self._kit.guard.wants_probe(int(now_ms))
        proves = self.leasing.wants_commit(owned.producer.lease)
        if beats or proves or (owned.inlets is not None and owned.inlets.wanted):
            effects = owned.engine.claim(None)
        if owned.resigning is not None and owned.resigning.under_way:
            effects = owned.engine.claim(None)
            owned.resigning.add(effects.rows)
        if now_ms - self._flushed_ms >= FLUSH_EVERY_MS:
            self._flushed_ms = now_ms
            owned.rows.flush()
        return effects

    def _commit(self, engine: PartitionEngine, effects: Effects) -> bool:
        """Make a step true; False if it was rolled back and is to be done again."""
        owned = self.owned
        assert owned is not None
        started_ms = self._clock.monotonic_ms()
        lease = owned.producer.lease
        try:
            self._kit.outputs.prepare(effects)
            leased = self.leasing.begin(owned, self._clock.monotonic_ms())
            engine.seal(owned.epoch, read_lease=leased)
            receipt = owned.producer.commit(effects)
        except Aborted as error:
            engine.aborted()
            lease.aborted()
            if owned.resigning is not None:
                owned.resigning.aborted()
            if not error.topics:
                self._pace.failed()
            self._kit.outputs.hold(error.topics)
            self.failures.rolled_back(error)
            self._stopping.wait(PAUSE_AFTER_ABORT_S)
            return False
        self._kit.failpoints.reach("S8")
        engine.committed(receipt.next_offset, int(receipt.acknowledged_ms))
        lease.committed()
        if owned.resigning is not None and owned.resigning.under_way:
            owned.resigning.committed()
        self._kit.failpoints.reach("S9")
        self._after(effects, receipt, started_ms)
        return True

    def _after(self, effects: Effects, receipt: Receipt, started_ms: float) -> None:
        self._beaten_ms = self._clock.monotonic_ms()
        fired = len(effects.fired)
        self._pace.committed(fired, self._beaten_ms - started_ms)
        self.failures.committed()
        self.leasing.appended_ms = receipt.appended_ms
        if self.owned is not None and self.owned.inlets is not None:
            self.owned.inlets.begin()
        if receipt.appended_ms is not None:
            self._kit.guard.probed(
                int(receipt.sent_ms),
                receipt.appended_ms,
                int(receipt.acknowledged_ms),
                int(receipt.acknowledged_at_ms),
            )
        self._kit.metrics.committed(effects, (self._beaten_ms - started_ms) / 1000)
        self._kit.verdicts(effects.lifecycle)

    def _give_up(self) -> None:
        self._kit.watch.forget(self.partition)
        self._kit.trust.marks.given_up(self.partition)
        owned, self.owned = self.owned, None
        if owned is not None:
            owned.close()
        warm, self._warm = self._warm, None
        if warm is not None:
            warm.close()

    def _wait_in_take_over(self, seconds: float) -> None:
        """Wait, unless the worker stops or the group has given the partition to another one."""
        if self._stopping.wait(seconds):
            raise Stopped
        if not self.rightful and not self.early:
            raise Fenced("the group moved the partition while it was being taken over")

    def _move_while_rightful(self, event: Event) -> None:
        """Fence nobody off once the group has given the partition to another worker."""
        if event is Event.CAUGHT_UP and not self.rightful:
            raise Fenced("the group moved the partition before it was taken over")
        self._move(event)

    def _move(self, event: Event) -> None:
        self.state = after(self.state, event)
        self._log.debug("ownership", state=str(self.state), because=str(event))
