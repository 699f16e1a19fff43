"""Days on the wall of a zone: where each begins, and on which an instant lies.

A day begins when the wall first shows it.  So days lie one after another even where a clock goes
back over midnight, and one that a zone leaves out (Samoa, 2011-12-30) begins and ends at once.

    Pacific/Apia    2011-12-29 begins at 2011-12-29T10:00Z
                    2011-12-30 begins at 2011-12-30T10:00Z, and so does
                    2011-12-31

`heeding` and `moving` ask this, for a day off is a day on the wall, and instants that move keep
their time on the wall: 02:30 in Paris on 28 March 2026, moved to the 29th, is 01:00Z, where 02:30
does not exist and the gap ends; moved to the 30th it is 00:30Z.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.civil import DAY_S
from belfry.schedules.triggers.zones import Zone

MEMO_SIZE: Final = 64


class ZoneDays:
    """The days of one zone, counted from 1970-01-01."""

    def __init__(self, place: Zone) -> None:
        self._zone = place
        self._begins: dict[int, int] = {}

    def of(self, ms: int) -> int:
        """The day on which an instant lies."""
        second = ms // 1000
        stretch = self._zone.at(second)
        return max(second + stretch.offset, stretch.fresh - 1) // DAY_S

    def begin_ms(self, day: int) -> int:
        """The first millisecond of a day."""
        found = self._begins.get(day)
        if found is None:
            if len(self._begins) >= MEMO_SIZE:
                self._begins.clear()
            found = self._begins[day] = self._first_second(day * DAY_S) * 1000
        return found

    def is_plain(self, day: int) -> bool:
        """Whether no clock changes on a day, nor where it begins."""
        begin = self.begin_ms(day) // 1000
        stretch = self._zone.at(begin)
        whole = begin + stretch.offset == day * DAY_S
        return whole and stretch.start < begin and begin + DAY_S < stretch.end

    def moved_ms(self, ms: int, day: int, to_day: int) -> int:
        """The same time on the wall as that of an instant of one day, on another day.

        A time that a gap swallows there is the gap's end; one that comes twice comes first.
        """
        second, rest_ms = divmod(ms, 1000)
        wall = second + self._zone.at(second).offset
        since = max(0, wall - day * DAY_S)
        return self._first_second(to_day * DAY_S + since) * 1000 + rest_ms

    def _first_second(self, wall: int) -> int:
        """The first second of UTC at which the wall shows this second, or a later one."""
        stretch = self._zone.at(wall - DAY_S)
        while True:
            found = wall - stretch.offset
            if found < stretch.end:
                return max(found, stretch.start)
            stretch = self._zone.at(stretch.end)
