"""Intake: one request to one verdict.

record ─ read ─ checks ─ home? ─ repeat of an id? ─ transition table ─► effects, one outcome
            │        │        └ misrouted: sent on, its verdict falls at its home
            └────────┴ rejected: kept in `belfry.rejected` with a code and a reason

A record that was put back and has no try left goes the same way, and is refused at its home.  A
misrouted request came in on a partition that is not its home, and goes on (`rerouting.py`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.admission import Admission, collision
from belfry.engine.arrival import arrival_ms
from belfry.engine.asked_rows import Asked
from belfry.engine.calendar_followers import CalendarFollowers
from belfry.engine.claims import false_claim
from belfry.engine.conditions import throttled, unexpected
from belfry.engine.culprits import FAULTS, REQUEST, UNTOLD, Culprits
from belfry.engine.dead_letters import DeadLetters
from belfry.engine.everywhere import EVERYWHERE, Everywhere
from belfry.engine.groups import Groups
from belfry.engine.held_requests import HeldRequests
from belfry.engine.move_records import MoveRecords
from belfry.engine.reply import Reply
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.rerouting import Rerouting
from belfry.engine.step import Step
from belfry.engine.transitions import Transitions
from belfry.engine.unforeseen import failed_amid, problem_of
from belfry.engine.waiting import Waiting
from belfry.schedules.checks import RequestChecks, names_problem
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import KEEPING, Request
from belfry.schedules.transitions import TABLE, State
from belfry.schedules.triggers.acknowledged import FAR_MS
from belfry.store.layout.keys import awaited_key
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import paused
from belfry.store.layout.records import decode_marker, is_marker
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.headers import asked_by, unknown_header
from belfry.wire.moves import is_move
from belfry.wire.record import SourceRecord
from belfry.wire.retries import EXHAUSTED

# Refused for a name under which nobody can be found.
NAMELESS: Final = frozenset({"no_tenant", "bad_tenant"})
ABSENT: Final = (State.ABSENT, 0, None)


class IntakeParts(NamedTuple):
    """The parts that intake hands requests and verdicts to."""

    reports: Reports
    rerouting: Rerouting
    admission: Admission
    everywhere: Everywhere
    transitions: Transitions
    followers: CalendarFollowers
    groups: Groups
    held: HeldRequests
    moves: MoveRecords
    letters: DeadLetters
    culprits: Culprits


class Intake:
    """Takes requests in for one partition; called by its thread alone.

    `accepted_ms` is when the request that is being taken in arrived.
    """

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        parts: IntakeParts,
    ) -> None:
        self._place = place
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._reports, self._rerouting, self._admission = parts[:3]
        self._everywhere, transitions, self._followers = parts[3:6]
        self._groups, self._held, self._moves, self._letters, self._culprits = parts[6:]
        self._checks = RequestChecks()
        self.accepted_ms = 0
        self._begin = transitions.begin
        self._table = {case: transitions.carry_out[number] for case, number in TABLE.items()}

    def take(self, record: SourceRecord, request: Request | Rejection, step: Step) -> Reply | None:
        """Give one request its verdict; None where it is sent on, and that falls elsewhere.

        Where something raises, the request is blamed for it.
        """
        try:
            return self._take(record, request, step)
        except FAULTS as error:
            self._culprits.blame(error, (REQUEST, record[0]), (UNTOLD, record[0]))
            raise

    def _take(self, record: SourceRecord, request: Request | Rejection, step: Step) -> Reply | None:
        known = failed_amid(self._culprits, record, step) if self._culprits.some else None
        if known is not None and self._culprits.of(UNTOLD, record[0]) is not None:
            return self._reports.reject(record, None, known, step)
        came_ms = self._reports.origin(record).timestamp_ms
        self.accepted_ms = arrival_ms(came_ms, step.now_ms)
        if isinstance(request, Rejection):
            odd = known or (self._moves.take(record, step) if is_move(record) else request)
            named = asked_by(record)
            if odd is None or odd.code != EXHAUSTED or named is None:
                return odd and self._reports.reject(record, named, odd, step)
            request, exhausted = named, odd
            problem = names_problem(named)
        else:
            exhausted = None
            problem = problem_of(self._checks, request, self.accepted_ms, step)
            problem = problem or known or unknown_header(record[4])
        if problem is not None and problem.code in NAMELESS:
            return self._reports.refuse(record, request, problem, self.accepted_ms, step)
        tenant = self._tenants.of(request["tenant"])
        here = self._place.partition
        # Before any other refusal: one that is remembered under a request id would speak for the
        # tenant.
        forged = false_claim(record, tenant) if tenant.signs else None
        if forged is not None:
            return self._reports.reject(record, request, forged, step)
        if self._groups.some:
            judged_for = self._held.judged_for(record, tenant.name)
            if judged_for is None:
                return self._held.pass_on(record, request, step)
            here = judged_for
        if known is not None and self._everywhere.follows(record, request, tenant):
            self._everywhere.pass_over(record, request, tenant, here, known, step)
            return None
        if problem is not None:
            return self._reports.refuse(record, request, problem, self.accepted_ms, step)
        return self._take_valid(record, request, tenant, here, step, exhausted)

    def pass_on(self, record: SourceRecord, home: int, step: Step) -> None:
        """Send a request on that cannot be read here; its verdict falls where it can."""
        known = failed_amid(self._culprits, record, step) if self._culprits.some else None
        if known is not None:
            self._reports.reject(record, None, known, step)
            return
        try:
            self._rerouting.send(record, None, (home, 0), step)
        except FAULTS as error:
            self._culprits.blame(error, (REQUEST, record[0]))
            raise

    def _take_valid(
        self,
        record: SourceRecord,
        request: Request,
        tenant: Tenant,
        here: int,
        step: Step,
        exhausted: Rejection | None,
    ) -> Reply | None:
        """Take in a well-formed request that is proven to be its tenant's; it may have to go on.

        `here` is the partition that it is judged for: another one, where its key group has moved.
        An `exhausted` request is refused at its home.
        """
        refused = tenant.effective.refused
        if refused is not None:
            return self._reports.refuse(record, request, refused, self.accepted_ms, step)
        if tenant.collides_with is not None:
            return self._reports.reject(record, request, collision(tenant), step)
        if request["action"] in EVERYWHERE:
            return self._everywhere.take(record, request, tenant, (here, self.accepted_ms), step)
        home, asked = self._next_stop(record, tenant, request, here)
        if home != here:
            return self._rerouting.send(record, request, (home, asked), step)
        if tenant.queued:
            self._waiting.isolate(tenant.name_bytes)
        problem = exhausted or self._admission.problem(
            record, request, tenant, self.accepted_ms, step
        )
        if problem is not None:
            return self._letters.refuse(record, request, tenant, problem, self.accepted_ms, step)
        if request["request_id"] is not None:
            repeated = self._reports.repeated(record, request, self.accepted_ms, step)
            if repeated is not None:
                return repeated
        return self._decide(record, request, tenant, step)

    def _next_stop(
        self, record: SourceRecord, tenant: Tenant, request: Request, here: int
    ) -> tuple[int, int]:
        """Where a request has to go from here, and how many homes have been asked then.

        A tenant's schedules stay in the home that they began in, so each home that its spread ever
        led to is asked, the oldest first.  All requests of a schedule go the same way, and only
        the last home on it begins new ones, so they neither overtake one another nor begin twice.
        """
        if tenant.simple:
            return self._place.homes.of(tenant.name), 0
        former = tenant.effective.policy.former_spreads
        route = self._place.homes.route(tenant.name, request["schedule_id"], former, tenant.spread)
        if len(route) == 1:
            return route[0], 0
        asked = self._reports.asked(record)
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
        if row is not None and self._standing(tenant, name, row)[0] is not State.ABSENT:
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
        """The verdict by the table; the request is at its home, allowed, and not a repeat."""
        name = f"{tenant.name}/{request['schedule_id']}".encode()
        row = self._store.named(name)
        if row is not None and self._followers.under_way:
            row = self._followers.settled(name, row, step)
        state, version, generation = ABSENT if row is None else self._standing(tenant, name, row)
        transition = self._table[state, request["action"]]
        arrived_ms = self.accepted_ms
        asked = Asked(request, record, tenant, name, row, version, generation, arrived_ms)
        begins = transition == self._begin
        expected = request["expected_version"]
        exists = state is not State.ABSENT or request["action"] in KEEPING
        if expected is not None and exists and (wrong := unexpected(expected, asked)):
            reply = wrong
        elif (kept := throttled(asked, arrived_ms, self._store)) is not None:
            reply = kept
        elif begins and tenant.limited and (full := self._admission.full(tenant)):
            reply = full
        else:
            reply = transition(asked, step)
        if reply.due_ms is not None and reply.due_ms >= FAR_MS:
            # It waits for an acknowledgement, and nobody knows when it is due.
            reply.due_ms = None
        if reply.version is not None:
            reply.generation = asked.generation
        if reply.outcome is Outcome.REJECTED:
            rejection = Rejection(reply.code or "", reply.reason or "")
            return self._letters.refuse(record, request, tenant, rejection, self.accepted_ms, step)
        self._reports.conclude(record, request, tenant, reply, step)
        return reply

    def _standing(self, tenant: Tenant, name: bytes, row: bytes) -> tuple[State, int, int | None]:
        """State, version and generation of the schedule that a row stands for."""
        if not is_marker(row):
            record = self._store.pending_at(name, row)
            state, found = State.PAUSED if paused(record) else State.PENDING, decode_pending(record)
            return state, found.version, found.life
        marker = decode_marker(row)
        if self.accepted_ms - marker.ended_ms >= tenant.remember_ms:
            return ABSENT
        return State.OVER, marker.version, marker.life
