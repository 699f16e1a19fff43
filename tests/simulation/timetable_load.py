"""Timetables that a seed draws: cron, unions and RRULE, in zones whose clocks change amid a world.

Each seed has some of these: `cron`, `unions`, `rrules`, and beside them `zones`, `left_out`.
What is drawn has at least one instant within some seconds, by the oracle (`timetables`).  Fields
are taken from what the wall shows about now, so that they meet gaps, repeats and edges of days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Final

from tests.acceptance.harness.rhythms import Table
from tests.simulation.recurrences import Recurrence
from tests.simulation.timetables import CronTable, RuleTable, shown, wall

KINDS: Final = ("cron", "unions", "rrules")
EXTRAS: Final = ("zones", "left_out")
TRIES: Final = 12
# How long a timetable lasts at most.
LONGEST_MS: Final = 14_000


def drawn(random: Random) -> list[str]:
    """What one seed has: at least one kind."""
    kinds = [name for name in KINDS if random.random() < 0.6] or [random.choice(KINDS)]
    return kinds + [name for name in EXTRAS if random.random() < 0.7]


class TableLoad:
    """Draws timetables; `zones` are those whose clocks change in some worlds."""

    def __init__(self, random: Random, zones: Sequence[str]) -> None:
        self._random, self._zones = random, zones
        self.on = drawn(random)
        self._kinds = [name for name in KINDS if name in self.on]
        # What was sent, a name each time: kinds of rules, and changes of clocks that they meet.
        self.struck: list[str] = []

    def one(self, now_ms: int) -> tuple[Table, int]:
        """A timetable, and its end in epoch ms: it has an instant until then."""
        zone = self._random.choice(self._zones) if "zones" in self.on else "UTC"
        end_ms = now_ms + self._random.randint(4_000, LONGEST_MS)
        for _ in range(TRIES):
            made = self._made(zone, now_ms)
            if made.instants(now_ms, end_ms):
                self.struck += _met(made, now_ms, end_ms)
                return made, end_ms
        return CronTable(("*/2 * * * * *",), zone), end_ms

    def _made(self, zone: str, now_ms: int) -> CronTable | RuleTable:
        kind = self._random.choice(self._kinds)
        left_out = None
        if "left_out" in self.on and self._random.random() < 0.4:
            left_out = self._left_out(zone, now_ms)
        if kind == "rrules":
            return self._rule(zone, now_ms, left_out)
        start_ms = None
        if self._random.random() < 0.4:
            start_ms = now_ms + self._random.randint(-2_000, 3_000)
        if kind == "cron":
            text = self._cron(zone, now_ms, self._seconds())
            return CronTable((text,), zone, start_ms, left_out)
        return self._union(zone, now_ms, start_ms, left_out)

    # -- cron --------------------------------------------------------------------------------------

    def _near(self, zone: str, now_ms: int) -> datetime:
        """What the wall shows about now, or, of a gap, what it does not show."""
        second = now_ms // 1000 + self._random.randint(0, 8)
        shown = wall(zone, second)
        return shown + timedelta(minutes=self._random.choice((0, 0, 0, 1, 30)))

    def _seconds(self) -> str:
        one = self._random.randrange(60)
        return self._random.choice(("*", "*/2", "*/3", "0", f"{one},{(one + 9) % 60}", "1-59/5"))

    def _cron(self, zone: str, now_ms: int, seconds: str) -> str:
        choice, near = self._random.choice, self._near(zone, now_ms)
        minutes = choice(("*", "*", "*/1", f"{near.minute}", f"{near.minute},{near.minute // 2}"))
        hours = choice(("*", "*", f"{near.hour}", f"{near.hour},{(near.hour + 1) % 24}"))
        days = choice(("*", "*", "*", f"{near.day}", "1-31"))
        weekdays = choice(("*", "*", "*", f"{near.isoweekday() % 7}", "MON-FRI"))
        return f"{seconds} {minutes} {hours} {days} * {weekdays}"

    def _union(
        self, zone: str, now_ms: int, start_ms: int | None, left_out: str | None
    ) -> CronTable:
        """Parts that are due once a minute at most; some have an instant in common."""
        about = now_ms // 1000 % 60
        places = [(about + self._random.randint(1, 9)) % 60 for _ in range(3)]
        parts = [
            self._cron(zone, now_ms, str(self._random.choice(places)))
            for _ in range(self._random.choice((1, 2, 2, 3)))
        ]
        every_min = self._random.choice((None, 1, 2)) if len(parts) > 1 else 1
        return CronTable(tuple(parts), zone, start_ms, left_out, every_min)

    def _left_out(self, zone: str, now_ms: int) -> str:
        near = self._near(zone, now_ms)
        return self._random.choice(
            (f"{near.minute} * * * *", f"* {near.hour} * * *", f"* * {near.day} * *")
        )

    # -- RRULE -------------------------------------------------------------------------------------

    def _rule(self, zone: str, now_ms: int, left_out: str | None) -> RuleTable:
        random = self._random
        start_ms = now_ms - random.choice((0, 0, 3_000, 600_000)) + random.randint(-2_000, 3_000)
        long = random.random() < 0.4
        rules = [self._recurrence(zone, now_ms, long=long)]
        if random.random() < 0.5 or wall(zone, start_ms // 1000).fold:
            return RuleTable(tuple(rules), zone, start_ms, left_out)
        without: list[Recurrence] = []
        if random.random() < 0.5:
            # Another rule, or one that takes away: lines that take long to be joined are refused.
            other = self._recurrence(zone, now_ms, long=long, intervals=(2, 3, 5))
            random.choice((rules, without)).append(other)
        dates = [self._near(zone, now_ms) for _ in range(random.choice((0, 0, 1)))]
        not_on = [self._near(zone, now_ms) for _ in range(random.choice((0, 0, 1)))]
        return RuleTable(
            tuple(rules), zone, start_ms, left_out, lines=True, without=tuple(without),
            dates=tuple(dates), without_dates=tuple(not_on),
        )  # fmt: skip

    def _recurrence(
        self, zone: str, now_ms: int, *, long: bool, intervals: Sequence[int] = (1, 2, 3, 5)
    ) -> Recurrence:
        """A rule of one of all frequencies; `intervals` (seconds) divide a day."""
        random, near = self._random, self._near(zone, now_ms)
        hours = tuple(sorted({near.hour, (near.hour + random.choice((0, 1))) % 24}))
        minutes = tuple(sorted({near.minute, random.choice((near.minute, 59, 30))}))
        seconds = tuple(sorted(random.sample(range(60), random.choice((1, 6, 12)))))
        count = random.choice((None, None, 1, 4, 40))
        if long:
            freq = random.choice(("DAILY", "WEEKLY"))
            days = (near.weekday(),) if freq == "WEEKLY" else ()
            return Recurrence(freq, 1, days, hours, minutes, seconds, count)
        hours = hours if random.random() < 0.3 else ()
        freq = random.choice(("SECONDLY", "SECONDLY", "MINUTELY", "HOURLY"))
        if freq == "SECONDLY":
            return Recurrence(freq, random.choice(intervals), hours=hours, count=count)
        minutes = minutes if freq == "HOURLY" else ()
        return Recurrence(freq, 1, (), hours, minutes, seconds, count)


def by_seconds(random: Random, start_ms: int, zone: str = "UTC") -> Table:
    """Cron or RRULE with an instant every second, or every second or third one."""
    every = random.choice((1, 2, 3))
    if random.random() < 0.5:
        return CronTable((f"*/{every} * * * * *",), zone, start_ms)
    return RuleTable((Recurrence("SECONDLY", every),), zone, start_ms)


def _met(made: CronTable | RuleTable, from_ms: int, until_ms: int) -> Iterator[str]:
    """What a timetable is, and whether a clock is changed while it lasts."""
    if isinstance(made, RuleTable):
        yield "rrule of lines" if made.lines else "rrule"
    else:
        yield "union of crons" if len(made.parts) > 1 or made.every_min else "cron in a zone"
    if made.left_out is not None:
        yield "minutes left out"
    seconds = shown(made.zone, from_ms, until_ms)
    if any(each.ends_a_gap for each in seconds):
        yield "clock put forward"
    if any(each.wall < each.before for each in seconds):
        yield "clock put back"
