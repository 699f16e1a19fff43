"""The parts of a partition's engine, made in the order in which they need one another.

                      store, tenants of the step, undo log
                                     │
    waiting ─┬─ zones, calendars ─► changes ─► occurrences ─┬─ firing ───┬─► due work
             │                                              └─ catch-up ─┘
             ├─ queues ─────────────────────► jobs
             ├─ after acks ─────────────────► jobs, due work
             └─ transitions, admission, everywhere ─► intake ─► batches
    maintenance, metering, figures of tenants: beside them, once a sweep or a commit

This is the one place of the engine that knows all of them.  A part is given all that it needs, and
none is patched later.  `partition.py` hands them the step.
"""

from __future__ import annotations

from belfry.engine.admission import Admission
from belfry.engine.after_acks import AfterAcks
from belfry.engine.aside import Aside
from belfry.engine.batches import Batches, WaysIn
from belfry.engine.calendar_followers import CalendarFollowers
from belfry.engine.calendars import Calendars
from belfry.engine.catch_up import CatchUp
from belfry.engine.changes import Changes
from belfry.engine.culprits import Culprits
from belfry.engine.day_files import DayFileRows
from belfry.engine.dead_letters import DeadLetters
from belfry.engine.drained import Drains
from belfry.engine.due_work import DueWork
from belfry.engine.emit import emit
from belfry.engine.everywhere import Everywhere
from belfry.engine.fast_path import FastPath
from belfry.engine.fires import Fires
from belfry.engine.firing import Firing
from belfry.engine.giving import Giving
from belfry.engine.groups import Groups
from belfry.engine.held_requests import HeldRequests
from belfry.engine.intake import Intake, IntakeParts
from belfry.engine.jobs import JobMeans, Jobs
from belfry.engine.judging import Judgement
from belfry.engine.kept_jobs import KeptJobs
from belfry.engine.limits import Limits
from belfry.engine.maintenance import Maintenance
from belfry.engine.metering import Metering
from belfry.engine.move_records import MoveParts, MoveRecords
from belfry.engine.moved_rows import MovedRows
from belfry.engine.moving import GroupMoves, Releases
from belfry.engine.occurrences import Occurrences
from belfry.engine.options import EngineOptions
from belfry.engine.queues import Queues
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.rerouting import Rerouting
from belfry.engine.step import Step
from belfry.engine.tenant_figures import Tallies
from belfry.engine.traces import TracedIntake, emit_traced
from belfry.engine.transitions import Transitions
from belfry.engine.undo import UndoLog
from belfry.engine.waiting import Waiting
from belfry.engine.zone_change import ZoneChange
from belfry.firing.due import ScanPosition
from belfry.firing.hot_tenants import HotTenants
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.requests import RequestReader


class EngineParts:
    """The parts of one partition's engine; each is called by the partition's thread."""

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        reader: RequestReader,
        tenants: Tenants,
        options: EngineOptions,
        scan: ScanPosition,
    ) -> None:
        """`scan` is how far the timeline was emptied by the last commit."""
        self._directory = tenants
        self.tenants = of_step = StepTenants(tenants)
        self.undo = undo = UndoLog()
        self.culprits = Culprits()
        self.waiting = waiting = Waiting(store, undo, scan)
        self.zones = ZoneChange(store, waiting, undo, self.culprits)
        self.calendars = calendars = Calendars(store, of_step, undo)
        followers = CalendarFollowers(store, waiting, calendars, undo, self.culprits)
        self.after_acks = AfterAcks(store, waiting, undo, of_step.is_quiet)
        self._make_firing(store, options, followers)
        self._hot_tenants = HotTenants()
        forwards_to = place.homes if place.only_forwards else None
        self.aside = Aside(store, reader, tenants, undo, forwards_to)
        self._make_intake(place, store, reader, followers, options)
        self.drains = Drains(store)
        self.tallies = tallies = Tallies(store, of_step)
        self.metering = Metering(store, place.partition, options.metering_ms, undo)
        self.maintenance = Maintenance(store, of_step, waiting, self.zones, tallies, undo)

    def _make_intake(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        reader: RequestReader,
        followers: CalendarFollowers,
        options: EngineOptions,
    ) -> None:
        """Make the parts that take requests in, and those that go on with bulk jobs and moves."""
        of_step, waiting, undo, calendars = self.tenants, self.waiting, self.undo, self.calendars
        self.groups = groups = Groups(place, store, of_step, undo)
        kept_jobs = KeptJobs(store, undo)
        reports = Reports(place, store, of_step)
        rerouting = Rerouting(place, reports)
        admission = Admission(place, of_step, reports, Limits(store, undo), calendars)
        everywhere = Everywhere(place, reports, rerouting, admission, (kept_jobs, calendars))
        transitions = Transitions(place, store, waiting, calendars, self.after_acks)
        held = HeldRequests(store, reader, groups, reports, rerouting, admission)
        rows = MovedRows(store, of_step, waiting, calendars, self.zones)
        giving = Giving(place, store, of_step, rows, groups, undo)
        allowed = options.moves and bool(place.origin_keys)
        moves = MoveRecords(place, reports, MoveParts(groups, giving, rows), allowed=allowed)
        letters = DeadLetters(of_step, reports)
        ways_on = reports, rerouting, admission, everywhere, transitions, followers
        of_intake = IntakeParts(*ways_on, groups, held, moves, letters, self.culprits)
        intake = Intake(place, store, of_step, waiting, of_intake)
        taker = TracedIntake(intake, reports) if options.traces else intake
        fast_path = FastPath(place, store, of_step, waiting, groups)
        ways = WaysIn(fast_path, intake, taker, admission, waiting, self.culprits)
        self.batches = Batches(reader, self.aside, self._hot_tenants, ways, options.step_bytes)
        releases = Releases(reader, self._directory, admission, self.aside, taker)
        moving = GroupMoves(groups, giving, held, self.aside, kept_jobs)
        after_acks, culprits = self.after_acks, self.culprits
        means = JobMeans(
            kept_jobs, waiting, self.queues, followers, after_acks, moving, releases, culprits
        )
        self.jobs = Jobs(place, store, of_step, means, undo)

    def _make_firing(
        self, store: ScheduleStore, options: EngineOptions, followers: CalendarFollowers
    ) -> None:
        """Make the parts that fire."""
        of_step, waiting, undo = self.tenants, self.waiting, self.undo
        emitter = emit_traced if options.traces else emit
        changes = Changes(self.zones, self.calendars, followers, waiting)
        fires = Fires(store, waiting, emitter, keeps_fires=options.last_fires)
        judgement = Judgement(waiting, fires, undo)
        self.day_files = DayFileRows(store, waiting, {})
        culprits, awaited = self.culprits, self.day_files.awaited
        occurrences = Occurrences(waiting, changes, fires, judgement, awaited, culprits)
        self.queues = Queues(store, of_step, waiting, undo)
        firing = Firing(store, of_step, waiting, self.queues, occurrences, culprits)
        catch_up = CatchUp(store, of_step, waiting, occurrences, culprits)
        self.due = DueWork(store, waiting, self.queues, firing, catch_up, self.after_acks)

    def sweep(self, step: Step, at_most: int) -> None:
        """Let all look through some rows that do so now and then."""
        self._hot_tenants.forget(step.now_ms)
        self.maintenance.sweep(step, at_most)
        self.calendars.forget_removed()
        self.after_acks.sweep(step)
        self.metering.sweep(step, at_most)

    def committed(self, step: Step, now_ms: int) -> None:
        """Count the work of a step, which the store has by now."""
        self.maintenance.retention.wrote(len(step.effects.rows))
        self.aside.forget_empty()
        self.tallies.committed(step.effects)
        step.effects.drained = self.drains.committed(now_ms)
