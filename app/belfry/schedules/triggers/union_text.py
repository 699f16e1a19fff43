"""The text of a union: cron expressions and one interval, apart by ``|``.

    0 9 * * MON | @every 90m            a cron and an interval
    0 9 * * MON-FRI | 0 11 * * SAT,SUN  two crons
    @daily                              no union: one part

Each part is an expression as it is by itself.  In a union a part may be due once a minute at most,
and an interval has whole minutes: instants that parts have in common are looked for one by one
(`united`), and a day has 1440 minutes.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.triggers.cron_text import CronMistake, interval_of, read_cron
from belfry.schedules.triggers.expression import expression

MOST_PARTS: Final = 4
MINUTE_MS: Final = 60_000


def parts_of(text: str) -> list[str]:
    """The parts of a text, an interval as the last one; the text itself where it is no union."""
    parts = text.split("|")
    if len(parts) == 1:
        return parts
    # A union is the same in any order of its parts, and is counted so (`united`).
    return sorted((part.strip() for part in parts), key=_is_interval)


def _is_interval(part: str) -> bool:
    return interval_of(part) is not None


def check_text(text: str) -> None:
    """Raises `CronMistake` for a text that cannot be read, at the place of the mistake."""
    parts = text.split("|")
    if len(parts) > MOST_PARTS:
        at = sum(len(part) + 1 for part in parts[:MOST_PARTS])
        raise CronMistake(f"it has {len(parts)} parts; at most {MOST_PARTS} are united", at)
    at, intervals = 0, 0
    for part in parts:
        try:
            interval_ms = _checked(part, united=len(parts) > 1)
        except CronMistake as mistake:
            raise CronMistake(str(mistake), at + mistake.position) from None
        intervals += interval_ms is not None
        if intervals > 1:
            raise CronMistake("it has two intervals; a union has one at most", at)
        at += len(part) + 1


def _checked(part: str, *, united: bool) -> int | None:
    """The interval of a part that can be read, in milliseconds; None for an expression."""
    interval_ms = interval_of(part)
    if interval_ms is None:
        expression(part)
    if not united:
        return interval_ms
    if interval_ms is not None and interval_ms % MINUTE_MS:
        raise CronMistake("an interval beside another part has whole minutes, such as 90m", 0)
    if interval_ms is None and len(read_cron(part).seconds) > 1:
        raise CronMistake("an expression beside another part is due once a minute at most", 0)
    return interval_ms
