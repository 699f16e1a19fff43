"""Time zones as stretches of constant offset, from the `tzdata` wheel alone.

A machine's own zone files are never read: two workers of one cluster have to agree on every
instant, and a new version of the data has to be a new version of a package, which `VERSION` tells.

    offset   +01:00            │ +02:00                 │ +01:00
    UTC      … ───────────────►│───────────────────────►│──────────► …
    wall              … 02:00  │ 03:00        … 03:00   │ 02:00 …
                             gap: 02:00-03:00          fold: 02:00-03:00 comes again

`Zone.at` finds the stretch around an instant.  Stretches are found by sampling offsets, a chunk of
about a year at a time, and kept; they are cut at the edges of chunks.

Paris from the autumn of 2026 on, as `at` gives it:

    start    2026-10-25T01:00Z       the wall shows 02:00, which it has shown an hour ago
    end      2027-03-28T01:00Z       exclusive; then the clock goes forward
    offset   3600                    seconds ahead of UTC
    fresh    03:00 of that night     as a wall second; below it the wall repeats itself

A sample is taken each six hours, so two changes of the clock within six hours would not be told
apart; no zone has had them.  With stretches, a search by days on the wall needs
no conversion for each candidate, which is what makes a trigger cheap.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import tzdata

from belfry.schedules.rejections import Rejection

VERSION: Final[str] = tzdata.IANA_VERSION
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CHUNK_BITS: Final = 25
# From this second on nothing is due: Python's calendar ends with the year 9999, two chunks later.
END_S: Final = 7549 << _CHUNK_BITS
_SAMPLE_S: Final = 21_600
# How far a chunk looks back for a change of the clock whose repeated hour reaches into it.
_LOOK_BACK_S: Final = 2 * 86_400


class UnknownZone(ValueError):
    """A time zone that does not exist; the message says which ones do."""


class Stretch(NamedTuple):
    """Seconds `start` to `end` (exclusive) of UTC, in which the wall clock is UTC + `offset`.

    Wall seconds below `fresh` were shown before, by the stretch to the left.
    """

    start: int
    end: int
    offset: int
    fresh: int


class Zone:
    """The offsets of one time zone; `at` is all that triggers ask.

    Threads share a zone: chunks are computed anew or found, and two that compute one find the same.
    """

    def __init__(self, zone: tzinfo) -> None:
        self.tzinfo = zone
        self._chunks: dict[int, list[Stretch]] = {}

    def at(self, second: int) -> Stretch:
        """The stretch that holds this second of UTC."""
        chunk = second >> _CHUNK_BITS
        stretches = self._chunks.get(chunk)
        if stretches is None:
            stretches = self._chunks[chunk] = self._stretches(chunk)
        for stretch in stretches:
            if second < stretch.end:
                return stretch
        raise AssertionError("the stretches of a chunk end with it")

    def offset(self, second: int) -> int:
        """Seconds that the wall clock is ahead of UTC at this second of UTC."""
        found = (_EPOCH + timedelta(seconds=second)).astimezone(self.tzinfo).utcoffset()
        assert found is not None
        return found.days * 86_400 + found.seconds

    def _stretches(self, chunk: int) -> list[Stretch]:
        low = chunk << _CHUNK_BITS
        high = low + (1 << _CHUNK_BITS)
        start, offset = low - _LOOK_BACK_S, self.offset(low - _LOOK_BACK_S)
        fresh = start + offset
        found: list[Stretch] = []
        for sample in range(start + _SAMPLE_S, high + _SAMPLE_S, _SAMPLE_S):
            after = self.offset(sample)
            if after == offset:
                continue
            turn = self._transition(sample - _SAMPLE_S, sample)
            found.append(Stretch(start, turn, offset, fresh))
            fresh = turn + max(offset, after)
            start, offset = turn, after
        found.append(Stretch(start, high, offset, fresh))
        return [
            Stretch(max(each.start, low), min(each.end, high), each.offset, each.fresh)
            for each in found
            if each.end > low and each.start < high
        ]

    def _transition(self, before: int, after: int) -> int:
        """First second of the offset that holds at `after` and not at `before`."""
        old = self.offset(before)
        while after - before > 1:
            middle = (before + after) // 2
            if self.offset(middle) == old:
                before = middle
            else:
                after = middle
        return after


@cache
def names() -> frozenset[str]:
    """All IANA names, links included."""
    return frozenset((resources.files(tzdata) / "zones").read_text("utf-8").split())


@lru_cache(maxsize=1024)
def zone(name: str) -> Zone:
    """The zone of an IANA name; raises `UnknownZone`."""
    if name not in names():
        raise UnknownZone(_unknown(name))
    place = resources.files(tzdata).joinpath("zoneinfo", *name.split("/"))
    with place.open("rb") as file:
        return Zone(ZoneInfo.from_file(file, key=name))


@lru_cache(maxsize=1024)
def _unknown(name: str) -> str:
    by_lower = {each.lower(): each for each in names()}
    near = get_close_matches(name[:100].lower(), by_lower, n=1)
    guess = f" Did you mean {by_lower[near[0]]}?" if near else ""
    return (
        f"{name[:100]!r} is no IANA time zone of release {VERSION}: give a name such as"
        f" Europe/Paris or UTC, in that spelling; an offset such as +01:00 is none.{guess}"
    )


def zone_problem(name: str | None) -> Rejection | None:
    """Why a request cannot be read in this time zone, or None; no name is UTC."""
    try:
        zone(name or "UTC")
    except UnknownZone as unknown:
        return Rejection("bad_timezone", f"timezone {unknown}")
    return None
