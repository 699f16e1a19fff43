"""Admission: whether the policy of a tenant allows a request that is at its home.

    a group of a tenant that is spread      no: a group is kept in order on one shard
    one unknown tenant too many             nothing is kept for it
    HTTP targets                            as far as the policy and the worker's settings reach
    a calendar                              the tenant has it, and it leaves something to fire
    a key for payloads                      the worker can read the one that the policy names
    a large payload                         the store where such payloads go answers
    requests a second, pending schedules    as many as `limits.py` counts

Each refusal is a `Rejection` with the sentence that says what to do.  Refusals by the schedule
itself are in `conditions.py`; `claims.py` judges who may write for a tenant at all.

Most tenants have none of these rules, and a request of theirs is asked five questions of its own
fields and of the tenant's, without a call.
"""

from __future__ import annotations

from functools import partial

from belfry.engine.arrival import MOST_AHEAD_MS
from belfry.engine.calendars import Calendars
from belfry.engine.large_payloads import not_stored
from belfry.engine.limits import Limits
from belfry.engine.reply import Reply
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.step import Step
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import KEEPING, Request
from belfry.tenants.effective import Tenant
from belfry.tenants.policy_rights import reach_of_targets_problem
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.record import SourceRecord


class Admission:
    """The limits that the policies of tenants set in one partition.

    `appended` says whether the timestamps of the batch that is taken in are the broker's: only
    these count for a rate.
    """

    def __init__(
        self,
        place: SourcePartition,
        tenants: StepTenants,
        reports: Reports,
        limits: Limits,
        calendars: Calendars,
    ) -> None:
        self._place = place
        self._tenants = tenants
        self._reports = reports
        self._limits = limits
        self._calendars = calendars
        self.appended = True

    def problem(
        self, record: SourceRecord, request: Request, tenant: Tenant, accepted_ms: int, step: Step
    ) -> Rejection | None:
        """Why the tenant's policy does not allow a request that arrived then, or None."""
        if (not tenant.simple or tenant.claims_over is not None) and request["action"] in KEEPING:
            problem = self._by_tenant(request, tenant)
            if problem is not None:
                return problem
        if request["http_targets"] and request["action"] in KEEPING:
            judge = partial(self._tenants.target_problem, tenant.name)
            policy = tenant.effective.policy
            problem = reach_of_targets_problem(request["http_targets"], policy, judge)
            if problem is not None:
                return problem
        if request["calendar"] is not None and request["action"] in KEEPING:
            problem = self._calendars.problem(request, accepted_ms)
            if problem is not None:
                return problem
        if not tenant.limited:
            return None
        return self._limits.too_many_requests(tenant, self._counts_from_ms(record, step))

    def _by_tenant(self, request: Request, tenant: Tenant) -> Rejection | None:
        """Why nothing like this is kept for the tenant, or None."""
        if tenant.spread > 1 and request["group"] is not None:
            return group_of_spread(tenant)
        if tenant.crowded_out:
            return crowded_out(tenant)
        if tenant.lacks_key:
            return lacks_key(tenant)
        return not_stored(request, tenant, self._tenants.store_problem)

    def _counts_from_ms(self, record: SourceRecord, step: Step) -> int:
        """The instant at which a request counts for a rate: never one that its producer gave.

        When it first arrived elsewhere is known where workers share a secret.
        """
        if not self.appended:
            return step.now_ms
        known = self._place.origin_keys
        arrived_ms = self._reports.origin(record).timestamp_ms if known else record[1]
        return min(arrived_ms, step.now_ms + MOST_AHEAD_MS)

    def full(self, tenant: Tenant) -> Reply | None:
        """The reply to a request that begins one schedule too many, or None; then it counts."""
        problem = self._limits.too_many_pending(tenant)
        if problem is None:
            return None
        return Reply(Outcome.REJECTED, code=problem.code, reason=problem.reason)


def group_of_spread(tenant: Tenant) -> Rejection:
    """Why a schedule of a spread tenant may not be in a group."""
    return Rejection(
        "group_of_spread_tenant",
        f"Tenant {tenant.name} is spread over {tenant.spread} shards, and a group is kept"
        " in order on one: leave the group out, or give its schedules another tenant.",
    )


def crowded_out(tenant: Tenant) -> Rejection:
    """Why nothing is kept for a tenant without a policy, where there are too many of those."""
    return Rejection(
        "too_many_tenants",
        f"Tenant {tenant.name!r} has neither a policy nor an output topic, and tenants without a"
        " policy have as many topics as they may have (BELFRY_UNKNOWN_TENANTS_MOST): run `belfry"
        f" tenant set {tenant.name}`, or create {tenant.topic}, and send the request again.",
    )


def lacks_key(tenant: Tenant) -> Rejection:
    """Why nothing is kept for a tenant whose payloads would have to lie there readable."""
    why = tenant.effective.blocked or "payload_key_ref leads to no key here"
    why = why.removesuffix(".")
    reason = f"Payloads of tenant {tenant.name!r} are encrypted at rest, and {why}. Try again."
    return Rejection("payload_key_missing", reason)


def collision(tenant: Tenant) -> Rejection:
    """Why nothing is kept for a tenant whose name collides with another one's."""
    reason = (
        f"Tenants {tenant.name!r} and {tenant.collides_with!r} cannot both exist: in Kafka's"
        " metrics a dot and an underscore are the same, so their topics collide. Choose another"
        " name."
    )
    return Rejection("tenant_collides", reason)
