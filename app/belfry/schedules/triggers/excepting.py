"""A recurring trigger without the minutes that `except_cron` leaves out.

    EVERY 15 minutes   23:30  23:45  00:00  00:15  …  05:45  06:00  06:15
    except * 0-5 …                   ███████████████████████
    fires                ●      ●                              ●      ●

The rhythm goes on beneath: 06:00 fires because it is a quarter of an hour after 05:45.  An instant
that is left out is no occurrence: it has no number, is never late, and `max_fires` does not count
it.

To find the next instant, a whole run of minutes that are left out is passed over at once.  After
`MOST_PASSED` such runs in a row, each of which held an instant, or `LONGEST_MS`, nothing more is
looked for: the door refuses a rule whose first instant is not found, and a schedule that comes to
such a place ends and says so (`why_over`).  The result of a long search is remembered: all
schedules of a rule ask for the same, and who tells why one is over asks once more.

The search for the next instant, with the picture above, after 23:45:

    whole.after_ms(23:45)       00:00      left out: its run ends at 06:00
    whole.anchor_ms(…, 05:59)   05:45      the last of the rhythm before that
    whole.after_ms(05:45)       06:00      free: the answer, after two questions and not 25

Counting works by pieces of days (`pieces`): all instants of a piece, less those in its
runs.  Days of one pattern are counted once, so a year costs little more than its changes of the
clock.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.triggers.left_out import LeftOut
from belfry.schedules.triggers.pieces import Piece, pieces
from belfry.schedules.triggers.trigger import DAY_MS, Trigger, ZonedTrigger
from belfry.schedules.triggers.zones import END_S, zone

MOST_PASSED: Final = 4_000
LONGEST_MS: Final = 50 * 366 * DAY_MS
# Counts of days that are alike.
MEMO_SIZE: Final = 64
# A search that passed so many runs is a long one; and so many of a rule are remembered.
LONG: Final = 50
LONG_ONES: Final = 8


class Excepting(ZonedTrigger):
    """The instants of another trigger that are not left out."""

    def __init__(self, whole: Trigger) -> None:
        super().__init__(whole.rule)
        assert whole.rule.except_cron is not None, "without it there is nothing to leave out"
        self._whole = whole
        self._zone = zone(whole.zone_name)
        self._left_out = LeftOut(whole.rule.except_cron, self._zone)
        self._text = self._left_out.expression.text
        self._counted: dict[tuple[bool, object], int] = {}
        self._long: dict[int, int | None] = {}

    @property
    def whole(self) -> Trigger:
        """The trigger with all of its instants."""
        return self._whole

    @property
    def zone_name(self) -> str:
        """The zone of the rule, which both are read in."""
        return self._whole.zone_name

    @property
    def looks_a_day(self) -> int:
        """By the runs of minutes that are left out, ten of which take as long as an instant."""
        return self._whole.looks_a_day + 1 + len(self._left_out.runs) // 10

    def shows(self, wall: int) -> bool:
        """Whether this second on the wall is not left out."""
        return not self._left_out.holds_wall(wall)

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first that is not left out."""
        return self._from(self._whole.first_ms(accepted_ms))

    def after_ms(self, nominal_ms: int) -> int | None:
        """The next that is not left out."""
        return self._from(self._whole.after_ms(nominal_ms))

    def _from(self, from_ms: int | None) -> int | None:
        """The first from this instant on that is not left out."""
        if from_ms is None or from_ms >= END_S * 1000:
            return None
        known = self._long
        if from_ms in known:
            return known[from_ms]
        found_ms, passed = self._search(from_ms)
        if passed >= LONG:
            # Other threads may look meanwhile, so it is not changed but replaced.
            self._long = {**(known if len(known) < LONG_ONES else {}), from_ms: found_ms}
        return found_ms

    def _search(self, found_ms: int) -> tuple[int | None, int]:
        """The same by a look at each run; and how many runs were passed over."""
        whole, left_out = self._whole, self._left_out
        end_ms = min(END_S * 1000, found_ms + LONGEST_MS)
        for passed in range(MOST_PASSED + 1):
            if not left_out.holds(found_ms):
                return found_ms, passed
            free_ms = left_out.free_ms(found_ms)
            if free_ms is None:
                return None, passed
            after_ms = whole.after_ms(whole.anchor_ms(found_ms, free_ms - 1))
            if after_ms is None or after_ms >= end_ms:
                return None, passed
            found_ms = after_ms
        return None, MOST_PASSED

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """Counts day by day; of days that are alike only the first one is counted."""
        last_ms, count = self._whole.latest_ms(after_ms, until_ms)
        if not count:
            return after_ms, 0
        total, latest = 0, None
        for piece in pieces(self._zone, after_ms + 1, last_ms + 1):
            free = self._free_in(piece, after_ms)
            if free:
                total, latest = total + free, piece
        return (after_ms if latest is None else self._last_in(latest, after_ms)), total

    def _free_in(self, piece: Piece, nominal_ms: int) -> int:
        """How many instants of a piece are not left out."""
        pattern = None
        if piece.alike:
            pattern = self._whole.day_pattern(nominal_ms, piece.from_ms, piece.day)
        if pattern is None:
            return self._count_free(piece, nominal_ms)
        key = (self._left_out.expression.on_day(piece.day), pattern)
        found = self._counted.get(key)
        if found is None:
            if len(self._counted) >= MEMO_SIZE:
                self._counted.clear()
            found = self._counted[key] = self._count_free(piece, nominal_ms)
        return found

    def _count_free(self, piece: Piece, nominal_ms: int) -> int:
        count = self._count(nominal_ms, piece.from_ms, piece.end_ms)
        if count:
            for from_ms, end_ms in self._left_out.within(piece):
                count -= self._count(nominal_ms, from_ms, end_ms)
        return count

    def _count(self, nominal_ms: int, from_ms: int, end_ms: int) -> int:
        """How many instants there are from `from_ms` to `end_ms` (exclusive), left out or not."""
        anchor_ms = self._whole.anchor_ms(nominal_ms, from_ms - 1)
        return self._whole.latest_ms(anchor_ms, end_ms - 1)[1]

    def _last_in(self, piece: Piece, nominal_ms: int) -> int:
        """The last instant of a piece that is not left out; there has to be one."""
        anchor_ms = self._whole.anchor_ms(nominal_ms, piece.from_ms - 1)
        found_ms = self._whole.latest_ms(anchor_ms, piece.end_ms - 1)[0]
        while self._left_out.holds(found_ms):
            until_ms = self._left_out.begin_ms(found_ms) - 1
            found_ms = self._whole.latest_ms(anchor_ms, until_ms)[0]
        return found_ms

    def before_ms(self, nominal_ms: int, accepted_ms: int) -> int:
        """The one before that is not left out; `accepted_ms` if no such instant is in reach."""
        whole = self._whole
        found_ms = whole.before_ms(nominal_ms, accepted_ms)
        for _ in range(MOST_PASSED):
            if found_ms <= accepted_ms or not self._left_out.holds(found_ms):
                return found_ms
            anchor_ms = whole.anchor_ms(nominal_ms, accepted_ms)
            until_ms = self._left_out.begin_ms(found_ms) - 1
            found_ms, count = whole.latest_ms(anchor_ms, until_ms)
            if not count:
                return accepted_ms
        return accepted_ms

    def anchor_ms(self, nominal_ms: int, ms: int) -> int:
        """As the trigger itself, which is asked about instants that are left out, too."""
        return self._whole.anchor_ms(nominal_ms, ms)

    def rederived_ms(self, nominal_ms: int, accepted_ms: int, over_ms: int) -> int | None:
        """As for all that has a zone; of an interval the next one takes the place."""
        if isinstance(self._whole, ZonedTrigger):
            return super().rederived_ms(nominal_ms, accepted_ms, over_ms)
        return self._from(nominal_ms)

    def why_over(self, nominal_ms: int) -> str:
        """That all which follows is left out, where something does."""
        if self._whole.after_ms(nominal_ms) is None or self.after_ms(nominal_ms) is not None:
            return ""
        return (
            f"except_cron {self._text!r} leaves out all that follows, or more than is looked"
            f" through: {MOST_PASSED} runs of instants in a row, or 50 years."
        )

    @property
    def cadence(self) -> tuple[object, ...]:
        """That of the trigger, with the expression that leaves minutes out, and its zone."""
        return (*self._whole.cadence, self._text, self.zone_name)
