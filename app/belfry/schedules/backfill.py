"""Backfill: the occurrences of a rule in a range of the past.

    range       [ from ─────────────────────────── until )
    rule     ●  ┆  ●      ●      ●      ●      ●   ┆  ●        ◆ what waits
                   └────────── fire now ───────┘              fires by itself

The pending occurrence of a schedule fires by itself and is no part of the range, overdue or not:
the next occurrence that has not fired bounds the range.  So does `start_at`, for the rule has no
occurrence before it.  An interval without `start_at` has its rhythm from its pending instant, also
backwards; one that moves has it from `start_at`, for its pending instant may have moved.

    EVERY hour, waits for 15:00      backfill from 09:30 to 13:00 (exclusive)
    after_ms 09:00 ─► instants 10:00 11:00 12:00

`after_ms` is 09:00 and not 09:29:59.999, because an interval answers only the instant an interval
after the one that it is asked about (`Trigger.anchor_ms`).

Here is which occurrences there are.  `engine/backfill.py` fires them, with ids of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from belfry.schedules.triggers import Trigger
from belfry.schedules.triggers.trigger import DAY_MS

# Occurrences that one job fires at most.
MOST_OCCURRENCES: Final = 100_000
# The same of one schedule whose instants a calendar moves.  These are counted by looking at each,
# in one step: so many take 40 to 50 ms, in which nothing else of the partition fires.
MOST_MOVED: Final = 5_000
# The budget of looks to count a range by days: half a second.  A rule without exceptions has one
# look a day, and centuries; one that leaves out every other minute has two years.
MOST_LOOKS: Final = 50_000


class PastRange(NamedTuple):
    """Occurrences of a rule after `after_ms` and before `end_ms`, both epoch milliseconds.

    `after_ms` is an instant that the trigger can be asked about, not always one of an occurrence.
    """

    trigger: Trigger
    after_ms: int
    end_ms: int

    @property
    def most(self) -> int:
        """How many of them a job may fire, if it fires nothing else."""
        return MOST_MOVED if self.trigger.looks_at_each else MOST_OCCURRENCES

    @property
    def looks(self) -> int:
        """The number of looks to count them by days, each at the cost of an instant."""
        days = (self.end_ms - self.after_ms) // DAY_MS if self.is_some else 0
        return min(days * self.trigger.looks_a_day, MOST_LOOKS)

    @property
    def is_too_long(self) -> bool:
        """Whether they are not counted, because that would take too long."""
        return self.looks == MOST_LOOKS

    def number(self, most: int) -> int:
        """How many there are; some number above `most` where there are more, or it is too long.

        Takes as long as counting days does, or for moving instants as looking at `most` of them.
        """
        if not self.is_some:
            return 0
        if self.is_too_long:
            return most + 1
        return self.trigger.count(self.after_ms, self.end_ms - 1, most)

    def last_ms(self) -> int:
        """The last one; there has to be one."""
        if self.trigger.looks_at_each or self.is_too_long:
            return self.trigger.before_ms(self.end_ms, self.after_ms)
        return self.trigger.latest_ms(self.after_ms, self.end_ms - 1)[0]

    def instants(self, after_ms: int | None = None) -> Iterator[int]:
        """The instants in their order, or those behind one of them."""
        found = self.trigger.after_ms(self.after_ms if after_ms is None else after_ms)
        while found is not None and found < self.end_ms:
            yield found
            found = self.trigger.after_ms(found)

    @property
    def is_some(self) -> bool:
        """Whether the range holds any instant."""
        return self.after_ms < self.end_ms - 1


def past_range(trigger: Trigger, nominal_ms: int, from_ms: int, until_ms: int) -> PastRange:
    """The past part of the range from `from_ms` to before `until_ms`.

    `nominal_ms` is the instant that the schedule waits for.
    """
    first_ms = max(from_ms, trigger.rule.start_at or from_ms)
    after_ms = trigger.anchor_ms(nominal_ms, first_ms - 1)
    return PastRange(trigger, after_ms, min(until_ms, nominal_ms))
