"""Intake: one request to one verdict.

record ─ read ─ checks ─ home? ─ repeat of an id? ─ transition table ─► effects, one outcome
            │        │        └ misrouted: sent on, its verdict falls at its home
            └────────┴ rejected: kept in `belfry.rejected` with a code and a reason

A misrouted request came in on a partition that is not its home, and goes on (`rerouting.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from belfry.engine.arrival import MOST_AHEAD_MS, arrival_ms
from belfry.engine.calendars import Calendars
from belfry.engine.claims import false_claim
from belfry.engine.conditions import (
    collision,
    crowded_out,
    group_of_spread,
    throttled,
    unexpected,
)
from belfry.engine.jobs import Begun, Jobs
from belfry.engine.limits import Limits
from belfry.engine.reports import Reply, Reports, SourcePartition
from belfry.engine.rerouting import sent_on
from belfry.engine.step import Step
from belfry.engine.transitions import Asked, Transitions
from belfry.engine.waiting import Waiting
from belfry.schedules.bulk import BULK, BULK_ACTIONS
from belfry.schedules.calendars import CALENDAR, CALENDAR_ACTIONS, CALENDAR_REMOVE
from belfry.schedules.checks import RequestChecks
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import PASSING, Rejection
from belfry.schedules.request import KEEPING, Request, may_be_kept
from belfry.schedules.transitions import TABLE, State
from belfry.store.layout.keys import awaited_key
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import paused
from belfry.store.layout.records import MARKER_MS, decode_marker, is_marker
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import StepTenants
from belfry.tenants.effective import Tenant
from belfry.tenants.policy_rights import reach_of_targets_problem
from belfry.wire.headers import asked_by, unknown_header
from belfry.wire.record import (
    SourceRecord,
    asked_of,
    size_of,
)

# Refused for a name that is not fit to remember anything under.
UNNAMED: Final = frozenset({"no_tenant", "bad_tenant", "bad_request_id"})
NAMELESS: Final = frozenset({"no_tenant", "bad_tenant"})
# What each home of a tenant does.
EVERYWHERE: Final = BULK_ACTIONS | CALENDAR_ACTIONS
ABSENT: Final = (State.ABSENT, 0, None)


class IntakeParts(NamedTuple):
    """What intake hands requests and verdicts to."""

    reports: Reports
    limits: Limits
    jobs: Jobs
    calendars: Calendars


class Intake:
    """Takes requests in for one partition; called by its thread alone.

    `accepted_ms` is when the request that is being taken in arrived; `appended` says whether the
    timestamps of its batch are the broker's: only these count for a rate.
    """

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        parts: IntakeParts,
    ) -> None:
        self._waiting = waiting
        reports, self._limits, self._jobs, self._calendars = parts
        self._place = place
        self._store = store
        self._tenants = tenants
        self._reports = reports
        self._checks = RequestChecks()
        self.accepted_ms = 0
        self.appended = True
        self._transitions = Transitions(place, store, waiting, self._calendars)
        self._table = {case: self._transitions.carry_out[number] for case, number in TABLE.items()}

    def take(self, record: SourceRecord, request: Request | Rejection, step: Step) -> Reply | None:
        """Give one request its verdict; None where it is sent on, and that falls elsewhere."""
        came_ms = self._reports.origin(record).timestamp_ms
        self.accepted_ms = self._transitions.accepted_ms = arrival_ms(came_ms, step.now_ms)
        if isinstance(request, Rejection):
            return self._reports.reject(record, asked_by(record), request, step)
        problem = self._checks.problem(request, self.accepted_ms) or unknown_header(record[4])
        if problem is not None and problem.code in NAMELESS:
            return self._refuse(record, request, problem, step)
        tenant = self._tenants.of(request["tenant"])
        # Before any other refusal: one that is remembered under a request id would speak for the
        # tenant.
        forged = false_claim(record, tenant) if tenant.signs else None
        if forged is not None:
            return self._reports.reject(record, request, forged, step)
        if problem is not None:
            return self._refuse(record, request, problem, step)
        return self._take_valid(record, request, tenant, step)

    def pass_on(self, record: SourceRecord, home: int, step: Step) -> None:
        """Send a request on that cannot be read here; its verdict falls where it can."""
        self._reroute(record, None, (home, 0), step)

    def _take_valid(
        self, record: SourceRecord, request: Request, tenant: Tenant, step: Step
    ) -> Reply | None:
        if tenant.effective.refused is not None:
            return self._refuse(record, request, tenant.effective.refused, step)
        if tenant.collides_with is not None:
            return self._reports.reject(record, request, collision(tenant), step)
        if request["action"] in EVERYWHERE:
            return self._take_everywhere(record, request, tenant, step)
        home, asked = self._next_stop(record, tenant, request)
        if home != self._place.partition:
            return self._reroute(record, request, (home, asked), step)
        if tenant.queued:
            self._waiting.isolate(tenant.name_bytes)
        problem = self._tenants_problem(record, tenant, request, step)
        if problem is not None:
            return self._refuse(record, request, problem, step)
        if request["request_id"] is not None:
            repeated = self._reports.repeated(record, request, self.accepted_ms, step)
            if repeated is not None:
                return repeated
        return self._decide(record, request, tenant, step)

    def _take_everywhere(
        self, record: SourceRecord, request: Request, tenant: Tenant, step: Step
    ) -> Reply | None:
        """Take a bulk job or a calendar in here, and pass it on to the next home of the tenant.

        The verdict falls in the first home; the others follow it.
        """
        spreads = (*tenant.effective.policy.former_spreads, tenant.spread)
        route = self._place.homes.all_of(tenant.name, spreads)
        asked = min(asked_of(record), len(route) - 1)
        if route[asked] != self._place.partition:
            return self._reroute(record, request, (route[asked], asked), step)
        begun = Begun(self._reports.origin(record), len(route), self.accepted_ms)
        reply, goes_on = None, True
        if not asked:
            reply, goes_on = self._begin(record, request, tenant, begun, step)
        elif request["action"] == BULK:
            self._jobs.follow(record, request, begun, step)
        else:
            self._carry_out(record, request, begun, step)
        if goes_on and asked + 1 < len(route):
            self._reroute(record, request, (route[asked + 1], asked + 1), step)
        return reply

    def _begin(
        self, record: SourceRecord, request: Request, tenant: Tenant, begun: Begun, step: Step
    ) -> tuple[Reply, bool]:
        """Give such a request its verdict; and whether other homes have to hear of it."""
        problem = self._tenants_problem(record, tenant, request, step)
        if problem is not None:
            return self._refuse(record, request, problem, step), False
        if request["request_id"] is not None:
            repeated = self._reports.repeated(record, request, self.accepted_ms, step)
            if repeated is not None:
                return repeated, False
        reply = self._carry_out(record, request, begun, step)
        if reply.outcome is Outcome.REJECTED:
            rejection = Rejection(reply.code or "", reply.reason or "")
            return self._refuse(record, request, rejection, step), False
        self._reports.conclude(record, request, tenant, reply, step)
        # A calendar goes to all homes also where it is nothing new: another may not have it yet.
        is_calendar = request["action"] in CALENDAR_ACTIONS
        return reply, is_calendar or reply.outcome in (Outcome.ACCEPTED, Outcome.CANCELLED)

    def _carry_out(self, record: SourceRecord, request: Request, begun: Begun, step: Step) -> Reply:
        """Do what all homes of a tenant do; the reply that the first of them gives."""
        action = request["action"]
        if action == CALENDAR:
            return self._calendars.set(request, begun.at_ms, step)
        if action == CALENDAR_REMOVE:
            return self._calendars.remove(request, step)
        if action == BULK:
            return self._jobs.begin(record, request, begun, step)
        return self._jobs.stop(request, step, elsewhere=begun.homes > 1)

    def _refuse(
        self, record: SourceRecord, request: Request, rejection: Rejection, step: Step
    ) -> Reply:
        """Reject a request; where its id can be trusted, a repeat of it is a DUPLICATE.

        A refusal that depends on the moment is told and not remembered: a repeat is judged again.
        """
        if rejection.code in UNNAMED or not may_be_kept(request["request_id"]):
            return self._reports.reject(record, request, rejection, step)
        repeated = self._reports.repeated(record, request, self.accepted_ms, step)
        if repeated is not None:
            return repeated
        if rejection.code not in PASSING:
            kept = Reply(Outcome.REJECTED, code=rejection.code)
            self._reports.remember(request, kept, self.accepted_ms)
        return self._reports.reject(record, request, rejection, step)

    def _tenants_problem(
        self, record: SourceRecord, tenant: Tenant, request: Request, step: Step
    ) -> Rejection | None:
        """Why the tenant's policy does not allow a request that is at its home, or None."""
        if tenant.spread > 1 and request["group"] is not None and request["action"] in KEEPING:
            return group_of_spread(tenant)
        if tenant.crowded_out and request["action"] in KEEPING:
            return crowded_out(tenant)
        if request["http_targets"] and request["action"] in KEEPING:
            judge = partial(self._tenants.target_problem, tenant.name)
            policy = tenant.effective.policy
            problem = reach_of_targets_problem(request["http_targets"], policy, judge)
            if problem is not None:
                return problem
        if request["calendar"] is not None and request["action"] in KEEPING:
            problem = self._calendars.problem(request, self.accepted_ms)
            if problem is not None:
                return problem
        if not tenant.limited:
            return None
        return self._limits.too_many_requests(tenant, self._counts_from_ms(record, step))

    def _counts_from_ms(self, record: SourceRecord, step: Step) -> int:
        """The instant at which a request counts for a rate: never one that its producer gave.

        When it first arrived elsewhere is known where workers share a secret.
        """
        if not self.appended:
            return step.now_ms
        known = self._place.origin_keys
        arrived_ms = self._reports.origin(record).timestamp_ms if known else record[1]
        return min(arrived_ms, step.now_ms + MOST_AHEAD_MS)

    def _next_stop(self, record: SourceRecord, tenant: Tenant, request: Request) -> tuple[int, int]:
        """Where a request has to go from here, and how many homes have been asked then.

        A tenant's schedules stay in the home that they began in, so each home that its spread ever
        led to is asked, the oldest first.  All requests of a schedule go the same way, and only
        the last home on it begins new ones, so they neither overtake one another nor begin twice.
        """
        if tenant.simple:
            return self._place.homes.of(tenant.name), 0
        here, former = self._place.partition, tenant.effective.policy.former_spreads
        route = self._place.homes.route(tenant.name, request["schedule_id"], former, tenant.spread)
        if len(route) == 1:
            return route[0], 0
        asked = asked_of(record)
        if asked >= len(route) or route[asked] != here:
            asked = 0
        if route[asked] != here:
            return route[0], 0
        if asked + 1 == len(route) or self._knows(tenant, request):
            return here, asked
        return route[asked + 1], asked + 1

    def _knows(self, tenant: Tenant, request: Request) -> bool:
        """Whether the schedule is this partition's, or the request was answered here."""
        name = f"{tenant.name}/{request['schedule_id']}".encode()
        row = self._store.named(name)
        if row is not None and self._standing(name, row)[0] is not State.ABSENT:
            return True
        fire_id, request_id = request["fire_id"], request["request_id"]
        if fire_id is not None:
            key = awaited_key(tenant.name_bytes, fire_id.encode())
            if self._store.named(key) is not None:
                return True
        if request_id is None:
            return False
        return self._reports.answered(tenant.name, request_id, self.accepted_ms)

    def _decide(self, record: SourceRecord, request: Request, tenant: Tenant, step: Step) -> Reply:
        name = f"{tenant.name}/{request['schedule_id']}".encode()
        row = self._store.named(name)
        if row is not None and self._calendars.under_way:
            row = self._calendars.settled(name, row, step)
        state, version, generation = ABSENT if row is None else self._standing(name, row)
        transition = self._table[state, request["action"]]
        asked = Asked(request, record, tenant, name, row, version, generation)
        begins = transition == self._transitions.begin
        expected = request["expected_version"]
        exists = state is not State.ABSENT or request["action"] in KEEPING
        if expected is not None and exists and (wrong := unexpected(expected, asked)):
            reply = wrong
        elif (kept := throttled(asked, self.accepted_ms, self._store)) is not None:
            reply = kept
        elif begins and tenant.limited and (full := self._full(tenant)):
            reply = full
        else:
            reply = transition(asked, step)
        if reply.version is not None:
            reply.generation = asked.generation
        if reply.outcome is Outcome.REJECTED:
            rejection = Rejection(reply.code or "", reply.reason or "")
            return self._refuse(record, request, rejection, step)
        self._reports.conclude(record, request, tenant, reply, step)
        return reply

    def _full(self, tenant: Tenant) -> Reply | None:
        problem = self._limits.too_many_pending(tenant)
        if problem is None:
            return None
        return Reply(Outcome.REJECTED, code=problem.code, reason=problem.reason)

    def _standing(self, name: bytes, row: bytes) -> tuple[State, int, int | None]:
        """State, version and generation of the schedule that a row stands for."""
        if not is_marker(row):
            record = self._store.pending_at(name, row)
            state, found = State.PAUSED if paused(record) else State.PENDING, decode_pending(record)
            return state, found.version, found.life
        marker = decode_marker(row)
        if self.accepted_ms - marker.ended_ms >= MARKER_MS:
            return ABSENT
        return State.OVER, marker.version, marker.life

    def _reroute(
        self, record: SourceRecord, request: Request | None, stop: tuple[int, int], step: Step
    ) -> Reply | None:
        """Send a request on; the reply where it is refused instead."""
        sent = sent_on(record, request, stop, self._reports.origin(record), self._place)
        if isinstance(sent, Rejection):
            return self._reports.reject(record, request, sent, step)
        step.effects.rerouted.append(sent)
        step.effects.room -= size_of(record)
        return None
