"""A trigger that moves instants on days off to a business day, at the same time on the wall.

A day off and the business day that takes its place lie in one *group*: a run of days off, with the
business day behind it or before it.  Groups follow one another, so the next instant is in this
group or the next one that has any.

    NEXT_BUSINESS_DAY      … │ Thu │ Fri │ Sat Sun Mon │ Tue │ …
    PREVIOUS_BUSINESS_DAY  … │ Thu │ Fri Sat Sun │ Mon │ Tue │ …

Of each day of a group the first instant is looked for that, once moved, lies behind the pending
one; the earliest of these is the answer.  Two that move to one instant are one.

    09:00 each day; Sat 26, Sun 27 and Mon 28 are off, NEXT_BUSINESS_DAY; what follows Fri 25 09:00?
    Sat 26 ─► Tue 29 09:00    Sun 27 ─► the same    Mon 28 ─► the same    so: Tue 29 09:00, once

`start_at` and `end_at` bound the instants of the rule, and where they move to.  An interval that
moves has its rhythm from `start_at`: a moved instant does not tell it any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from belfry.schedules.triggers.days import ZoneDays
from belfry.schedules.triggers.heeding import LONGEST_MS, Heeding
from belfry.schedules.triggers.trigger import DAY_MS, Trigger
from belfry.schedules.triggers.zones import END_S

# A moving schedule is due once a minute at most: so many instants may have to be looked at one by
# one.
LEAST_MS: Final = 60_000
LOOKED_AT: Final = 130
# Days about a change of the clock whose moved instants are remembered, by all triggers together.
MOST_MOVED: Final = 256
# How far back what came before is looked for, before all is.
BACK_MS: Final = (2 * DAY_MS, 40 * DAY_MS, 400 * DAY_MS)


class MovingTrigger(Heeding):
    """Moves instants that lie on days off to the next business day, or to the one before."""

    def __init__(self, whole: Trigger, packed: bytes, *, forward: bool) -> None:
        super().__init__(whole, packed)
        self._forward = forward
        self._start_ms = whole.rule.start_at
        self._end_ms = END_S * 1000 if whole.rule.end_at is None else whole.rule.end_at

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first after the acceptance, or from `start_at` on if that is later."""
        start_ms = self._start_ms
        from_ms = accepted_ms if start_ms is None else max(accepted_ms, start_ms - 1)
        return self.after_ms(from_ms)

    def next_ms(self, nominal_ms: int, ms: int) -> int | None:  # noqa: ARG002  # what skips
        """As `after_ms`: the rhythm is the rule's alone."""
        return self.after_ms(ms)

    def after_ms(self, nominal_ms: int) -> int | None:
        """The next: in the group of this instant, or in one behind it."""
        first, last, target = self._group(self._days.of(nominal_ms))
        found_ms = self._in_group(first, last, target, nominal_ms)
        passed_ms = nominal_ms + LONGEST_MS
        while found_ms is None:
            # What moves before `start_at`, or nothing of a group, is no instant.
            source_ms = self._source(self._days.begin_ms(last + 1) - 1)
            if source_ms is None or source_ms > passed_ms:
                return None
            first, last, target = self._group(self._days.of(source_ms))
            found_ms = self._in_group(first, last, target, nominal_ms)
        return found_ms if found_ms <= self._end_ms else None

    def _later(self, nominal_ms: int) -> int | None:
        return self._source(nominal_ms)

    def _group(self, day: int) -> tuple[int, int, int]:
        """First and last day of the group of a day, and its business day."""
        off = self._off
        if self._forward:
            target = off.business_from(day)
            return off.business_to(target - 1) + 1, target, target
        target = off.business_to(day)
        return target, off.business_from(target + 1) - 1, target

    def _source(self, ms: int) -> int | None:
        """The first instant of the rule after this one."""
        whole, start_ms = self._whole, self._start_ms
        if start_ms is None:
            return whole.after_ms(ms)
        if ms < start_ms:
            return whole.first_ms(start_ms - 1)
        return whole.after_ms(whole.anchor_ms(start_ms, ms))

    def _in_group(self, first: int, last: int, target: int, after_ms: int) -> int | None:
        """The first instant after this one that a group has, or None."""
        if self._start_ms is not None:
            after_ms = max(after_ms, self._start_ms - 1)
        found_ms: int | None = None
        for day in range(first, last + 1):
            each_ms = self._of_day(day, target, after_ms)
            if each_ms is not None and (found_ms is None or each_ms < found_ms):
                found_ms = each_ms
        return found_ms

    def _of_day(self, day: int, target: int, after_ms: int) -> int | None:
        """The first instant of a day, moved to another, that is after this one."""
        days = self._days
        begin_ms, end_ms = days.begin_ms(day), days.begin_ms(day + 1)
        if day == target:
            found_ms = self._source(max(after_ms, begin_ms - 1))
            return found_ms if found_ms is not None and found_ms < end_ms else None
        if days.is_plain(day) and days.is_plain(target):
            by_ms = days.begin_ms(target) - begin_ms
            found_ms = self._source(max(after_ms - by_ms, begin_ms - 1))
            return found_ms + by_ms if found_ms is not None and found_ms < end_ms else None
        moved = _moved(self._source, days, day, target)
        place = bisect_right(moved, after_ms)
        return moved[place] if place < len(moved) else None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """Counts where nothing has moved, and looks at each instant of the days between."""
        last_ms, total = after_ms, 0
        for found_ms, count in self._runs(after_ms, until_ms):
            last_ms, total = found_ms, total + count
        return last_ms, total

    def count(self, after_ms: int, until_ms: int, most: int) -> int:
        """As `latest_ms`, up to the run of instants with which there are more than `most`."""
        total = 0
        for _, count in self._runs(after_ms, until_ms):
            total += count
            if total > most:
                break
        return total

    @property
    def looks_at_each(self) -> bool:
        """So it does about days off."""
        return True

    def _runs(self, after_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
        """Single instants, and runs to which nothing moves: the last of each, and how many."""
        last_ms = after_ms
        while (found_ms := self.after_ms(last_ms)) is not None and found_ms <= until_ms:
            last_ms = found_ms
            yield found_ms, 1
            first, last, _ = self._group(self._days.of(found_ms))
            if first == last:
                end_ms = min(until_ms, self._end_ms, self._untouched_ms(first) - 1)
                anchor_ms = found_ms
                if self._start_ms is not None:
                    anchor_ms = self._whole.anchor_ms(self._start_ms, found_ms)
                more_ms, count = self._whole.latest_ms(anchor_ms, end_ms)
                if count:
                    last_ms = more_ms
                    yield more_ms, count

    def _untouched_ms(self, day: int) -> int:
        """The end of the business days from this one on to which nothing moves."""
        off = self._off.off_from(day)
        if off is None:
            return END_S * 1000
        return self._days.begin_ms(off if self._forward else off - 1)

    def before_ms(self, nominal_ms: int, accepted_ms: int) -> int:
        """The one before; `accepted_ms` where that is not after the acceptance."""
        for back_ms in BACK_MS:
            if nominal_ms - back_ms <= accepted_ms:
                break
            found_ms, count = self.latest_ms(nominal_ms - back_ms, nominal_ms - 1)
            if count:
                return found_ms
        return self.latest_ms(accepted_ms, nominal_ms - 1)[0]


@lru_cache(maxsize=MOST_MOVED)
def _moved(
    source: Callable[[int], int | None], days: ZoneDays, day: int, target: int
) -> tuple[int, ...]:
    """The instants of a day, each moved to another, in their new order.

    A change of the clock may change the order, so each has to be looked at: of two instants an
    hour apart the gap of another day may make one.  The answer is remembered, for a walk through
    the day asks once for each of its instants.
    """
    end_ms, found = days.begin_ms(day + 1), list[int]()
    found_ms = source(days.begin_ms(day) - 1)
    while found_ms is not None and found_ms < end_ms:
        found.append(days.moved_ms(found_ms, day, target))
        found_ms = source(found_ms)
    return tuple(sorted(found))


def moves_too_often(whole: Trigger, now_ms: int) -> bool:
    """Whether a trigger is due more often than a moving one may be."""
    first_ms = whole.first_ms(now_ms)
    for _ in range(LOOKED_AT):
        if first_ms is None:
            return False
        next_ms = whole.after_ms(first_ms)
        if next_ms is not None and next_ms - first_ms < LEAST_MS:
            return True
        first_ms = next_ms
    return False
