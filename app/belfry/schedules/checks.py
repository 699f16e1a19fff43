"""The checks that every request has to pass; the first reason to refuse it is the answer.

    tenant ─► schedule_id ─┬─ UPSERT, CREATE ─► trigger_problem ─┬─► bulk ─► days_off ─► texts
                           └─ others ─────────► action, fire id ─┘

The order is that of what a person mends first: a request without a tenant needs no remark about its
time zone.  All checks here depend on the request and the instant alone.  The engine makes checks
that depend on state (the policy, a version, a calendar, a quota) afterwards.
"""

from __future__ import annotations

from belfry.schedules.bulk import BULK, bulk_problem
from belfry.schedules.calendars import CALENDAR_ACTIONS, days_problem
from belfry.schedules.debounce import max_wait_problem
from belfry.schedules.fire_checks import (
    acknowledgement_problem,
    jitter_problem,
    lateness_problem,
    priority_problem,
    targets_problem,
)
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import (
    KEEPING,
    Request,
    action_problem,
    fire_problem,
    schedule_id_problem,
    tenant_problem,
    text_problem,
)
from belfry.schedules.rule_checks import standing_problem, when_problem
from belfry.schedules.throttle import throttle_problem
from belfry.schedules.triggers.acknowledged import dependence_problem


def trigger_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the trigger of an UPSERT or CREATE is not allowed, or None.

    `preview` makes the same checks, so a preview refuses the same requests as the engine.
    """
    return (
        jitter_problem(request)
        or when_problem(request, now_ms)
        or max_wait_problem(request)
        or dependence_problem(request)
        or throttle_problem(request)
        or lateness_problem(request)
        or acknowledgement_problem(request)
        or priority_problem(request)
        or targets_problem(request)
        or standing_problem(request, now_ms)
    )


def names_problem(request: Request) -> Rejection | None:
    """Why the names of a request that is refused anyway are not allowed, or None."""
    return (
        tenant_problem(request["tenant"])
        or schedule_id_problem(request["schedule_id"])
        or text_problem(request)
    )


class RequestChecks:
    """All checks of a request; remembers the tenants that passed, for they come again.

    A name's form never changes, so a tenant that passed never has to be forgotten.  `known_limit`
    bounds the memory (some 10 MB at 100 000); further tenants are checked each time.  Each
    partition has an object of its own and asks it from its own thread.
    """

    def __init__(self, known_limit: int = 100_000) -> None:
        self._known: set[str] = set()
        self._known_limit = known_limit

    def problem(self, request: Request, now_ms: int) -> Rejection | None:
        """First reason to refuse the request at `now_ms`, or None."""
        tenant = request["tenant"]
        if tenant not in self._known:
            found = tenant_problem(tenant)
            if found is not None:
                return found
            if len(self._known) < self._known_limit:
                self._known.add(tenant)
        found = schedule_id_problem(request["schedule_id"])
        action = request["action"]
        if found is None and action in KEEPING:
            found = trigger_problem(request, now_ms)
        elif found is None:
            found = action_problem(action) or fire_problem(request)
        if action == BULK or request["bulk"] is not None:
            found = found or bulk_problem(request)
        if action in CALENDAR_ACTIONS or request["days_off"] is not None:
            found = found or days_problem(request)
        return found or text_problem(request)
