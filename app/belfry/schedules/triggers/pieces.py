"""Days on the wall between two instants, cut where a clock was changed: how instants are counted.

    Paris      2026-03-28    29, 00:00 ── 02:00 │ 03:00 ── 24:00    2026-03-30
    pieces     alike         cut                  cut               alike

Days that are alike have the same times as other days of their pattern (`Trigger.day_pattern`), so
of each pattern one is counted, and a year is a few counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from belfry.schedules.civil import DAY_S
from belfry.schedules.triggers.zones import Zone

DAY_MS: Final = DAY_S * 1000


class Piece(NamedTuple):
    """A day on the wall, or a part of it, without a change of the clock; `end_ms` is exclusive.

    `from_ms` and `end_ms` are epoch milliseconds, `day` counts from 1970-01-01 on the wall, and
    `offset` is in seconds.  `alike` pieces are whole days that no change of the clock touches.
    """

    from_ms: int
    end_ms: int
    day: int
    offset: int
    alike: bool


def pieces(place: Zone, from_ms: int, end_ms: int) -> Iterator[Piece]:
    """The days on the wall of a zone between two instants, one after another."""
    while from_ms < end_ms:
        stretch = place.at(from_ms // 1000)
        wall = from_ms // 1000 + stretch.offset
        day = wall // DAY_S
        end = min(end_ms, stretch.end * 1000, ((day + 1) * DAY_S - stretch.offset) * 1000)
        # Times that a gap swallowed fire at the edge of a stretch, and none fires a second time.
        untouched = from_ms > stretch.start * 1000 and wall >= stretch.fresh
        yield Piece(from_ms, end, day, stretch.offset, untouched and end - from_ms == DAY_MS)
        from_ms = end
