"""Checks of when a schedule is due: its kind, its bounds, its calendar, and where it begins.

Each check takes a request and returns the first reason to refuse it, or None; `checks` asks them in
order.  They know fields that depend on one another, where `triggers/` knows its own field alone:

    when_problem ─► kind.problem          the kind's own field, such as `cron`, and its zone
                 ─► recurring_problem     bounds, then `except_cron`, then calendar, and at last
                    │                     whether the rule has any instant from now on
                 └► one_shot_problem      what only a recurring schedule can have

The last question costs the most, so it comes last: it makes the trigger and asks for one instant.
The search is bounded (50 years, or some thousands of runs that are left out), so no request can
keep a partition's thread busy.  `now_ms` is when the request was accepted, in epoch milliseconds,
so a replay of the same request gets the same answer.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.calendars import name_problem
from belfry.schedules.instant_bounds import instant_problem
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.rule import RECURRING, rule_of
from belfry.schedules.triggers import trigger_by
from belfry.schedules.triggers.acknowledged import DEPENDING, FAR_MS
from belfry.schedules.triggers.excepting import MOST_PASSED
from belfry.schedules.triggers.left_out import left_out_problem
from belfry.schedules.triggers.moving import moves_too_often
from belfry.schedules.triggers.registry import KINDS, listed
from belfry.schedules.triggers.rule import ON_HOLIDAY
from belfry.schedules.triggers.trigger import ZonedTrigger
from belfry.schedules.triggers.zones import zone_problem

MAX_NUMBER: Final = (1 << 31) - 1
# Numbers of fires and versions that a schedule may have come to: the room of its record.
MOST_STOOD: Final = (1 << 32) - 1
_OF_RECURRING: Final = (
    *("start_at", "end_at", "max_fires", "except_cron", "calendar", "on_holiday"),
)


def when_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the fields of a request about its instants are not allowed, or None.

    The kind is asked first: where its own field cannot be read, no other answer would help.
    """
    kind = KINDS.get(request["kind"])
    if kind is None:
        return Rejection(
            "unknown_kind",
            f"Kind {request['kind']!r} is not known: {listed(KINDS, 'or')}.",
        )
    found = kind.problem(request, now_ms)
    if found is not None:
        return _of_another_kind(request, found)
    return recurring_problem(request, now_ms) if kind.recurs else one_shot_problem(request)


def _of_another_kind(request: Request, found: Rejection) -> Rejection:
    """The rejection of a request without its kind's field, with the kind whose field it has.

    A producer that leaves `kind` out has sent `AT`.
    """
    if request[KINDS[request["kind"]].field.name] is not None:  # type: ignore[literal-required]
        return found
    for name, kind in KINDS.items():
        field = kind.field.name
        if request[field] is not None:  # type: ignore[literal-required]
            hint = f"The request has {field}: set `kind` to {name} if that says when."
            return Rejection(found.code, f"{found.reason} {hint}")
    return found


def recurring_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the bounds of a recurring request, whose rule can be read, are not allowed, or None."""
    found = (
        window_problem(request, now_ms)
        or left_out_problem(request)
        or calendar_problem(request, now_ms)
    )
    if found is not None or request["standing"] is not None:
        # An imported schedule has its next instant, which may be its last one, and overdue.
        return found
    trigger = trigger_by(rule_of(request))
    if trigger.first_ms(now_ms) is not None:
        return None
    would_fire = trigger.whole is not trigger and trigger.whole.first_ms(now_ms) is not None
    return _all_left_out(request) if would_fire else _never_fires(request)


def calendar_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the calendar fields of a recurring request are not allowed, or None.

    Whether the tenant has a calendar of this name only the engine knows, for calendars are state:
    it answers `unknown_calendar`.  So the same request may be taken in a moment later.
    """
    name, way = request["calendar"], request["on_holiday"]
    if name is None and way is None:
        return None
    if way is not None and way not in ON_HOLIDAY[1:]:
        return Rejection(
            "bad_calendar", f"on_holiday {way[:60]!r} is not known: {', '.join(ON_HOLIDAY[1:])}."
        )
    if name is None:
        return Rejection(
            "bad_calendar",
            f"on_holiday {way} belongs to a calendar, and the request names none: set the field"
            " `calendar`.",
        )
    found = name_problem(request) or zone_problem(request["timezone"])
    if found is not None or way in (None, "SKIP"):
        return found
    return _moving_problem(request, now_ms)


def _moving_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the instants of a rule cannot move to business days, or None.

    A moved instant tells no rhythm any more, so an interval needs a `start_at` to count from.
    And moved instants have to be looked at one by one, so a rule that fires more often than once a
    minute may not move (`moving.LEAST_MS`).
    """
    trigger = trigger_by(rule_of(request))
    if request["start_at"] is None and not isinstance(trigger.whole, ZonedTrigger):
        return Rejection(
            "bad_calendar",
            f"on_holiday {request['on_holiday']} moves instants, and an interval then has its"
            " rhythm from `start_at`, which is missing: set it, or use SKIP.",
        )
    if not moves_too_often(trigger, now_ms):
        return None
    return Rejection(
        "bad_calendar",
        f"on_holiday {request['on_holiday']} moves instants that are a minute apart or more, and"
        " the rule is due more often: use SKIP, or another rule.",
    )


def one_shot_problem(request: Request) -> Rejection | None:
    """Why a one-shot request must not hold its fields for recurring ones only, or None."""
    for name in _OF_RECURRING:
        if request[name] is not None:
            return only_recurring(name, request)
    return None


def only_recurring(name: str, request: Request) -> Rejection:
    """Refuse a field that means nothing where a schedule fires once."""
    return Rejection(
        "bad_window",
        f"{name} is set, and kind {request['kind']} fires once: leave it empty, or use kind"
        f" {listed(RECURRING, 'or')}.",
    )


def standing_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the standing that an import brings along is not allowed, or None.

    The next instant must lie within the rule's bounds and the number of the occurrence below
    `max_fires`; otherwise the schedule would fire before its start, or begin where it has already
    ended.  Whatever an export can hold is allowed.  Whether the instant
    is one of the rule is not asked: zone data may have changed between export and import.
    """
    standing = request["standing"]
    if standing is None:
        return None
    no_instant_yet = request["kind"] in DEPENDING and standing["next_at"] == FAR_MS
    found = (
        None if no_instant_yet else instant_problem(standing["next_at"], now_ms, "standing.next_at")
    )
    if found is not None:
        return found
    start_at, end_at = request["start_at"], request["end_at"]
    if start_at is not None and standing["next_at"] < start_at:
        return Rejection(
            "bad_standing",
            f"standing.next_at {standing['next_at']} is before start_at {start_at}.",
        )
    if end_at is not None and standing["next_at"] > end_at:
        return Rejection(
            "bad_standing", f"standing.next_at {standing['next_at']} is after end_at {end_at}."
        )
    most = request["max_fires"] or MOST_STOOD
    if 0 <= standing["occurrence"] < most and 1 <= standing["version"] <= MOST_STOOD:
        return None
    return Rejection(
        "bad_standing",
        f"standing.occurrence {standing['occurrence']} with version {standing['version']} is not"
        f" allowed: an occurrence from 0 to {most - 1}, a version from 1 to {MOST_STOOD}.",
    )


def window_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the bounds of a recurring request are not allowed, or None.

    `start_at` and `end_at` are inclusive, so a window of one instant is allowed.
    """
    start_at, end_at, max_fires = request["start_at"], request["end_at"], request["max_fires"]
    for name, instant in (("start_at", start_at), ("end_at", end_at)):
        found = None if instant is None else instant_problem(instant, now_ms, name)
        if found is not None:
            return found
    if start_at is not None and end_at is not None and end_at < start_at:
        return Rejection(
            "bad_window", f"end_at {end_at} is before start_at {start_at}: nothing lies between."
        )
    if max_fires is not None and not 1 <= max_fires <= MAX_NUMBER:
        return Rejection(
            "bad_max_fires",
            f"max_fires {max_fires} is not allowed: 1 to {MAX_NUMBER}; leave it empty for no"
            " limit.",
        )
    return None


def _never_fires(request: Request) -> Rejection:
    end_at = request["end_at"]
    until = "in the next 50 years" if end_at is None else f"from now up to end_at {end_at}"
    return Rejection(
        "never_fires",
        f"The schedule is never due {until}: preview the rule (`belfry schedule preview`), or move"
        " its end.",
    )


def _all_left_out(request: Request) -> Rejection:
    end_at = request["end_at"]
    until = "" if end_at is None else f" up to end_at {end_at}"
    return Rejection(
        "never_fires",
        f"The schedule is never due{until}: except_cron {request['except_cron']!r} leaves out each"
        f" instant of its rule, or more than is looked through: {MOST_PASSED} runs of them in a"
        " row, or 50 years. Leave out less, or move the rule.",
    )
