"""Debounce: requests of one schedule that slide its instant, but never beyond a longest wait.

A request of kind AFTER with `max_wait_ms` begins a run.  Each further one that comes while the
schedule waits replaces its definition, and moves its instant:

    instant = the earlier of   arrival of this request + delay_ms
                               arrival of the first one + max_wait_ms

    delay 5 min, max wait 12 min; minutes after the first request
    0        3        6        9        12
    ├────────┼────────┼────────┼────────┤
    a        b        c        d        fires d         would be 5, 8, 11, 14: the last is cut
    └──5     └──8     └──11    └─ ─ ─ ─ ┤── ─ 14

The first arrival is the `accepted_ms` of the waiting row, which the run keeps.  So nothing more is
stored for a debounce, and a replay finds the same instants.

A run ends when its schedule fires, is cancelled, or is replaced by a request without `max_wait_ms`;
the next request with one begins another run.  "Arrival" is the timestamp that Kafka gave the record
when it first came in, not the moment at which a worker read it, so a worker that is behind slides
the instant by no more than one that is not.
"""

from __future__ import annotations

from belfry.schedules.instant_bounds import YEARS_100_MS
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request


def max_wait_problem(request: Request) -> Rejection | None:
    """Why the longest wait of a request, whose delay was checked, is not allowed, or None.

    It is at least the delay, for otherwise the first request alone would be cut; an import is
    exempt from that.
    """
    longest_ms, delay_ms = request["max_wait_ms"], request["delay_ms"]
    if longest_ms is None:
        return None
    if request["kind"] != "AFTER" or delay_ms is None:
        return Rejection(
            "bad_max_wait",
            f"max_wait_ms is set, and kind {request['kind']} has no delay that could slide: use"
            " kind AFTER, or leave it empty.",
        )
    if request["standing"] is not None:
        # An imported schedule has its instant, and a bulk job may have moved its delay.
        delay_ms = 0
    if delay_ms <= longest_ms <= YEARS_100_MS:
        return None
    return Rejection(
        "bad_max_wait",
        f"max_wait_ms {longest_ms} is not allowed: it is {_wrong_way(longest_ms, delay_ms)}.",
    )


def _wrong_way(longest_ms: int, delay_ms: int) -> str:
    """What is wrong with the longest wait, and what to do."""
    if longest_ms < delay_ms:
        return f"shorter than delay_ms ({delay_ms}): give a longer wait, or a shorter delay"
    return f"longer than 100 years ({YEARS_100_MS}): give a shorter wait"


def slid_ms(arrived_ms: int, delay_ms: int, first_ms: int, longest_ms: int) -> int:
    """The instant of a run whose first request arrived at `first_ms` and this one at `arrived_ms`.

    Epoch milliseconds; it may be over already where `longest_ms` was made shorter.  With the
    example above, in minutes:

        slid_ms(9, 5, 0, 12)    12, and not 14: the longest wait has cut it
    """
    return min(arrived_ms + delay_ms, first_ms + longest_ms)
