"""Requests that each home of a tenant carries out: bulk jobs and calendars.

A tenant that is spread lives in several partitions, and has lived in more under former policies.
Such a request is about all of its schedules, so it goes from home to home, in one order for all:

    home 1   judged ─► verdict, told of ─► carried out ─► sent on
    home 2                                                carried out ─► sent on
    home 3                                                               carried out

The first home judges for all of them: policy, id, and whether such a job or calendar may begin. The
others follow without a question, for a verdict falls once.  A request that was refused, or changes
nothing, goes no further; but a calendar does, for another home may not have it yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belfry.engine.admission import Admission
from belfry.engine.calendars import Calendars
from belfry.engine.kept_jobs import Begun, KeptJobs
from belfry.engine.rekeying import rekey_problem
from belfry.engine.reply import Reply
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.rerouting import Rerouting
from belfry.engine.step import Step
from belfry.schedules.bulk import BULK, BULK_ACTIONS
from belfry.schedules.calendars import CALENDAR, CALENDAR_ACTIONS, CALENDAR_REMOVE
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.tenants.effective import Tenant
from belfry.wire.record import SourceRecord

# The work of each home of a tenant.
EVERYWHERE: Final = BULK_ACTIONS | CALENDAR_ACTIONS


class Everywhere:
    """Takes such requests in for one partition."""

    def __init__(
        self,
        place: SourcePartition,
        reports: Reports,
        rerouting: Rerouting,
        admission: Admission,
        kept: tuple[KeptJobs, Calendars],
    ) -> None:
        """`kept` are the jobs and the calendars of the partition."""
        self._homes = place.homes
        self._reports = reports
        self._rerouting = rerouting
        self._admission = admission
        self._jobs, self._calendars = kept

    def take(
        self,
        record: SourceRecord,
        request: Request,
        tenant: Tenant,
        judged: tuple[int, int],
        step: Step,
    ) -> Reply | None:
        """Take a bulk job or a calendar in here, and pass it on to the next home of the tenant.

        The verdict falls in the first home; the others follow it.  It is `judged` for a home, which
        may be another partition where a key group has moved, and by when it arrived (epoch ms).
        """
        here, accepted_ms = judged
        route, asked = self._way(record, tenant)
        if route[asked] != here:
            return self._rerouting.send(record, request, (route[asked], asked), step)
        begun = Begun(self._reports.origin(record), len(route), accepted_ms)
        reply, goes_on = None, True
        if not asked:
            reply, goes_on = self._begin(record, request, tenant, begun, step)
        elif request["action"] == BULK:
            self._jobs.follow(record, request, begun, step)
        else:
            self._carry_out(record, request, begun, step)
        if goes_on and asked + 1 < len(route):
            self._rerouting.send(record, request, (route[asked + 1], asked + 1), step)
        return reply

    def follows(self, record: SourceRecord, request: Request, tenant: Tenant) -> bool:
        """Whether a request has had its verdict in an earlier home."""
        return request["action"] in EVERYWHERE and self._way(record, tenant)[1] > 0

    def pass_over(
        self,
        record: SourceRecord,
        request: Request,
        tenant: Tenant,
        here: int,
        why: Rejection,
        step: Step,
    ) -> None:
        """Keep a request as refused that fails in a home which follows, and pass it on.

        Nobody is told of it as of a verdict: that fell in the first home.
        """
        route, asked = self._way(record, tenant)
        self._reports.reject(record, None, why, step)
        if route[asked] == here and asked + 1 < len(route):
            self._rerouting.send(record, request, (route[asked + 1], asked + 1), step)

    def _way(self, record: SourceRecord, tenant: Tenant) -> tuple[Sequence[int], int]:
        """The homes that such a request goes to, and how many have carried it out."""
        spreads = (*tenant.effective.policy.former_spreads, tenant.spread)
        route = self._homes.all_of(tenant.name, spreads)
        return route, min(self._reports.asked(record), len(route) - 1)

    def _begin(
        self, record: SourceRecord, request: Request, tenant: Tenant, begun: Begun, step: Step
    ) -> tuple[Reply, bool]:
        """Give such a request its verdict; and whether other homes have to hear of it."""
        problem = self._admission.problem(record, request, tenant, begun.at_ms, step)
        if problem is None and request["action"] == BULK:
            problem = rekey_problem(request, tenant)
        if problem is not None:
            return self._reports.refuse(record, request, problem, begun.at_ms, step), False
        if request["request_id"] is not None:
            repeated = self._reports.repeated(record, request, begun.at_ms, step)
            if repeated is not None:
                return repeated, False
        reply = self._carry_out(record, request, begun, step)
        if reply.outcome is Outcome.REJECTED:
            rejection = Rejection(reply.code or "", reply.reason or "")
            return self._reports.refuse(record, request, rejection, begun.at_ms, step), False
        self._reports.conclude(record, request, tenant, reply, step)
        is_calendar = request["action"] in CALENDAR_ACTIONS
        return reply, is_calendar or reply.outcome in (Outcome.ACCEPTED, Outcome.CANCELLED)

    def _carry_out(self, record: SourceRecord, request: Request, begun: Begun, step: Step) -> Reply:
        """Do the work of all homes of a tenant; the reply that the first of them gives."""
        action = request["action"]
        if action == CALENDAR:
            return self._calendars.set(request, begun.at_ms, step)
        if action == CALENDAR_REMOVE:
            return self._calendars.remove(request, step)
        if action == BULK:
            return self._jobs.begin(record, request, begun, step)
        return self._jobs.stop(request, step, elsewhere=begun.homes > 1)
