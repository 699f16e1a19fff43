"""Which instants and spans a request may name, and how a wrong unit is told.

An instant is a whole number of epoch milliseconds, from 2001 to a hundred years ahead.  Both bounds
are there for the sender: a number outside of them is nearly always one in another unit.

    1796115600            seconds         refused: looks like January 1970
    1796115600000         milliseconds    2026-12-01T09:00:00Z
    1796115600000000      microseconds    refused: looks like the year 58886

The spans are bounds of other fields, such as an interval or a lateness.  They are plain numbers of
milliseconds, so that no calendar and no time zone decides whether a request is allowed.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.rejections import Rejection

# Years of 365.25 days, in whole numbers: a hundredth of a day has 864 000 ms.
YEARS_100_MS: Final = 100 * 36525 * 864_000
YEAR_MS: Final = 366 * 86_400_000
# Epoch milliseconds of 2001-09-09.  Seconds of any instant from now on stay below it until the year
# 33658, so a smaller number is most likely seconds.
SECONDS_LIMIT: Final = 10**12


def instant_problem(at_ms: int, now_ms: int, name: str = "at") -> Rejection | None:
    """Why an instant (epoch milliseconds) is not allowed, or None; `name` is the field's.

    A wrong unit is the most common slip, so both refusals say what the unit is: seconds look like
    January 1970, and micro- or nanoseconds like a far future.
    """
    if at_ms < SECONDS_LIMIT:
        as_seconds_ms = at_ms * 1000
        # Only values that would be taken are advised: not 0, and not the year 33658.
        allowed = SECONDS_LIMIT <= as_seconds_ms <= now_ms + YEARS_100_MS
        advice = f"; if it counts seconds, send {as_seconds_ms}" if allowed else ""
        return Rejection(
            "instant_in_seconds",
            f"{name} {at_ms} is before 2001: instants are epoch milliseconds (13 digits"
            f" today){advice}.",
        )
    if at_ms > now_ms + YEARS_100_MS:
        return Rejection(
            "instant_too_far",
            f"{name} {at_ms} is more than 100 years ahead: instants are epoch milliseconds; if it"
            " counts micro- or nanoseconds, divide it.",
        )
    return None
