"""A partition's logged steps, played through an engine again, and compared one by one.

    log      step 1      step 2 …                    step 57                step 58
             claims      requests 0‥41 at 12:00:03   fires at 12:00:05      another owner claims
    engine   claim       accept                      fire_due, accept       a new engine, claim
             └ the same rows and manifest? ─ yes ─► committed here as well
                                             no ──► the next attempt; if none fits, it differs

A step that fits is committed in the engine's own store, so the next step begins from there and not
from the log.  The first difference ends the playback: what follows rests on it.

An owner that takes over begins with an empty memory.  So a step of another epoch begins a new
engine on the same store, as a worker with local state does.  One without local state folds the
changelog first, which puts what was held back into the backlog; `cold_copy` is the same partition
as such a worker has it (`branches.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from belfry.engine.effects import Effects
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.playback.attempts import CHUNK
from belfry.playback.comparing import (
    OwedRows,
    StepDifference,
    distance,
    manifests_differ,
    rows_differ,
)
from belfry.playback.logged import LoggedStep, Unplayable
from belfry.playback.redoing import StepInput, redo
from belfry.playback.treatment import Treatment, said_in
from belfry.playback.ways import ways_of
from belfry.store.layout import keys
from belfry.store.layout.aside import ASIDE_PREFIX
from belfry.store.layout.locations import IN_BACKLOG, IN_CATCH_UP, is_location
from belfry.store.layout.manifests import encode_manifest
from belfry.store.ordered_map import OrderedMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader


@dataclass(slots=True)
class PlayedCounts:
    """What was played; `owed` rows are gone from the log by compaction."""

    steps: int = 0
    requests: int = 0
    fires: int = 0
    rows: int = 0
    owners: int = 0
    attempts: int = 0
    owed: int = 0


class PartitionPlayer:
    """Plays one partition; `rows` is an empty map, which the engine keeps its state in.

    `reader` has to know the schemas of all requests that it is given.
    """

    def __init__(
        self,
        place: SourcePartition,
        rows: OrderedMap,
        reader: RequestReader,
        treatment: Treatment,
        chunk: int = CHUNK,
    ) -> None:
        """`chunk`: the workers' `fire_chunk`."""
        self._chunk = chunk
        self.counts = PlayedCounts()
        self.treatment = treatment
        self._place = place
        self._rows = rows
        self._reader = reader
        self._store = ScheduleStore(rows)
        self._engine: PartitionEngine | None = None
        self._epoch = -1
        self._heard_ms = 0
        self._owed = OwedRows()

    def play(
        self, step: LoggedStep, requests: Sequence[SourceRecord], *, appended: bool = True
    ) -> tuple[Effects, StepDifference | None]:
        """Play the next step, which took these requests in; its effects, and how it differs.

        `appended` says whether the requests' timestamps are the broker's.  Raises `Unplayable` for
        what no playback knows.
        """
        if any(key.startswith(ASIDE_PREFIX) for key in step.rows):
            raise Unplayable(
                f"Transaction {step.manifest.txn_seq} set requests aside until the registry told"
                " of their schema. What the registry said when is in no log."
            )
        if self._engine is None or step.manifest.owner_epoch != self._epoch:
            effects, found = self._take_over(step)
        else:
            taken = StepInput(requests, appended, self._heard_ms, self._remember_ms)
            effects, found = self._go_on(self._engine, step, taken)
        if found is None:
            self._commit(step, requests, effects)
        return effects, found

    @property
    def holds_back(self) -> bool:
        """Whether something waits where a worker that folds the changelog would not put it."""
        store = self._store
        queues = any(store.queue_sizes(queue) for queue in (IN_BACKLOG, IN_CATCH_UP))
        return queues or bool(store.locks())

    def takes_over(self, step: LoggedStep) -> bool:
        """Whether a step is the first of another owner than the one before it."""
        return self._engine is not None and step.manifest.owner_epoch != self._epoch

    def cold_copy(self, rows: OrderedMap, treatment: Treatment) -> PartitionPlayer:
        """The same partition with its changelog folded into an empty map."""
        assert self._engine is not None
        manifest = self._engine.manifest
        folded = [(name, self._standing(name)) for name, _ in self._store.all_names()]
        folded.append((keys.manifest_key(manifest.txn_seq), encode_manifest(manifest)))
        copy = PartitionPlayer(self._place, rows, self._reader, treatment, self._chunk)
        Replay(copy._store).apply(folded, [*range(len(folded))], 0)
        copy._engine, copy._epoch = self._engine, self._epoch
        copy._heard_ms, copy.counts = self._heard_ms, replace(self.counts)
        copy._owed = self._owed.copy()
        return copy

    @property
    def owed(self) -> StepDifference | None:
        """At the end of the log, a row that a step wrote and that is nowhere in it; or None."""
        return self._owed.first

    # -- an owner's first step -------------------------------------------------------------------

    def _take_over(self, step: LoggedStep) -> tuple[Effects, StepDifference | None]:
        """A new owner begins, and claims the partition."""
        logged = step.rows
        born = self._engine is None
        if not born:
            self._store = ScheduleStore(self._rows)
            Replay(self._store).finish(step.written_ms)
        statement = logged.get(keys.STATEMENT_KEY) or self._store.named(keys.STATEMENT_KEY)
        said = said_in(statement)
        self.treatment.begin(said)
        self.treatment.reach(self.treatment.due(step.written_ms))
        tenants = self.treatment.tenants
        engine = self._engine = PartitionEngine(self._place, self._store, self._reader, tenants)
        if born:
            engine.begin_at(step.manifest.position)
        self._epoch = step.manifest.owner_epoch
        settings, identity = logged.get(keys.SETTINGS_KEY), logged.get(keys.IDENTITY_KEY)
        engine.claim(settings, identity, logged.get(keys.STATEMENT_KEY))
        self.counts.owners += 1
        return self._judged(engine, step)

    # -- any other step --------------------------------------------------------------------------

    def _go_on(
        self, engine: PartitionEngine, step: LoggedStep, taken: StepInput
    ) -> tuple[Effects, StepDifference | None]:
        """Make attempts until one fits; else the one that comes nearest, and how it differs."""
        begun = self.treatment.reached, self.treatment.held
        nearest: tuple[int, Effects, StepDifference] | None = None
        fired = set[str]()
        for way in ways_of(step, engine, self._store, self.treatment, self._chunk, fired):
            way.prepare(self.treatment)
            self.counts.attempts += 1
            redo(engine, self._store, way.attempt, step, taken)
            effects, found = self._judged(engine, step)
            if found is None:
                return effects, None
            apart = distance(step, effects.rows)
            if nearest is None or apart < nearest[0]:
                nearest = apart, effects, found
            fired |= {name for name, late in effects.lateness.items() if late}
            engine.aborted()
        self.treatment.reach(begun[0])
        self.treatment.hold(begun[1])
        assert nearest is not None, "there is always a first attempt"
        return nearest[1:]

    def _remember_ms(self, name: bytes) -> int:
        """For how long it is remembered that a schedule is over, by its tenant's policy now."""
        return self.treatment.tenants.of_bytes(name.partition(b"/")[0]).remember_ms

    def _judged(
        self, engine: PartitionEngine, step: LoggedStep
    ) -> tuple[Effects, StepDifference | None]:
        """Seal what was done; its effects, and how they differ from what was logged."""
        effects = engine.claim(None)
        played = engine.seal(self._epoch, read_lease=step.manifest.read_lease)
        # What rows say tells more than what a manifest counts.
        found = rows_differ(step, effects.rows, self._standing)
        return effects, found or manifests_differ(step, played)

    def _standing(self, key: bytes) -> bytes | None:
        """The row under a changelog key as it stands, as the changelog has it."""
        row = self._store.named(key)
        if row is None or key[:1] == b"\0" or not is_location(row):
            return row
        return self._store.pending_at(key, row)

    def _commit(self, step: LoggedStep, requests: Sequence[SourceRecord], effects: Effects) -> None:
        assert self._engine is not None
        self.counts.owed += self._owed.note(step, effects.rows)
        self._engine.committed(step.last + 1, step.written_ms)
        if requests:
            self._heard_ms = max(self._heard_ms, requests[-1][1])
        counts = self.counts
        counts.steps += 1
        counts.requests += len(requests)
        counts.fires += len(effects.fired)
        counts.rows += len(step.rows) + 1
