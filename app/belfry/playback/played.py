"""A partition as it is played: an engine, its rows, and the facts of its log so far.

take_over     a new owner: a new engine on the same rows, which claims the partition
attempt       one way of a step, done and compared; it is committed or rolled back next
cold_copy     the same partition with its changelog folded into empty rows
twin          the same partition to the byte, with what an engine has in memory
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from belfry.engine.effects import Effects
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.playback.attempts import Attempt
from belfry.playback.comparing import OwedRows, StepDifference, manifests_differ, rows_differ
from belfry.playback.logged import LoggedStep
from belfry.playback.redoing import StepInput, redo
from belfry.playback.treatment import Treatment, said_in
from belfry.playback.tried import Standing
from belfry.playback.twins import copied, same_rows
from belfry.store.layout import keys
from belfry.store.layout.locations import IN_BACKLOG, IN_CATCH_UP, is_location
from belfry.store.layout.manifests import encode_manifest
from belfry.store.ordered_map import OrderedMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

# Effects of a step, and how they differ from the log.
Judged = tuple[Effects, StepDifference | None]


@dataclass(slots=True)
class PlayedCounts:
    """The result of a playback; `owed` rows are gone from the log by compaction."""

    steps: int = 0
    requests: int = 0
    fires: int = 0
    rows: int = 0
    owners: int = 0
    attempts: int = 0
    owed: int = 0


class PlayedPartition:
    """One partition; `new_rows` makes an empty map, which the engine keeps its state in.

    `reader` has to know the schemas of all requests that it is given.  `engine` is None before the
    first owner; `heard_ms` is the newest arrival of a request so far (epoch ms).  `ended_early`
    says that a step has left something that was due, which is due still: its worker may have moved
    it to a backlog, which no row tells.
    """

    def __init__(
        self,
        place: SourcePartition,
        new_rows: Callable[[], OrderedMap],
        reader: RequestReader,
        treatment: Treatment,
    ) -> None:
        self.counts = PlayedCounts()
        self.treatment = treatment
        self._place = place
        self._new_rows = new_rows
        self._rows = rows = new_rows()
        self._reader = reader
        self.store = ScheduleStore(rows)
        self.engine: PartitionEngine | None = None
        self._epoch = -1
        self.heard_ms = 0
        self.ended_early = False
        self.owed = OwedRows()

    @property
    def holds_back(self) -> bool:
        """Whether something waits where its rows in the changelog do not tell."""
        sizes = self.store.queue_sizes, self.store.level_sizes
        queues = any(look(queue) for queue in (IN_BACKLOG, IN_CATCH_UP) for look in sizes)
        return queues or bool(self.store.locks())

    @property
    def in_doubt(self) -> bool:
        """Whether the step under way may have moved or passed rows that its bytes do not tell.

        Else all that is due fires, and all that fires shows.
        """
        waits = self.holds_back or self.treatment.held or any(self.store.awaited())
        return bool(waits) or not self.store.changed <= self.store.changes.keys()

    def takes_over(self, step: LoggedStep) -> bool:
        """Whether a step is the first of another owner than the one before it."""
        return step.manifest.owner_epoch != self._epoch

    # -- copies ----------------------------------------------------------------------------------

    def cold_copy(self, treatment: Treatment) -> PlayedPartition:
        """The same partition with its changelog folded into an empty map; another owner is next."""
        assert self.engine is not None
        manifest = self.engine.manifest
        folded = [(name, self.standing(name)) for name, _ in self.store.all_names()]
        folded.append((keys.manifest_key(manifest.txn_seq), encode_manifest(manifest)))
        copy = PlayedPartition(self._place, self._new_rows, self._reader, treatment)
        Replay(copy.store).apply(folded, [*range(len(folded))], 0)
        copy.heard_ms, copy.counts = self.heard_ms, replace(self.counts)
        copy.owed = self.owed.copy()
        return copy

    def twin(self) -> PlayedPartition:
        """The same partition between two steps, with an engine and rows of its own."""
        rows = copied(self._rows, self._new_rows())
        shared = {id(each): each for each in (self._reader, self._new_rows)}
        return deepcopy(self, {id(self._rows): rows, **shared})

    def is_like(self, other: PlayedPartition) -> bool:
        """Whether another one of the same log stands where this one does."""
        assert self.engine is not None
        assert other.engine is not None
        alike = self.engine.unsaid == other.engine.unsaid
        return alike and same_rows(self._rows, other._rows)

    # -- a step ----------------------------------------------------------------------------------

    def take_over(self, step: LoggedStep) -> Judged:
        """A new owner begins, and claims the partition."""
        logged = step.rows
        born = self.store.state() is None and self.store.progress() is None
        if not born:
            self.store = ScheduleStore(self._rows)
            Replay(self.store).finish(step.written_ms)
        statement = logged.get(keys.STATEMENT_KEY) or self.store.named(keys.STATEMENT_KEY)
        self.treatment.begin(said_in(statement))
        self.treatment.reach(self.treatment.due(step.written_ms))
        tenants = self.treatment.tenants
        engine = self.engine = PartitionEngine(self._place, self.store, self._reader, tenants)
        if born:
            engine.begin_at(step.manifest.position)
        self._epoch = step.manifest.owner_epoch
        settings, identity = logged.get(keys.SETTINGS_KEY), logged.get(keys.IDENTITY_KEY)
        engine.claim(settings, identity, logged.get(keys.STATEMENT_KEY))
        self.counts.owners += 1
        return self._judged(engine, step)

    def attempt(self, attempt: Attempt, step: LoggedStep, taken: StepInput) -> Judged:
        """Make an attempt at a step; the caller commits it or rolls it back."""
        assert self.engine is not None
        redo(self.engine, self.store, attempt, step, taken, self.treatment.keep_large)
        return self._judged(self.engine, step)

    def commit(self, step: LoggedStep, requests: Sequence[SourceRecord], effects: Effects) -> None:
        """The step under way is the one of the log."""
        assert self.engine is not None
        counts = self.counts
        counts.owed += self.owed.note(step, effects.rows)
        self.engine.committed(step.last + 1, step.written_ms)
        self.ended_early = self._ended_early(step, effects)
        if requests:
            self.heard_ms = max(self.heard_ms, requests[-1][1])
        counts.steps += 1
        counts.requests += len(requests)
        counts.fires += len(effects.fired)
        counts.rows += len(step.rows) + 1

    def _ended_early(self, step: LoggedStep, effects: Effects) -> bool:
        """Whether this step, or one before it, has left something that is due still."""
        assert self.engine is not None
        due_ms = self.engine.next_due_ms()
        if due_ms is None or due_ms > step.written_ms:
            return False
        # When a step without rows and events began, is not known: something was due when it ended.
        is_silent = not (step.rows or step.manifest.fired)
        return self.ended_early or is_silent or due_ms <= effects.now_ms

    def remember_ms(self, name: bytes) -> int:
        """For how long it is remembered that a schedule is over, by its tenant's policy now."""
        return self.treatment.tenants.of_bytes(name.partition(b"/")[0]).remember_ms

    def _judged(self, engine: PartitionEngine, step: LoggedStep) -> Judged:
        """Seal the step; its effects, and how they differ from the logged ones."""
        effects = engine.claim(None)
        played = engine.seal(self._epoch, read_lease=step.manifest.read_lease)
        # Differences of rows tell more than those of a manifest's counts.
        found = rows_differ(step, effects.rows, self.standing)
        return effects, found or manifests_differ(step, played)

    def place(self, key: bytes) -> Standing:
        """The row under a changelog key, and the store's bytes for it."""
        tenant = self.treatment.tenants.of_bytes(keys.tenant_of(key))
        bounded = tenant.effective.policy.max_pending is not None
        return Standing(self.standing(key), self.store.named(key), bounded)

    def standing(self, key: bytes) -> bytes | None:
        """The row under a changelog key as it stands, as the changelog has it."""
        row = self.store.named(key)
        if row is None or key[:1] == b"\0" or not is_location(row):
            return row
        return self.store.pending_at(key, row)
