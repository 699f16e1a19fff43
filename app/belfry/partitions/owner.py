"""The owner of one partition: it takes over, has its steps done, and gives up, term after term.

    term ── take over ─► claim ─► steps … ─┬ Unknown: the next term takes over anew
            alone        alone    shared   ├ Fenced: the last one
                                           └ stopped: the last one

Taking over and giving up block, so they have a thread of their own.  The steps between them are
turns of a loop that shares its threads with the other partitions' (`host/loops.py`, `steps.py`).

A runner is *assigned* while the group assigns the partition to this worker.  A runner that is not
assigned goes on until its successor fences it: the former owner in a move, or a standby that fenced
a silent owner before the group noticed.  It never takes over a second time.
"""

from __future__ import annotations

import structlog

from belfry.balance.take_overs import TakenOver
from belfry.engine.ownership import Event, Ownership, after
from belfry.host.loops import ALONE, Loop, Turns
from belfry.kafka.agreement import OwnershipRefused
from belfry.kafka.giving_up import close_all
from belfry.kafka.outcome import Fenced, Stopped, Unknown
from belfry.partitions.arrivals import taken_in
from belfry.partitions.committing import StepCommits
from belfry.partitions.day_files import turns_of
from belfry.partitions.failure import PAUSE_AFTER_ERROR_S, Failures
from belfry.partitions.leasing import Leasing
from belfry.partitions.steps import Steps
from belfry.partitions.surroundings import RunnerDependencies
from belfry.partitions.term import Owned, Term, Warm
from belfry.partitions.upkeep import Upkeep
from belfry.recovery.reading import ReplayProgress
from belfry.wire.batch import SourceBatch

log = structlog.get_logger(__name__)


class PartitionRunner:
    """Owns one partition until stopped or fenced off."""

    def __init__(self, partition: int, given: RunnerDependencies, warm: Warm | None = None) -> None:
        opener = given.opener
        self.partition = partition
        self.assigned = True
        self.preemptive = False
        self.reading = ReplayProgress()
        self.state = Ownership.IDLE
        self.owned: Owned | None = None
        self._opener = opener
        self._outputs = given.outputs
        self._worker = given.worker
        self._warm, self._took_over = warm, False
        self._clock = opener.clock
        self._metrics = opener.metrics
        self._log = log.bind(partition=partition)
        self._loop = Loop(f"partition-{partition}", self._terms, given.threads)
        self._loop.last = self._leave
        self._stopping = self._loop.stopping
        self.leasing = Leasing(self._loop.wake)
        upkeep_parts = opener.checkpoint(partition), turns_of(opener, partition)
        self.upkeep = Upkeep(given.guard, self.leasing, opener.clock, *upkeep_parts)
        self.failures = Failures(self._log, opener.clock)
        self._commits = StepCommits(given, self.failures, self.leasing, self.upkeep)
        fires = lambda: self.state is Ownership.FIRING  # noqa: E731
        self._steps = Steps(given, self._commits, self.upkeep, fires, self._loop)
        self.arrivals = self._steps.arrivals

    # -- from other threads ----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to take over."""
        self._loop.start()

    def stop(self) -> None:
        """Ask it to finish its step and give the partition up."""
        self._loop.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; False if it did not come in time."""
        return self._loop.join(timeout_s)

    def deliver(self, term: int, batch: SourceBatch) -> None:
        """Hand a batch over; a batch of an earlier term of this owner is not taken in."""
        self._steps.mail.deliver(term, batch)
        self._loop.wake()

    @property
    def alive(self) -> bool:
        """Whether it owns the partition, is about to, or has yet to give it up."""
        return self._loop.alive

    def turned_ms_ago(self, now_ms: float) -> float:
        """For how long the loop of an owned partition has not come round."""
        return now_ms - self._steps.turned_ms if self.owned is not None else 0.0

    @property
    def epoch(self) -> int | None:
        """Epoch of the present ownership, None while there is none."""
        return None if (owned := self.owned) is None else owned.epoch

    # -- the loop --------------------------------------------------------------------------------

    def _terms(self) -> Turns:
        """One term after the other, until another worker owns the partition."""
        while not self._stopping.is_set():
            failed: Exception | None = None
            try:
                yield from self._until_it_ends(self._begin_term())
            except Exception as error:  # noqa: BLE001  # told below, in a thread of its own
                failed = error
            yield ALONE
            ended, failed = self._ends_for_good(failed), None
            if ended:
                return
            if self.state not in (Ownership.IDLE, Ownership.STOPPED):
                self._move(Event.UNKNOWN)
            if not self.assigned:
                return
            self.failures.pause(self._stopping.wait)

    def _ends_for_good(self, failed: Exception | None) -> bool:
        """Give a term's parts up; returns whether this worker must not own the partition again."""
        try:
            if failed is not None:
                raise failed
        except Unknown as error:
            self.failures.ended(error)
            self._commits.failed()
        except Fenced as error:
            # An orderly move ends like this; any other fence is worth a warning.
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
            # An error holds the frames that it passed through, and with them the open parts.
            failed = None
            self._give_up()
        return False

    def _leave(self) -> None:
        if self.state is not Ownership.STOPPED:
            self._move(Event.REVOKED)
        self._log.info("partition given up")

    def _begin_term(self) -> Owned:
        """Take the partition over, and commit a claim to it; blocks."""
        number = self._steps.begin_term()
        self._move(Event.ASSIGNED)
        self._hold_blocked_tenants()
        self._commits.begin()
        started_ms, ahead = self._clock.monotonic_ms(), self.preemptive
        warm, self._warm = self._warm, None
        owned = self._opener.take_over(
            Term(
                self.partition,
                self._move if not self.assigned else self._move_while_assigned,
                lambda batch: self._worker.hand_over(self, number, batch),
                self.reading,
                self._loop.wake,
                self._wait_in_take_over,
                warm,
            )
        )
        # Other threads that see the partition owned must see a loop that has just come round.
        self._steps.comes_round()
        self.upkeep.begin(self._steps.turned_ms)
        self.owned = owned
        # The claim also measures the clock for the first time, which needs a look at it before.
        self._steps.guarded_ms()
        new = owned.new_settings, owned.new_identity, owned.new_statement, owned.unclosed_rows
        while not self._steps.commit(owned, owned.engine.claim(*new)):
            if self._stopping.wait(PAUSE_AFTER_ERROR_S):
                raise Stopped
            self._steps.comes_round()
        owned.kept()
        self.leasing.outwait(owned, self._stopping.wait)
        self._steps.comes_round()
        self._move(Event.REPLAYED)
        self._told_taken_over(started_ms, warm=warm is not None, ahead=ahead)
        self._steps.begin_reading()
        owned.source.start()
        return owned

    def _until_it_ends(self, owned: Owned) -> Turns:
        """Step after step, until the partition is to be given up or a step fails."""
        limit_ms = self._opener.settings.catch_up_limit_ms
        deadline_ms = self._clock.monotonic_ms() + limit_ms
        while not self._stopping.is_set():
            now_ms, takes_in = self._clock.monotonic_ms(), self.state is Ownership.TAKING_IN
            if takes_in and (now_ms >= deadline_ms or taken_in(owned, now_ms)):
                self._move(Event.TAKEN_IN)
                self.failures.problem = ""
                pending, position = owned.engine.pending, owned.engine.position
                self._log.info("partition fires", pending=pending, position=position)
            yield from self._steps.step(owned)

    def _hold_blocked_tenants(self) -> None:
        """Hold tenants whose topic may not be written to; pause where there is none to hold."""
        if self.failures.was_blocked() and not self._outputs.hold({}):
            self._stopping.wait(PAUSE_AFTER_ERROR_S)

    def _told_taken_over(self, started_ms: float, *, warm: bool, ahead: bool) -> None:
        took_ms, at_ms = self._clock.monotonic_ms() - started_ms, int(self._clock.wall_ms())
        again, self._took_over, records = self._took_over, True, self.reading.records
        self._metrics.recovered(took_ms / 1000)
        done = TakenOver(self.partition, at_ms, int(took_ms), records, warm, ahead, again)
        self._worker.took_over(done)
        told = {"seconds": round(took_ms / 1000, 3), "records": records, "warm": warm}
        self._log.info("partition taken over", **told, by_the_group=self.assigned)

    def _give_up(self) -> None:
        self._steps.end_term()
        self._opener.given_up(self.partition)
        held, self.owned, self._warm = (self.owned, self._warm), None, None
        close_all(*(each.close for each in held if each is not None))

    def _wait_in_take_over(self, seconds: float) -> None:
        """Wait, unless the worker stops or the group has given the partition to another one."""
        if self._stopping.wait(seconds):
            raise Stopped
        if not self.assigned and not self.preemptive:
            raise Fenced("the group moved the partition while it was being taken over")

    def _move_while_assigned(self, event: Event) -> None:
        """Do not fence another owner off once the group has given the partition away."""
        if event is Event.CAUGHT_UP and not self.assigned:
            raise Fenced("the group moved the partition before it was taken over")
        self._move(event)

    def _move(self, event: Event) -> None:
        self.state = after(self.state, event)
        self._log.debug("ownership", state=str(self.state), because=str(event))
