"""Throttle: at most one event of a schedule id in a window; further requests are dropped.

    throttle 10 min; minutes after the first request
    0        2          4           9            14     15
    a ───────b──────────●───────────c────────────┤──────d
             throttled  fires a     throttled    over   ACCEPTED
             └─ it waits └──────── 10 min ───────┘

A request with `throttle_ms` changes nothing while its schedule waits, nor within so long after the
schedule's last fire.  It is told UNCHANGED with the code `throttled`.  It is the request that looks
back: nothing is kept for it, but the end of a schedule, which is remembered for a day anyway.

Two requests may name different windows: each is judged by its own.  A window is counted from the
fire, so with requests all the time events are at least one window apart.

Debounce and throttle are the two ways to make one event of many requests:

    debounce   the *last* request counts, and each one puts the event off
    throttle   the *first* request counts, and the others are dropped
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.registry import RECURRING

# For so long the end of a schedule is remembered; a longer window could not be judged.
LONGEST_WINDOW_MS: Final = 86_400_000
CODE: Final = "throttled"


def throttle_problem(request: Request) -> Rejection | None:
    """Why the window of a request is not allowed, or None."""
    window_ms = request["throttle_ms"]
    if window_ms is None:
        return None
    if not 1 <= window_ms <= LONGEST_WINDOW_MS:
        return _bad(
            f"throttle_ms {window_ms} is not allowed: 1 to {LONGEST_WINDOW_MS}, a day, for so long"
            " the end of a schedule is remembered."
        )
    if request["kind"] in RECURRING:
        return _bad(
            f"throttle_ms is set, and kind {request['kind']} recurs: its rule says how often it"
            " fires. Leave it empty, or use kind AT or AFTER."
        )
    if request["max_wait_ms"] is not None:
        return _bad(
            "throttle_ms leaves what waits as it is, and max_wait_ms slides it: keep one of them."
        )
    return None


def is_within(arrived_ms: int, fired_ms: int, window_ms: int) -> bool:
    """Whether a request that arrived then is in the window after a fire (epoch milliseconds).

    The window's end is exclusive: exactly `window_ms` after the fire a request is taken in again.
    """
    return arrived_ms - fired_ms < window_ms


def _bad(reason: str) -> Rejection:
    return Rejection("bad_throttle", reason)
