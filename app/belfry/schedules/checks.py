"""The checks that every request has to pass; the first reason to refuse it is the answer."""

from __future__ import annotations

from belfry.schedules.rejections import Rejection
from belfry.schedules.request import (
    KEEPING,
    SECONDS_LIMIT,
    YEAR_MS,
    YEARS_100_MS,
    Request,
    action_problem,
    fire_problem,
    instant_problem,
    schedule_id_problem,
    tenant_problem,
    text_problem,
)
from belfry.schedules.rule import RECURRING
from belfry.schedules.rule_checks import (
    acknowledgement_problem,
    lateness_problem,
    one_shot_problem,
    recurring_problem,
    standing_problem,
    targets_problem,
)


def trigger_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the trigger of an UPSERT or CREATE is not allowed, or None."""
    jitter = request["jitter_ms"]
    if jitter is not None and not 0 <= jitter <= YEAR_MS:
        return Rejection(
            "bad_jitter", f"jitter_ms {jitter} is not allowed: 0 to {YEAR_MS} (one year)."
        )
    kind = request["kind"]
    if kind in RECURRING:
        return recurring_problem(request, now_ms) or _further_problem(request, now_ms)
    if kind == "AT":
        found = _at_problem(request["at"], now_ms)
    elif kind == "AFTER":
        found = _delay_problem(request["delay_ms"])
    else:
        return Rejection("unknown_kind", f"Kind {kind!r} is not known: AT, AFTER, EVERY or CRON.")
    return found or one_shot_problem(request) or _further_problem(request, now_ms)


def _further_problem(request: Request, now_ms: int) -> Rejection | None:
    return (
        lateness_problem(request)
        or acknowledgement_problem(request)
        or targets_problem(request)
        or standing_problem(request, now_ms)
    )


def _at_problem(at_ms: int | None, now_ms: int) -> Rejection | None:
    if at_ms is None:
        return Rejection("no_instant", "Kind AT needs the field `at` (epoch milliseconds).")
    if SECONDS_LIMIT <= at_ms <= now_ms + YEARS_100_MS:
        return None
    return instant_problem(at_ms, now_ms)


def _delay_problem(delay_ms: int | None) -> Rejection | None:
    if delay_ms is None:
        return Rejection("no_instant", "Kind AFTER needs the field `delay_ms` (milliseconds).")
    if not 0 <= delay_ms <= YEARS_100_MS:
        return Rejection(
            "bad_delay", f"delay_ms {delay_ms} is not allowed: 0 to {YEARS_100_MS} (100 years)."
        )
    return None


class RequestChecks:
    """All checks of a request; remembers the tenants that passed, for they come again."""

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
        return found or text_problem(request)
