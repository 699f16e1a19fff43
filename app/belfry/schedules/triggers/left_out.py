"""Times that a recurring schedule leaves out: minutes on the wall that a cron expression names.

    * 0-5 * * *       00:00 ████████ 06:00 ──────────────────────► 24:00      each day
    * * * * SAT,SUN   Fri ──────────► ████ Sat ████ Sun ████ ► Mon ─────────►

Such minutes lie in runs, and a run is passed over at once, however long it is.  What counts is the
clock on the wall at an instant, so a minute that comes twice is left out twice, and one that a gap
swallows never comes.

Two questions have to be cheap, for any expression:

    free_ms    where does this run end?       a look at the run of a minute, and over whole days
    within     how many instants are free?    in `pieces`; days that are alike only once

A run ends with its day; where the next day begins with one, the search goes on there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from belfry.schedules.civil import DAY_S
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.cron_spelling import is_hashed, normalized
from belfry.schedules.triggers.cron_text import CronMistake, read_cron
from belfry.schedules.triggers.cron_words import words_of
from belfry.schedules.triggers.expression import expression
from belfry.schedules.triggers.pieces import Piece
from belfry.schedules.triggers.zones import END_S, Zone, zone_problem

MINUTES: Final = 1440
FIELDS: Final = 5
MAX_SHOWN: Final = 200
# Days on end of which nothing is free.  A day that an expression of five fields leaves free comes
# within a year or two, or never.
MOST_DAYS: Final = 4_000
SHAPE: Final = (
    "five fields, minute hour day-of-month month day-of-week, without H or an alias, such as"
    ' "* 0-5 * * *" for the night'
)


class LeftOut:
    """The instants, in epoch milliseconds, that an expression leaves out in a zone."""

    def __init__(self, text: str, place: Zone) -> None:
        plain = normalized(text)
        fields = read_cron(plain)
        self.expression = expression(plain)
        self._zone = place
        named = {hour * 60 + minute for hour in fields.hours for minute in fields.minutes}
        # Runs of minutes of a day, ends exclusive; and of each minute the run that holds it.
        self.runs: list[tuple[int, int]] = []
        self._run_of: list[tuple[int, int] | None] = []
        for is_named, run in groupby(range(MINUTES), named.__contains__):
            minutes = [*run]
            found = (minutes[0], minutes[-1] + 1) if is_named else None
            self.runs += [found] if found else []
            self._run_of += [found] * len(minutes)

    def holds(self, ms: int) -> bool:
        """Whether an instant is left out."""
        second = ms // 1000
        return self.holds_wall(second + self._zone.at(second).offset)

    def holds_wall(self, wall: int) -> bool:
        """Whether a second on the wall is left out."""
        day, second = divmod(wall, DAY_S)
        return self._run_of[second // 60] is not None and self.expression.on_day(day)

    def free_ms(self, ms: int) -> int | None:
        """The first millisecond from this one on that is not left out, or None."""
        second = ms // 1000
        while second < END_S:
            stretch = self._zone.at(second)
            wall = self._free_wall(second + stretch.offset)
            if wall is None:
                return None
            if wall - stretch.offset < stretch.end:
                return max(ms, (wall - stretch.offset) * 1000)
            second = stretch.end
        return None

    def _free_wall(self, wall: int) -> int | None:
        first, second = divmod(wall, DAY_S)
        minute = second // 60
        for day in range(first, min(first + MOST_DAYS, END_S // DAY_S)):
            run = self._run_of[minute] if self.expression.on_day(day) else None
            if run is None or run[1] < MINUTES:
                return max(wall, day * DAY_S + (run[1] if run else minute) * 60)
            minute = 0
        return None

    def begin_ms(self, ms: int) -> int:
        """The first millisecond of the day from which all up to this one is left out, as it is."""
        stretch = self._zone.at(ms // 1000)
        wall = ms // 1000 + stretch.offset
        run = self._run_of[wall % DAY_S // 60]
        assert run is not None, "asked of what is left out"
        begin = wall // DAY_S * DAY_S + run[0] * 60 - stretch.offset
        return max(stretch.start, begin) * 1000

    def within(self, piece: Piece) -> Iterator[tuple[int, int]]:
        """The parts of a piece that are left out, ends exclusive."""
        if not self.expression.on_day(piece.day):
            return
        midnight = (piece.day * DAY_S - piece.offset) * 1000
        for first, end in self.runs:
            from_ms = max(piece.from_ms, midnight + first * 60_000)
            end_ms = min(piece.end_ms, midnight + end * 60_000)
            if from_ms < end_ms:
                yield from_ms, end_ms


def left_out_problem(request: Request) -> Rejection | None:
    """Why the times that a recurring request leaves out cannot be read, or None."""
    text = request["except_cron"]
    if text is None:
        return None
    try:
        if len(text.split()) != FIELDS or is_hashed(text):
            raise CronMistake(f"give {SHAPE}", 0)
        read_cron(text)
    except CronMistake as mistake:
        return Rejection(
            "bad_cron",
            f"except_cron {text[:MAX_SHOWN]!r} cannot be read at character {mistake.position + 1}:"
            f" {mistake}{'' if str(mistake).endswith('?') else '.'}",
        )
    return zone_problem(request["timezone"])


def left_out_words(text: str) -> str:
    """The times that an expression leaves out, in English, as they follow the words of a rule."""
    said = words_of(normalized(text))
    return f"; left out: {said[:1].lower()}{said[1:]}"
