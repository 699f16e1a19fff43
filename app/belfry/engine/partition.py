"""The engine of one partition: requests in, due events out, one step at a time.

    accept(batch, now)      requests to verdicts           ┐ effects of one step,
    fire_due(now, at_most)  what is due to fired records   ┘ one transaction
    committed(…)            the transaction is in the log: write the same locally
    aborted()               it is not: forget the step

A step fires first and accepts then: the due scan reads only what is committed, and a cancel that
arrives with the fire comes too late.  The engine never looks at a clock and never waits.

This is the façade: it makes the parts, hands them the step, and ends it.  Nothing else commits or
rolls anything back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

from belfry.engine.aside import Aside, Need, Unread
from belfry.engine.calendars import Calendars
from belfry.engine.catch_up import LEAST_SHARE, CatchUp
from belfry.engine.changes import Changes
from belfry.engine.drained import Drained, Drains
from belfry.engine.effects import Effects
from belfry.engine.emit import emit
from belfry.engine.fast_path import FastPath
from belfry.engine.firing import Firing
from belfry.engine.intake import Intake, IntakeParts
from belfry.engine.job_counts import Budget
from belfry.engine.jobs import JobMeans, Jobs
from belfry.engine.limits import Limits
from belfry.engine.maintenance import Maintenance
from belfry.engine.metering import Metering
from belfry.engine.occurrences import Occurrences
from belfry.engine.oldest import FIRING
from belfry.engine.options import DEFAULTS, EngineOptions
from belfry.engine.queues import Queues
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.step import NO_MANIFEST, PartitionStatus, Step, UndoLog
from belfry.engine.tenant_figures import Tallies, TenantFigures
from belfry.engine.traces import TracedIntake, emit_traced
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.firing.due import ScanPosition
from belfry.firing.hot_tenants import HotTenants
from belfry.schedules.rejections import Rejection
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import StepTenants, Tenants
from belfry.tenants.waits import Wait
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

# Requests that a step looks at, behind one that had no room for all of its batch.
FEW: Final = 64
# Requests that were set aside and are taken in by one step: others come between.
MOST_ASIDE: Final = 500


class GapInSource(Exception):
    """A batch does not begin where the last one ended: read again from the stored position."""


class PartitionEngine:
    """Schedules of one partition; `store` holds exactly what `manifest` says.

    A step takes in about `step_bytes` of its options, and fires as many: the last of each may be
    larger.  What tenants use is told for each `metering_ms`; 0: never.
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
        # How many requests the next step looks at, where the last one had no room for more.
        self._few: int | None = None
        stored = store.state()
        manifest = NO_MANIFEST if stored is None else stored.manifest
        self._stands = PartitionStatus(manifest, ScanPosition.at(manifest.watermark_ms))
        self._store = store
        self._reader = reader
        self._tenants = of_step = StepTenants(tenants)
        self._undo = undo = UndoLog()
        self._waiting = Waiting(store, undo, self._stands.scan)
        self._zones = ZoneChange(store, self._waiting, undo)
        emitter = emit_traced if options.traces else emit
        self._calendars = calendars = Calendars(store, of_step, self._waiting, undo)
        changes = Changes(self._zones, calendars, self._waiting)
        occurrences = Occurrences(store, self._waiting, changes, undo, emitter, options)
        self._queues = Queues(store, of_step, self._waiting, undo)
        self._firing = Firing(store, of_step, self._waiting, self._queues, occurrences)
        self._catch_up = CatchUp(store, of_step, self._waiting, occurrences)
        reports, self._limits = Reports(place, store), Limits(store, undo)
        of_jobs = JobMeans(self._waiting, self._queues, calendars)
        self.jobs = Jobs(place, store, of_step, of_jobs, undo)
        parts = IntakeParts(reports, self._limits, self.jobs, calendars)
        self._intake = Intake(place, store, of_step, self._waiting, parts)
        self._taker = TracedIntake(self._intake, reports) if options.traces else self._intake
        self._fast_path = FastPath(place, store, of_step, self._waiting, reports)
        self._hot_tenants = HotTenants()
        self._drains = Drains(store)
        forwards_to = None if place.partition < place.homes.partitions else place.homes
        self.aside = Aside(store, reader, tenants, undo, forwards_to)
        self._tallies = tallies = Tallies(store, of_step)
        self._metering = Metering(store, place.partition, options.metering_ms, undo)
        self._maintenance = Maintenance(store, of_step, self._waiting, self._zones, tallies, undo)
        self._next_due_ms = store.first_due_ms(self._stands.scan.next)
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
        manifest = NO_MANIFEST._replace(position=position)
        self._stands = self._stands._replace(manifest=manifest)
        self._step.position = position

    # -- what is to be done, and when ------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """Instant of the next event to fire, None for none; in the past where a backlog waits.

        A backlog may hold what is due up to the scan position, so it waits for a clock that went
        back.
        """
        self._see_tenants()
        due_ms, reached_ms = self._next_due_ms, self._stands.scan.reached_ms
        if self._queues.any_ready:
            held_ms = max(reached_ms, self._waiting.held_up_to_ms)
            due_ms = held_ms if due_ms is None else min(held_ms, due_ms)
        again_ms = self._catch_up.next_ms
        locks_ms = self._waiting.locks.next_ms(reached_ms)
        known = (due_ms, self._queues.next_ms(), again_ms, locks_ms)
        return min([each for each in known if each is not None], default=None)

    @property
    def drains(self) -> bool:
        """Whether something that was held back may fire at once, from a backlog or a lock."""
        self._see_tenants()
        reached_ms = self._stands.scan.reached_ms
        lock_ms = self._waiting.locks.next_ms(reached_ms)
        return (lock_ms is not None and lock_ms <= reached_ms) or self._queues.any_ready

    def oldest_due_ms(self) -> dict[str, int]:
        """Earliest due instants by what is waited for (`engine/oldest.py`); from any thread."""
        found, due_ms = dict(self._maintenance.oldest.due_ms), self._next_due_ms
        if due_ms is not None:
            found[FIRING] = min(due_ms, found.get(FIRING, due_ms))
        return found

    def drained(self) -> tuple[Drained, ...]:
        """The last minute buckets that have ended, the newest at the end; from any thread."""
        return self._drains.recent

    def tenants(self) -> dict[bytes, TenantFigures]:
        """Figures by tenant, `REST` for those that are not told apart; from any thread."""
        waits, tallies = self._maintenance.oldest.waits, self._tallies
        return {n: tallies.of(n, waits.get(n)) for n in (*waits, *tallies.names())}

    def wait_of(self, tenant: bytes) -> Wait | None:
        """Why a tenant's events wait, as the last sweep saw it; from any thread."""
        return self._maintenance.oldest.waits.get(tenant)

    @property
    def sweeps_behind(self) -> bool:
        """Whether more was written than sweeps have made up for."""
        return self._maintenance.retention.behind

    # -- the parts of a step ---------------------------------------------------------------------

    def claim(
        self,
        settings: bytes | None,
        identity: bytes | None = None,
        statement: bytes | None = None,
        unclosed_rows: Iterable[bytes] = (),
    ) -> Effects:
        """The first step of an owner: a manifest of its own, and what of these is not kept yet.

        `unclosed_rows` are keys of rows that the changelog holds behind the last manifest and that
        are no state: what is state is written once more, behind them.
        """
        for key in unclosed_rows:
            self._store.restate(key)
        given = {
            keys.IDENTITY_KEY: identity,
            keys.SETTINGS_KEY: settings,
            keys.STATEMENT_KEY: statement,
        }
        for key, row in given.items():
            if row is not None:
                self._store.note(key, row)
        if settings is not None and not self._zones.under_way:
            self._zones.settle()
        self._step.effects.moved = True
        return self._step.effects

    def fire_due(self, now_ms: int, at_most: int) -> Effects:
        """Fire at most `at_most` events that are due by `now_ms`; the first half of a step."""
        step = self._step
        empty = self._next_due_ms is None or self._next_due_ms > now_ms
        if empty and now_ms > self._stands.scan.watermark_ms:
            # Nothing lies between the watermark and now, so this needs no transaction.
            step.scan = ScanPosition.at(now_ms)
            self._stands = self._stands._replace(scan=step.scan)
        due_ms = self.next_due_ms()
        if due_ms is not None and due_ms <= now_ms:
            step.begin_firing(now_ms)
            scan = self._firing.fire_due(step, at_most)
            if self._waiting.catch_up:
                left = at_most - len(step.effects.fired)
                self._catch_up.fire(max(left, at_most // LEAST_SHARE), step)
            self._waiting.settle(scan, step)
            self._firing.end_waits(step)
        return step.effects

    def take_aside(self, now_ms: int, refused: Mapping[Need, Rejection]) -> Effects:
        """Take in what was set aside and can be read by now; comes before `accept` in a step.

        A request that needs one of these schemas is `refused` unread.
        """
        step = self._step
        self._see_tenants()
        step.at(now_ms)
        for taken, (record, appended, why) in enumerate(self.aside.ready(refused), 1):
            self._intake.appended = appended
            self._taker.take(record, why or self._reader.read_whole(record), step)
            if step.effects.room <= 0 or taken == MOST_ASIDE:
                break
        return step.effects

    def accept(
        self,
        batch: SourceBatch,
        now_ms: int,
        refused: Mapping[Need, Rejection] | None = None,
    ) -> Effects:
        """Take a batch of requests in; the second half of a step.

        Each request counts from its own arrival (`arrival.py`).  `now_ms` is when its verdict is
        told of, and when the fire of a TRIGGER leaves.

        Small requests may have large effects: a TRIGGER fires a payload that was stored.  Where the
        step has no room left, `position` stays amid the batch, and `batch.behind(position)` is for
        the next step.

        A request whose schema is not known is set aside (`aside.py`), unless it is `refused`.
        With None all schemas are known.
        """
        step = self._step
        if batch.start != step.position:
            raise GapInSource(f"expected offset {step.position}, the batch begins at {batch.start}")
        self._see_tenants()
        step.at(now_ms)
        effects = step.effects
        records, behind = batch.records, batch.next_position
        if self._few is not None and len(records) > self._few:
            records, behind = records[: self._few], records[self._few][0]
        # A batch is bounded itself, so what it brings along fits; what it sets off may not.
        effects.room = self._step_bytes + 2 * batch.size
        split = self.aside.split(records, refused, appended=batch.appended)
        batch_of_step = batch._replace(records=split.taken, next_position=behind)
        last, behind = self._take_in(batch_of_step, split.decided)
        self.aside.keep([each for each in split.waits if each.record[0] < behind])
        self._few = _next_few(self._few, behind < batch.next_position, effects.room)
        effects.moved = effects.moved or behind != step.position
        step.position = behind
        if last is not None:
            step.heard_ms = max(step.heard_ms, last[1])
        return effects

    def _take_in(
        self, batch: SourceBatch, decided: Mapping[int, Rejection | Unread]
    ) -> tuple[SourceRecord | None, int]:
        """Take in as much as has room; the last record, and the offset behind it."""
        step, records = self._step, batch.records
        last = records[-1] if records else None
        read = self._reader.read
        requests: list[Any] = [read(each) for each in records]
        if decided:
            requests = [
                decided.get(record[0], request)
                for record, request in zip(records, requests, strict=True)
            ]
        for tenant in self._hot_tenants.found_in(requests, batch.start):
            self._waiting.isolate(tenant)
        self._intake.appended = batch.appended
        taking = self._fast_path.keep(records, requests, step)
        for record, request in taking:
            if isinstance(request, Unread):
                self._intake.pass_on(record, request.home, step)
            else:
                whole = self._reader.read_whole(record) if type(request) is tuple else request
                self._taker.take(record, whole, step)
            if step.effects.room <= 0 and record is not last:
                taking.close()
                return record, record[0] + 1
        return last, batch.next_position

    def sweep(self, now_ms: int, at_most: int) -> Effects:
        """Forget rows that are over and keep the rest in order, among the next `at_most` rows."""
        self._see_tenants()
        self._step.at(now_ms)
        self._hot_tenants.forget(now_ms)
        self._maintenance.sweep(self._step, at_most)
        self._calendars.forget_removed()
        self._metering.sweep(self._step, at_most)
        return self._step.effects

    def advance_jobs(self, now_ms: int, budget: Budget) -> Effects:
        """Go on with bulk jobs and changed calendars; comes behind the other parts of a step."""
        self._see_tenants()
        self._step.at(now_ms)
        self.jobs.advance(self._step, budget)
        return self._step.effects

    def _see_tenants(self) -> None:
        """See tenants as they are treated now, unless the step has begun: it goes by one policy."""
        if self._step.effects.empty:
            self._tenants.renew()

    # -- the end of a step -----------------------------------------------------------------------

    def seal(self, owner_epoch: int, *, read_lease: bool = False) -> Manifest:
        """The manifest of the step: what it did, and where the partition stands after it.

        `read_lease` says that the owner may answer reads for a while without asking anybody.
        """
        step, before = self._step, self.manifest
        self._metering.settle(step)
        fire_ids = step.effects.fire_ids
        manifest = step.effects.manifest = Manifest(
            txn_seq=before.txn_seq + 1,
            owner_epoch=owner_epoch,
            position=step.position,
            watermark_ms=max(before.watermark_ms, step.scan.watermark_ms),
            pending=before.pending + self._store.pending_change,
            fired=len(fire_ids),
            digest=blake2b(b"".join(fire_ids), digest_size=16).digest(),
            read_lease=read_lease,
        )
        self._store.seal(manifest)
        return manifest

    def committed(self, changelog_offset: int, now_ms: int) -> None:
        """The step's transaction is in the log up to `changelog_offset`: make it so here."""
        manifest = self._step.effects.manifest
        assert manifest is not None, "a step is sealed before it is committed"
        self._stands = self._step.stands(manifest)
        self._maintenance.retention.wrote(len(self._step.effects.rows))
        self.aside.forget_empty()
        self._store.commit(StoredState(changelog_offset, now_ms, manifest))
        self._tallies.committed(self._step.effects)
        self._step.effects.drained = self._drains.committed(now_ms)
        self._undo.forget()
        self._next_due_ms = self._store.first_due_ms(self._stands.scan.next)
        self._step = self._begun()

    def aborted(self) -> None:
        """The step's transaction was rolled back: forget it."""
        self._store.discard()
        self._undo.roll_back()
        self._step = self._begun()

    def _begun(self) -> Step:
        """The next step, from where the partition stands."""
        return Step(self._stands, Effects(rows=self._store.changes, room=self._step_bytes))


def _next_few(few: int | None, left: bool, room: int) -> int | None:
    """How many requests the next step looks at, None for all of a batch.

    To read a batch anew for each few that a step takes in would leave time for nothing else.
    """
    if left and room <= 0:
        return FEW
    return None if few is None or not left else 2 * few
