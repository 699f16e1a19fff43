"""A trigger that leaves out instants on days off: `on_holiday` SKIP, and where nothing is said.

Each instant that is left is one of the rule.  So the rule is asked for the instant after the
pending one, and where that lies on a day off, for the first one from the next business day on:

    every 6 hours       Thu 18:00   Fri 00:00 … Mon 18:00   Tue 00:00
    days off                        Fri  Sat  Sun  Mon
    after Thu 18:00                 one look at Fri 00:00, one at Tue 00:00: four days cost no more

The rhythm of an interval goes on over the days off: `anchor_ms` finds its last instant before a
business day without walking there.  Counting goes run by run of business days, so an outage of a
year costs some hundred looks and not one for each instant.

A search ends after `MOST_PASSED` runs that held an instant each, or after 50 years; then nothing is
left of the rule, and `why_over` says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from belfry.schedules.triggers.heeding import LONGEST_MS, MOST_PASSED, Heeding
from belfry.schedules.triggers.trigger import ZonedTrigger
from belfry.schedules.triggers.zones import END_S


class Skipping(Heeding):
    """Leaves out instants that lie on days off."""

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first on a business day."""
        return self._from(self._whole.first_ms(accepted_ms))

    def after_ms(self, nominal_ms: int) -> int | None:
        """The next on a business day."""
        found_ms = self._whole.after_ms(nominal_ms)
        if found_ms is None or not self._off.off(self._days.of(found_ms)):
            return found_ms
        return self._from(found_ms)

    @property
    def looks_a_day(self) -> int:
        """One at most, for it goes by runs of days."""
        return 1

    def next_ms(self, nominal_ms: int, ms: int) -> int | None:
        """As `after_ms`, in the rhythm of the pending one."""
        return self.after_ms(self._whole.anchor_ms(nominal_ms, ms))

    def _later(self, nominal_ms: int) -> int | None:
        return self._whole.after_ms(nominal_ms)

    def _from(self, found_ms: int | None) -> int | None:
        """The first from this instant on that is on a business day."""
        whole = self._whole
        end_ms = END_S * 1000 if found_ms is None else min(END_S * 1000, found_ms + LONGEST_MS)
        for _ in range(MOST_PASSED + 1):
            if found_ms is None or found_ms >= end_ms:
                return None
            day = self._days.of(found_ms)
            if not self._off.off(day):
                return found_ms
            begin_ms = self._days.begin_ms(self._off.business_from(day))
            found_ms = whole.after_ms(whole.anchor_ms(found_ms, begin_ms - 1))
        return None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """Counts run by run of business days."""
        whole = self._whole
        last_ms, count = whole.latest_ms(after_ms, until_ms)
        if not count:
            return after_ms, 0
        total, latest_ms = 0, after_ms
        for from_ms, end_ms in self._business(after_ms + 1, last_ms + 1):
            anchor_ms = whole.anchor_ms(after_ms, from_ms - 1)
            found_ms, count = whole.latest_ms(anchor_ms, end_ms - 1)
            if count:
                total, latest_ms = total + count, found_ms
        return latest_ms, total

    def _business(self, from_ms: int, end_ms: int) -> Iterator[tuple[int, int]]:
        """The runs of business days between two instants; ends exclusive."""
        while from_ms < end_ms:
            day = self._days.of(from_ms)
            if self._off.off(day):
                from_ms = self._days.begin_ms(self._off.business_from(day))
                continue
            off = self._off.off_from(day)
            until_ms = end_ms if off is None else min(end_ms, self._days.begin_ms(off))
            yield from_ms, until_ms
            from_ms = until_ms

    def before_ms(self, nominal_ms: int, accepted_ms: int) -> int:
        """The one before on a business day; `accepted_ms` if no such day is in reach."""
        whole = self._whole
        found_ms = whole.before_ms(nominal_ms, accepted_ms)
        for _ in range(MOST_PASSED):
            day = self._days.of(found_ms)
            if found_ms <= accepted_ms or not self._off.off(day):
                return found_ms
            until_ms = self._days.begin_ms(self._off.business_to(day) + 1) - 1
            found_ms, count = whole.latest_ms(whole.anchor_ms(nominal_ms, accepted_ms), until_ms)
            if not count:
                return accepted_ms
        return accepted_ms

    def anchor_ms(self, nominal_ms: int, ms: int) -> int:
        """As the trigger itself."""
        return self._whole.anchor_ms(nominal_ms, ms)

    def rederived_ms(self, nominal_ms: int, accepted_ms: int, over_ms: int) -> int | None:
        """As for all that has a zone; of an interval the next one takes the place."""
        if isinstance(self._whole.whole, ZonedTrigger):
            return super().rederived_ms(nominal_ms, accepted_ms, over_ms)
        return self._from(nominal_ms)
