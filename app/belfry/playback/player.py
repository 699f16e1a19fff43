"""A partition's logged steps, played through an engine again, and compared one by one.

    log      step 1      step 2 …                    step 57                step 58
             claims      requests 0‥41 at 12:00:03   fires at 12:00:05      another owner claims
    engine   claim       accept                      fire_due, accept       a new engine, claim
             └ the same rows and manifest? ─ yes ─► committed here as well
                                             no ──► the next attempt; if none fits, it differs

A step that fits is committed in the engine's own store, so the next step begins from there and not
from the log.  The first difference ends the playback: later steps rest on it.

An owner that takes over begins with an empty memory.  So a step of another epoch begins a new
engine on the same store, as a worker with local state does.  One without local state folds the
changelog first, which puts rows that were held back into the backlog; `cold_copy` is the same
partition as such a worker has it (`branches.py`).

A step that fits in several ways, which leave different things behind, goes on in each of them: the
player has twins then (`twins.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from belfry.engine.partition import PartitionEngine
from belfry.playback.attempts import Attempt, sizes_of
from belfry.playback.comparing import distance
from belfry.playback.instants import concerned_by
from belfry.playback.logged import LoggedStep, Unplayable
from belfry.playback.played import Judged, PlayedPartition
from belfry.playback.redoing import StepInput
from belfry.playback.tried import Tried
from belfry.playback.twins import other_ways
from belfry.playback.ways import Way, let_go, ways_of
from belfry.store.layout.aside import ASIDE_PREFIX
from belfry.store.layout.groups import GROUP_PREFIX
from belfry.wire.record import SourceRecord


class PartitionPlayer:
    """Plays one partition, step after step; `chunk` is the workers' `fire_chunk`.

    `twins` are players that go on besides this one, from a last step that fits in other ways too.
    `tried` has the results of the attempts at a step that fits in none.
    """

    def __init__(self, partition: PlayedPartition, chunk: int) -> None:
        self.partition = partition
        self.twins: list[PartitionPlayer] = []
        self.tried = Tried()
        self._chunk = chunk

    def play(
        self, step: LoggedStep, requests: Sequence[SourceRecord], *, appended: bool = True
    ) -> Judged:
        """Play the next step, which took these requests in; its effects, and how it differs.

        `appended` says whether the requests' timestamps are the broker's.  Raises `Unplayable` for
        records that no playback knows.
        """
        if any(key.startswith(ASIDE_PREFIX) for key in step.rows):
            raise Unplayable(
                f"Transaction {step.manifest.txn_seq} set requests aside until the registry told"
                " of their schema. What the registry said when is in no log."
            )
        if any(key.startswith(GROUP_PREFIX) for key in step.rows):
            raise Unplayable(
                f"In transaction {step.manifest.txn_seq} a key group was on its way to another"
                " partition. How much of it a step moved is in no log: what lies before and behind"
                " the move can be played."
            )
        partition, self.twins, self.tried = self.partition, [], Tried()
        if partition.engine is None or partition.takes_over(step):
            effects, found = partition.take_over(step)
        else:
            taken = StepInput(requests, appended, partition.heard_ms, partition.remember_ms)
            effects, found = self._go_on(partition.engine, step, taken)
        if found is None:
            for each in (self, *self.twins):
                each.partition.commit(step, requests, effects)
        return effects, found

    def _go_on(self, engine: PartitionEngine, step: LoggedStep, taken: StepInput) -> Judged:
        """Make attempts until one fits; else the one that comes nearest, and how it differs."""
        partition, treatment = self.partition, self.partition.treatment
        begun = treatment.reached, treatment.held
        nearest: tuple[int, Judged] | None = None
        fired = set[str]()
        for way in ways_of(step, partition, self._chunk, fired, taken.requests):
            way.prepare(treatment)
            partition.counts.attempts += 1
            effects, found = partition.attempt(way.attempt, step, taken)
            if found is None:
                self._find_twins(engine, way, step, taken)
                return effects, None
            apart = distance(step, effects.rows)
            if nearest is None or apart < nearest[0]:
                nearest = apart, (effects, found)
            fired |= {name for name, late in effects.lateness.items() if late}
            fired.update(concerned_by(step, effects.rows))
            engine.aborted()
            self.tried.note(step, len(effects.fired), effects.rows, partition.standing)
        treatment.reach(begun[0])
        treatment.hold(begun[1])
        assert nearest is not None, "there is always a first attempt"
        return nearest[1]

    def _find_twins(
        self, engine: PartitionEngine, fit: Way, step: LoggedStep, taken: StepInput
    ) -> None:
        """The step under way fits: find the other ways in which it fits as well."""
        partition = self.partition
        if not partition.in_doubt:
            return
        seen = [engine.unsaid]
        engine.aborted()

        def tried(attempt: Attempt) -> tuple[object, ...] | None:
            _, found = partition.attempt(attempt, step, taken)
            unsaid = engine.unsaid
            engine.aborted()
            return unsaid if found is None else None

        ways: list[Way] = []
        for way in (fit, *let_go(fit)):
            way.prepare(partition.treatment)
            others = other_ways(way.attempt, step, sizes_of(self._chunk), seen, tried)
            ways += [way._replace(attempt=each) for each in others]
        fit.prepare(partition.treatment)
        for way in ways:
            twin = PartitionPlayer(partition.twin(), self._chunk)
            way.prepare(twin.partition.treatment)
            twin.partition.attempt(way.attempt, step, taken)
            self.twins.append(twin)
        partition.attempt(fit.attempt, step, taken)
