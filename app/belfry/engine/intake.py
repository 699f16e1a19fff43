"""Intake: one request to one verdict.

record ─ read ─ checks ─ home? ─ repeat of an id? ─ transition table ─► effects, one outcome
            │        │        └ stray: re-routed, its verdict falls at its home
            └────────┴ rejected: kept in `belfry.rejected` with a code and a reason
"""

from __future__ import annotations

from typing import Final

from belfry.engine.claims import false_claim
from belfry.engine.effects import Effects, Rerouted
from belfry.engine.limits import Limits
from belfry.engine.steps import Asked, Steps
from belfry.engine.verdicts import Answer, Place, Verdicts
from belfry.engine.waiting import Waiting
from belfry.schedules.checks import RequestChecks
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import KEEPING, Request
from belfry.schedules.rule_checks import host_problem
from belfry.schedules.tenant import Tenant, Tenants
from belfry.schedules.transitions import TABLE, State
from belfry.store.keys import awaited_key
from belfry.store.records import (
    KIND_CODES,
    MARKER,
    decode_marker,
    decode_pending,
    paused,
)
from belfry.store.schedules import ScheduleStore
from belfry.store.sweep import MARKER_MS
from belfry.wire.record import (
    ORIGIN,
    ORIGIN_TENANT,
    SourceRecord,
    asked_of,
    has_hopped,
    origin_headers,
    size_of,
    stamp_of,
)

MAX_STRAY_BYTES: Final = 1_000_000
# Refused for a name that is not fit to remember anything under.
UNNAMED: Final = frozenset({"no_tenant", "bad_tenant", "bad_request_id"})
NAMELESS: Final = frozenset({"no_tenant", "bad_tenant"})
AT: Final = KIND_CODES["AT"]


class Intake:
    """Takes requests in for one partition; `now_ms` and `watermark_ms` are the step's."""

    def __init__(
        self,
        place: Place,
        store: ScheduleStore,
        tenants: Tenants,
        waiting: Waiting,
        verdicts: Verdicts,
        limits: Limits,
    ) -> None:
        self._waiting = waiting
        self._limits = limits
        self._place = place
        self._store = store
        self._tenants = tenants
        self._verdicts = verdicts
        self._checks = RequestChecks()
        self.now_ms = 0
        self.watermark_ms = 0
        self._asked_ms = 0
        self._steps = Steps(place, store, waiting, verdicts)
        self._table = {case: self._steps.carry_out[step] for case, step in TABLE.items()}

    def begin(self, now_ms: int, watermark_ms: int) -> None:
        """Requests that follow are taken in at this instant, with the timeline emptied so far."""
        self.now_ms = self._steps.now_ms = now_ms
        self.watermark_ms = watermark_ms

    def take(self, record: SourceRecord, request: Request | Rejection, effects: Effects) -> None:
        """Give one request its verdict."""
        self._asked_ms = min(self._verdicts.origin(record).timestamp_ms, self.now_ms)
        if isinstance(request, Rejection):
            self._verdicts.reject(record, None, request, self.now_ms, effects)
            return
        problem = self._checks.problem(request, self.now_ms)
        forged = self._forged(record, request, problem)
        if forged is not None:
            self._verdicts.reject(record, request, forged, self.now_ms, effects)
        elif problem is not None:
            self._refuse(record, request, problem, effects)
        else:
            self._take_valid(record, request, effects)

    def _take_valid(self, record: SourceRecord, request: Request, effects: Effects) -> None:
        tenant = self._tenants.of(request["tenant"])
        if tenant.collides_with is not None:
            self._verdicts.reject(record, request, _collision(tenant), self.now_ms, effects)
            return
        if tenant.terms.refused is not None:
            self._refuse(record, request, tenant.terms.refused, effects)
            return
        home, asked = tenant.home, 0
        if home is None:
            home, asked = self._next_stop(record, tenant, request)
        if home != self._place.partition:
            self._reroute(record, request, (home, asked), effects)
            return
        if tenant.queued:
            self._waiting.set_apart(tenant.name_bytes)
        problem = self._tenants_problem(record, tenant, request)
        if problem is not None:
            self._refuse(record, request, problem, effects)
        elif request["request_id"] is None or not self._verdicts.repeats(
            request, self._asked_ms, self.now_ms, effects
        ):
            self._decide(record, request, tenant, effects)

    def _forged(
        self, record: SourceRecord, request: Request, problem: Rejection | None
    ) -> Rejection | None:
        """Why a request is not believed to be its tenant's, or None.

        Comes before any other refusal: one that is remembered under a request id would speak for
        the tenant.
        """
        if problem is not None and problem.code in NAMELESS:
            return None
        tenant = self._tenants.of(request["tenant"])
        return false_claim(record, tenant) if tenant.signs else None

    def _refuse(
        self, record: SourceRecord, request: Request, rejection: Rejection, effects: Effects
    ) -> None:
        """Reject a request; where its id can be trusted, a repeat of it is a DUPLICATE."""
        if rejection.code in UNNAMED or request["request_id"] is None:
            self._verdicts.reject(record, request, rejection, self.now_ms, effects)
        elif not self._verdicts.repeats(request, self._asked_ms, self.now_ms, effects):
            self._verdicts.reject(record, request, rejection, self.now_ms, effects)
            answer = Answer(Outcome.REJECTED, code=rejection.code)
            self._verdicts.remember(request, answer, self.now_ms, effects)

    def _tenants_problem(
        self, record: SourceRecord, tenant: Tenant, request: Request
    ) -> Rejection | None:
        """Why the tenant's policy does not allow a request that is at its home, or None."""
        if tenant.spread > 1 and request["group"] is not None and request["action"] in KEEPING:
            return Rejection(
                "group_of_spread_tenant",
                f"Tenant {tenant.name} is spread over {tenant.spread} shards, and a group is kept"
                " in order on one: leave the group out, or give its schedules another tenant.",
            )
        if request["http_targets"] and request["action"] in KEEPING:
            problem = host_problem(request["http_targets"], tenant.terms.policy)
            if problem is not None:
                return problem
        if not tenant.limited:
            return None
        arrived_ms = self._verdicts.origin(record).timestamp_ms
        return self._limits.too_many_requests(tenant, arrived_ms)

    def _next_stop(self, record: SourceRecord, tenant: Tenant, request: Request) -> tuple[int, int]:
        """Where a request has to go from here, and how many homes have been asked then.

        A tenant's schedules stay in the home that they began in, so each home that its spread ever
        led to is asked, the oldest first.  All requests of a schedule go the same way, and only
        the last home on it begins new ones, so they neither overtake one another nor begin twice.
        """
        here, former = self._place.partition, tenant.terms.policy.former_spreads
        route = self._place.homes.route(tenant.name, request["schedule_id"], former, tenant.spread)
        if len(route) == 1:
            if tenant.spread == 1 and not former and not tenant.limited:
                tenant.home = route[0]
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
        return self._verdicts.answered(tenant.name, request_id, self._asked_ms)

    def _decide(
        self, record: SourceRecord, request: Request, tenant: Tenant, effects: Effects
    ) -> None:
        name = f"{tenant.name}/{request['schedule_id']}".encode()
        row = self._store.named(name)
        state, version = (State.ABSENT, 0) if row is None else self._standing(name, row)
        step = self._table[state, request["action"]]
        asked = Asked(request, record, tenant, name, row, version)
        expected = request["expected_version"]
        exists = state is not State.ABSENT or request["action"] in KEEPING
        if expected is not None and expected != version and exists:
            answer = _wrong_version(expected, version)
        elif tenant.limited and step == self._steps.begin and (full := self._full(tenant)):
            answer = full
        else:
            answer = step(asked, effects)
        if answer.outcome is Outcome.REJECTED:
            rejection = Rejection(answer.code or "", answer.reason or "")
            self._refuse(record, request, rejection, effects)
        else:
            self._verdicts.conclude(record, request, tenant, answer, self.now_ms, effects)

    def _full(self, tenant: Tenant) -> Answer | None:
        problem = self._limits.too_many_pending(tenant)
        if problem is None:
            return None
        return Answer(Outcome.REJECTED, code=problem.code, reason=problem.reason)

    def _standing(self, name: bytes, row: bytes) -> tuple[State, int]:
        if row[1] != MARKER:
            record = self._store.pending_at(name, row)
            state = State.PAUSED if paused(record) else State.PENDING
            return state, decode_pending(record).version
        marker = decode_marker(row)
        if self.now_ms - marker.ended_ms >= MARKER_MS:
            return State.ABSENT, 0
        return State.OVER, marker.version

    def _reroute(
        self, record: SourceRecord, request: Request, stop: tuple[int, int], effects: Effects
    ) -> None:
        origin, (home, asked) = self._verdicts.origin(record), stop
        headers, stamp = record[4], stamp_of(record[4])
        if origin.rerouted and not asked and has_hopped(headers):
            reason = (
                f"The request was re-routed from {origin.topic}/{origin.partition} to partition"
                f" {self._place.partition}, but its home is {home}; one hop is the limit. Remove"
                " the belfry-origin headers, which only belfry sets."
            )
            rejection = Rejection("misrouted", reason)
            self._verdicts.reject(record, request, rejection, self.now_ms, effects)
            return
        size = size_of(record)
        if size > MAX_STRAY_BYTES:
            reason = (
                f"The request takes {size} bytes; {MAX_STRAY_BYTES} can be re-routed to its home"
                " partition. Write it with key = tenant and the murmur2 partitioner, or store its"
                " content elsewhere and schedule the address (claim check)."
            )
            rejection = Rejection("request_too_large", reason)
            self._verdicts.reject(record, request, rejection, self.now_ms, effects)
            return
        _, _, key, value, _ = record
        carried = [(name, given) for name, given in headers or () if name not in ORIGIN]
        carried += origin_headers(origin, asked if asked or stamp is not None else None)
        if stamp is not None:
            carried.append((ORIGIN_TENANT, stamp.encode()))
        effects.rerouted.append(Rerouted(home, key, value, carried))


def _wrong_version(expected: int, version: int) -> Answer:
    reason = f"expected_version is {expected}, but the schedule's version is {version}."
    return Answer(Outcome.CONFLICT, version, None, "wrong_version", reason)


def _collision(tenant: Tenant) -> Rejection:
    reason = (
        f"Tenants {tenant.name!r} and {tenant.collides_with!r} cannot both exist: in Kafka's"
        " metrics a dot and an underscore are the same, so their topics collide. Choose another"
        " name."
    )
    return Rejection("tenant_collides", reason)
