"""Committing a partition's step, and the consequences of each way in which that can end.

    topics and payloads ─► seal ─► commit ─┬ committed   engine, lease and store take it in
                                           ├ Aborted     the engine forgets it: the step once more
                                           └ else        raised: the term is over

The store is written after the commit, never before.  Each commit also measures the clock against
the broker's, and shows how large a step may be.
"""

from __future__ import annotations

from belfry.engine.effects import Effects
from belfry.kafka.outcome import Aborted
from belfry.kafka.step_producer import Receipt
from belfry.partitions.failure import Failures
from belfry.partitions.leasing import Leasing
from belfry.partitions.pacing import Pace
from belfry.partitions.surroundings import RunnerDependencies
from belfry.partitions.term import Owned
from belfry.partitions.upkeep import Upkeep


class StepCommits:
    """Commits the steps of one partition, term after term; one turn at a time."""

    def __init__(
        self,
        given: RunnerDependencies,
        failures: Failures,
        leasing: Leasing,
        upkeep: Upkeep,
    ) -> None:
        opener = given.opener
        self._clock = opener.clock
        self._metrics = opener.metrics
        self._failpoint = opener.failpoints.reach
        self._guard = given.guard
        self._outputs = given.outputs
        self._payloads = opener.payloads
        self._worker = given.worker
        self._failures = failures
        self._leasing = leasing
        self._upkeep = upkeep
        self._pace = Pace(opener.settings.fire_chunk)

    @property
    def at_most(self) -> int:
        """How many events the next step may fire."""
        return self._pace.at_most

    def begin(self) -> None:
        """A term of ownership begins."""
        self._pace.begin(self._outputs.topics)

    def failed(self) -> None:
        """The result of a step is not known: the next steps are smaller."""
        self._pace.failed()

    def commit(self, owned: Owned, effects: Effects, turned_ms: float) -> bool:
        """Commit a step; False if it was rolled back and is to be done again.

        `turned_ms` is the begin of the step, in monotonic ms.
        """
        engine, started_ms = owned.engine, self._clock.monotonic_ms()
        try:
            self._outputs.prepare(effects)
            if effects.objects:
                self._payloads.put(effects.objects)
                self._failpoint("P1")
            leased = self._leasing.begin(owned, self._clock.monotonic_ms())
            engine.seal(owned.epoch, read_lease=leased)
            receipt = owned.producer.commit(effects)
        except Aborted as error:
            engine.aborted()
            owned.rolled_back()
            if not error.topics:
                self._pace.failed()
            # Without a topic, all topics are looked at, which asks the cluster and takes its time.
            if error.topics or error.blocked:
                self._outputs.hold(error.topics)
            self._failures.rolled_back(error)
            return False
        self._failpoint("S8")
        engine.committed(receipt.next_offset, int(receipt.acknowledged_ms))
        owned.committed()
        self._failpoint("S9")
        self._after(owned, effects, receipt, started_ms, turned_ms)
        return True

    def _after(
        self, owned: Owned, effects: Effects, receipt: Receipt, started_ms: float, turned_ms: float
    ) -> None:
        now_ms = self._clock.monotonic_ms()
        self._upkeep.committed(now_ms)
        self._pace.committed(len(effects.fired), now_ms - started_ms)
        self._failures.committed()
        self._leasing.appended_ms = receipt.appended_ms
        if owned.tenant_inputs is not None:
            owned.tenant_inputs.begin()
        if receipt.appended_ms is not None:
            self._guard.probed(
                receipt.sent_ms,
                receipt.appended_ms,
                receipt.acknowledged_ms,
                receipt.acknowledged_at_ms,
            )
        # Readers see these events only now, however long the step took after its look at the clock.
        since_begin_ms = round(now_ms - turned_ms)
        self._metrics.committed(effects, (now_ms - started_ms) / 1000, since_begin_ms)
        self._worker.committed(effects.lifecycle)
