"""The engine of one partition: requests in, due events out, one step at a time.

    accept(batch, now)      requests to verdicts           ┐ effects of one step,
    fire_due(now, at_most)  what is due to fired records   ┘ one transaction
    committed(…)            the transaction is in the log: write the same locally
    aborted()               it is not: forget the step

A step fires first and accepts then: the due scan reads only committed rows, and a cancel that
arrives with the fire comes too late.  The engine never looks at a clock and never waits.

A part that raises amid one request or schedule has all of the step done again without it
(`culprits.py`), so the effects of a step are those that its last part has returned.

This is the façade: it hands its parts (`parts.py`) the step, and nothing else ends one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from belfry.engine.aside import Need
from belfry.engine.culprits import Attempts
from belfry.engine.day_files import PutAside
from belfry.engine.drained import Drained
from belfry.engine.effects import Effects
from belfry.engine.groups import GroupFigures
from belfry.engine.job_counts import Budget, WorkAsLogged
from belfry.engine.options import DEFAULTS, EngineOptions
from belfry.engine.parts import EngineParts
from belfry.engine.reports import SourcePartition
from belfry.engine.step import NO_MANIFEST, PartitionStatus, Step, never
from belfry.engine.tenant_figures import TenantFigures
from belfry.firing.due import ScanPosition
from belfry.schedules.rejections import Rejection
from belfry.store.layout.day_files import Entry
from belfry.store.layout.day_reference import DayFile
from belfry.store.layout.keys import IDENTITY_KEY, SETTINGS_KEY, STATEMENT_KEY
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.waits import Wait
from belfry.wire.batch import SourceBatch
from belfry.wire.requests import RequestReader


class PartitionEngine:
    """Schedules of one partition; `store` holds exactly what `manifest` says.

    A step takes in about `step_bytes` of its options, and fires as many: the last of each may be
    larger.  The use by tenants is told for each `metering_ms`; 0: never.
    """

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        reader: RequestReader,
        tenants: Tenants,
        options: EngineOptions = DEFAULTS,
    ) -> None:
        self._step_bytes = options.step_bytes
        self._stands = PartitionStatus.of(store.state())
        self._store = store
        self._parts = parts = EngineParts(place, store, reader, tenants, options, self._stands.scan)
        self._maintenance, self.aside, self.jobs = parts.maintenance, parts.aside, parts.jobs
        self.stale, self.day_files = parts.maintenance.stale, parts.day_files
        parts.due.look(self._stands.scan)
        self._attempts = Attempts(parts.culprits)
        self._step = self._begun()

    @property
    def manifest(self) -> Manifest:
        """Of the last step that was committed."""
        return self._stands.manifest

    @property
    def position(self) -> int:
        """The source offset that the next batch has to begin with."""
        return self._step.position

    @property
    def pending(self) -> int:
        """Number of schedules that wait."""
        return self.manifest.pending

    def begin_at(self, position: int) -> None:
        """Start at this source offset: the partition never had an owner."""
        assert self.manifest is NO_MANIFEST, "a partition that has state has its position"
        self._stands = self._stands._replace(manifest=NO_MANIFEST._replace(position=position))
        self._step.position = position

    # -- open work, and its instants ------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """Instant of the next event to fire, None for none; in the past where a backlog waits."""
        self._see_tenants()
        return self._parts.due.next_ms(self._step.scan)

    @property
    def drains(self) -> bool:
        """Whether something that was held back may fire at once, from a backlog or a lock."""
        self._see_tenants()
        return self._parts.due.drains(self._step.scan)

    def oldest_due_ms(self) -> dict[str, int]:
        """Earliest due instants by the reason of the wait (`engine/oldest.py`); from any thread."""
        return self._parts.due.oldest_ms(self._maintenance.oldest.due_ms)

    def drained(self) -> tuple[Drained, ...]:
        """The last minute buckets that have ended, the newest at the end; from any thread."""
        return self._parts.drains.recent

    def tenants(self) -> dict[bytes, TenantFigures]:
        """Figures by tenant, `REST` for those that are not told apart; from any thread."""
        return self._parts.tallies.figures(self._maintenance.oldest.waits)

    def groups(self) -> GroupFigures:
        """Figures of key groups that are not simply at home; from any thread."""
        return self._parts.groups.figures()

    def wait_of(self, tenant: bytes) -> Wait | None:
        """Why a tenant's events wait, as the last sweep saw it; from any thread."""
        return self._maintenance.oldest.waits.get(tenant)

    @property
    def sweeps_behind(self) -> bool:
        """Whether more was written than sweeps have made up for."""
        return self._maintenance.retention.behind

    @property
    def unsaid(self) -> tuple[object, ...]:
        """The outcome of the step that its rows do not tell: places, turns, the scan position."""
        return self._step.scan, self._store.unsaid, self._parts.waiting.unsaid

    # -- the parts of a step ---------------------------------------------------------------------

    def claim(
        self,
        settings: bytes | None,
        identity: bytes | None = None,
        statement: bytes | None = None,
        unclosed_rows: Iterable[bytes] = (),
    ) -> Effects:
        """The first step of an owner: its manifest, and given values that are not kept yet.

        `unclosed_rows` are keys of rows that the changelog holds behind the last manifest and that
        are not part of the state: rows of the state are written once more, behind them.
        """
        given = {IDENTITY_KEY: identity, SETTINGS_KEY: settings, STATEMENT_KEY: statement}
        unclosed = tuple(unclosed_rows)
        return self._do(lambda: self._claim(given, unclosed))

    def _claim(self, given: Mapping[bytes, bytes | None], unclosed_rows: Iterable[bytes]) -> None:
        for key in unclosed_rows:
            self._store.restate(key)
        for key, row in given.items():
            if row is not None:
                self._store.note(key, row)
        zones = self._parts.zones
        zones.begin()
        if given[SETTINGS_KEY] is not None and not zones.under_way:
            zones.settle()
        self._step.effects.moved = True

    @property
    def effects(self) -> Effects:
        """The work of the step under way so far."""
        return self._step.effects

    @property
    def changed(self) -> int:
        """How many rows it has changed so far, those that only wait at another place included."""
        return len(self._store.changed)

    def fire_due(
        self,
        now_ms: int,
        at_most: int,
        time_is_up: Callable[[], bool] = never,
        most_bytes: int | None = None,
    ) -> Effects:
        """Fire at most `at_most` events that are due by `now_ms`; the first half of a step.

        They have about `most_bytes`, None: as many as a step has room for; the last may be larger.
        Work behind them in the step has the room that they leave of all of it. Some take
        long, for their next instant is far to find.  Where the `time_is_up`, the rest is for the
        next step, which goes on behind the last that has left.
        """
        return self._do(lambda: self._fire_due(now_ms, at_most, time_is_up, most_bytes))

    def _fire_due(
        self, now_ms: int, at_most: int, time_is_up: Callable[[], bool], most_bytes: int | None
    ) -> None:
        step, first_ms = self._step, self._parts.due.first_ms
        if (first_ms is None or first_ms > now_ms) and now_ms > step.scan.watermark_ms:
            # Nothing lies between the watermark and now, so this needs no transaction.
            step.scan = ScanPosition.at(now_ms)
        due_ms = self.next_due_ms()
        if due_ms is not None and due_ms <= now_ms:
            step.begin_firing(now_ms)
            step.time_is_up = self._in_time(time_is_up)
            room = step.effects.room
            withheld = 0 if most_bytes is None else max(0, room - most_bytes)
            step.effects.room = room - withheld
            self._parts.due.fire(step, at_most)
            step.effects.room += withheld

    def take_aside(
        self,
        now_ms: int,
        refused: Mapping[Need, Rejection],
        time_is_up: Callable[[], bool] = never,
    ) -> Effects:
        """Take in requests that were set aside and can be read; comes before `accept` in a step.

        A request that needs one of these schemas is `refused` unread.  `time_is_up` as in `accept`.
        """
        take = self._parts.batches.take_aside
        is_up = never if time_is_up is never else self._in_time(time_is_up)
        return self._do(lambda: take(self._at(now_ms), refused, is_up))

    def accept(
        self,
        batch: SourceBatch,
        now_ms: int,
        refused: Mapping[Need, Rejection] | None = None,
        time_is_up: Callable[[], bool] = never,
    ) -> Effects:
        """Take a batch of requests in; the second half of a step.

        Each request counts from its own arrival (`arrival.py`).  `now_ms` is when its verdict is
        told of, and when the fire of a TRIGGER leaves.

        Where the step has no room left, or its `time_is_up`, `position` stays amid the batch, and
        `batch.behind(position)` is for the next step.  Verdicts do not depend on where a step ends.

        A request whose schema is not known is set aside (`aside.py`), unless it is `refused`.
        With None all schemas are known.  Raises GapInSource.
        """
        accept = self._parts.batches.accept
        is_up = never if time_is_up is never else self._in_time(time_is_up)
        return self._do(lambda: accept(batch, self._at(now_ms), refused, is_up))

    def sweep(self, now_ms: int, at_most: int) -> Effects:
        """Forget rows that are over and keep the rest in order, among the next `at_most` rows."""
        return self._do(lambda: self._parts.sweep(self._at(now_ms), at_most))

    def advance_jobs(
        self, now_ms: int, budget: Budget, as_logged: WorkAsLogged | None = None
    ) -> Effects:
        """Go on with bulk jobs and changed calendars; comes behind the other parts of a step.

        Where a log tells the work of the step (`as_logged`), that is done; else rates and walks
        say.
        """
        return self._do(lambda: self.jobs.advance(self._at(now_ms), budget, as_logged))

    def put_aside(self, now_ms: int, rows: Sequence[PutAside]) -> Effects:
        """Let references to a day file, which is there, stand for payloads of rows."""
        return self._do(lambda: self.day_files.put_aside(rows, self._at(now_ms)))

    def put_back(self, now_ms: int, file: DayFile, entries: Sequence[Entry]) -> Effects:
        """Put payloads of a day file back into rows."""
        return self._do(lambda: self.day_files.put_back(file, entries, self._at(now_ms)))

    def _do(self, part: Callable[[], object]) -> Effects:
        """Do a part of the step; where it fails amid somebody, all of the step without that."""
        if self._step.effects.empty:
            self._attempts.begin()
        self._attempts.do(part, self.aborted)
        return self._step.effects

    def _in_time(self, time_is_up: Callable[[], bool]) -> Callable[[], bool]:
        """The same question, with a yes as well where the step has met faults enough."""
        culprits = self._parts.culprits
        return lambda: culprits.enough or time_is_up()

    def _at(self, now_ms: int) -> Step:
        """The step, whose next part happens at this instant."""
        self._see_tenants()
        self._step.at(now_ms)
        return self._step

    def _see_tenants(self) -> None:
        """See tenants as they are treated now, unless the step has begun: it goes by one policy."""
        if self._step.effects.empty:
            self._parts.tenants.renew()

    # -- the end of a step -----------------------------------------------------------------------

    def seal(self, owner_epoch: int, *, read_lease: bool = False) -> Manifest:
        """The manifest of the step: its work, and where the partition stands after it.

        `read_lease` says that the owner may answer reads for a while without asking anybody.
        """
        self._parts.metering.settle(self._step)
        change, grouped = self._store.pending_change, self._parts.groups.some
        step = self._step
        manifest = step.sealed(owner_epoch, change, read_lease=read_lease, grouped=grouped)
        self._store.seal(manifest)
        return manifest

    def committed(self, changelog_offset: int, now_ms: int) -> None:
        """The step's transaction is in the log up to `changelog_offset`: make it so here."""
        manifest = self._step.effects.manifest
        assert manifest is not None, "a step is sealed before it is committed"
        self._stands = self._step.stands(manifest)
        self._store.commit(StoredState(changelog_offset, now_ms, manifest))
        self._parts.committed(self._step, now_ms)
        self._parts.undo.forget()
        self._parts.culprits.committed()
        self._parts.due.look(self._stands.scan)
        self._step = self._begun()

    def aborted(self) -> None:
        """The step's transaction was rolled back: forget it."""
        self._store.discard()
        self._parts.undo.roll_back()
        self._parts.culprits.aborted()
        self._step = self._begun()

    def _begun(self) -> Step:
        """The next step, from where the partition stands."""
        return Step(self._stands, Effects(rows=self._store.changes, room=self._step_bytes))
