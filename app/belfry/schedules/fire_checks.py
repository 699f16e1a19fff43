"""Checks of the fields about each fire: jitter, lateness, acknowledgements, targets.

These fields do not depend on the rule, so `checks` asks them without a trigger and
without the clock.  Some of them depend on one another, for two ways of waiting may contradict:

    overlap SKIP …         occurrences of one schedule wait for its last fire     needs a rule
    serial, concurrency    fires of a group wait for one another                  needs a group
    ack_timeout_ms         ends both ways of waiting

    {"overlap": "QUEUE_ALL", "misfire": "SKIP"}      bad_overlap: one keeps all, the other does not
    {"serial": true}                                 no_group: nobody to wait for
    {"serial": true, "group": "g", "concurrency": 2}    bad_concurrency: serial is one at once

Each check returns the first reason to refuse, or None.  Limits by a policy of the tenant are no
matter of these checks: the engine looks at them, for policies are state.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.instant_bounds import YEAR_MS, YEARS_100_MS
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.rule import OVERLAPS, POLICIES, RECURRING
from belfry.schedules.rule_checks import only_recurring
from belfry.schedules.target_kinds import list_problem
from belfry.schedules.targets import target_of
from belfry.schedules.triggers.levels import HIGHEST, LOWEST

# The limit of a group has one byte in the row of a fire that waits for its acknowledgement.
MOST_AT_ONCE: Final = 255
# They concern the schedule's own last fire, and no group.
ENDING: Final = ("CANCEL_OTHER", "TERMINATE_OTHER")


def jitter_problem(request: Request) -> Rejection | None:
    """Why the jitter of a request is not allowed, or None."""
    jitter = request["jitter_ms"]
    if jitter is None or 0 <= jitter <= YEAR_MS:
        return None
    return Rejection("bad_jitter", f"jitter_ms {jitter} is not allowed: 0 to {YEAR_MS} (one year).")


def lateness_problem(request: Request) -> Rejection | None:
    """Why the fields of a request about late occurrences are not allowed, or None.

    `max_lateness_ms` is 0 to 100 years; 0 makes every occurrence late that fires after its due
    millisecond, so a tenant seldom wants it, but it has a meaning.
    """
    limit_ms, misfire = request["max_lateness_ms"], request["misfire"]
    if limit_ms is not None and not 0 <= limit_ms <= YEARS_100_MS:
        return Rejection(
            "bad_max_lateness",
            f"max_lateness_ms {limit_ms} is not allowed: 0 to {YEARS_100_MS} (100 years).",
        )
    if misfire is not None and misfire not in POLICIES[1:]:
        return Rejection(
            "unknown_misfire", f"misfire {misfire!r} is not known: {', '.join(POLICIES[1:])}."
        )
    return None


def acknowledgement_problem(request: Request) -> Rejection | None:
    """Why the fields of a request about acknowledgements are not allowed, or None.

    `overlap` is about occurrences of one schedule and needs a kind that recurs; `serial` and
    `concurrency` are about a group and need one; `ack_timeout_ms` bounds both kinds of waiting.
    """
    overlap, timeout_ms = request["overlap"], request["ack_timeout_ms"]
    if overlap is not None and overlap not in OVERLAPS[1:]:
        return Rejection(
            "unknown_overlap", f"overlap {overlap!r} is not known: {', '.join(OVERLAPS[1:])}."
        )
    if overlap is not None and request["kind"] not in RECURRING:
        return only_recurring("overlap", request)
    found = _overlap_problem(request) or _at_once_problem(request)
    if found is not None:
        return found
    if timeout_ms is not None and not 1 <= timeout_ms <= YEAR_MS:
        return Rejection(
            "bad_ack_timeout",
            f"ack_timeout_ms {timeout_ms} is not allowed: 1 to {YEAR_MS} (one year).",
        )
    return None


def _overlap_problem(request: Request) -> Rejection | None:
    """Why an overlap policy does not go with the other fields of the request, or None."""
    overlap, misfire = request["overlap"], request["misfire"]
    if overlap == "QUEUE_ALL" and misfire in ("FIRE_ONCE", "SKIP"):
        why = f"fires each occurrence, and misfire {misfire} does not: leave misfire out"
    elif overlap in ENDING and (request["serial"] or request["concurrency"] is not None):
        why = "ends the last fire, and in a group that waits for it nothing is due: keep one"
    else:
        return None
    return Rejection("bad_overlap", f"overlap {overlap} {why}.")


def _at_once_problem(request: Request) -> Rejection | None:
    serial, most = request["serial"], request["concurrency"]
    if (serial or most is not None) and not request["group"]:
        name = "serial" if serial else "concurrency"
        return Rejection(
            "no_group",
            f"{name} lets a group wait, and the request has none: set the field `group`.",
        )
    if most is None or (1 <= most <= MOST_AT_ONCE and not (serial and most > 1)):
        return None
    why = "contradicts serial, which is one at once: leave serial out, or concurrency"
    if not 1 <= most <= MOST_AT_ONCE:
        why = f"is not allowed: 1 to {MOST_AT_ONCE} fires of the group that are awaited at once"
    return Rejection("bad_concurrency", f"concurrency {most} {why}.")


def priority_problem(request: Request) -> Rejection | None:
    """Why the priority of a request is not allowed, or None.

    A schedule of a group has priority 0, for an event that goes first would overtake others of its
    group.
    """
    priority = request["priority"]
    if not priority:
        return None
    if not LOWEST <= priority <= HIGHEST:
        why = f"is not allowed: {LOWEST} to {HIGHEST}, where higher ones go first; 0 is usual"
    elif request["group"]:
        group = request["group"][:60]
        why = (
            f"would let events overtake others of group {group!r}, and those keep their due order:"
            " leave out one of the two"
        )
    else:
        return None
    return Rejection("bad_priority", f"priority {priority} {why}.")


def targets_problem(request: Request) -> Rejection | None:
    """Why the HTTP targets of a request are not allowed, or None."""
    given = request["http_targets"]
    found = list_problem([target_of(each) for each in given]) if given else None
    return None if found is None else Rejection("bad_target", found)
