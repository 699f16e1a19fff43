"""The last fires of a schedule that recurs, kept behind its pending record.

    pending record │ fire  fire  …  fire │ number
                   ◄── at most ten × 16 ─►◄── 1 ──►     only with flag `KEPT_FIRES`
    pending record │ tally  fire  …  fire │ number      with flag `TALLY` as well

Each fire that has one after it writes its row anyway, so ten of them in that row cost no record of
their own, and they go where the schedule goes: to another owner, to a standby.  They are no part of
the definition (`pending.same_definition`).  A row without the flag has none.

The *tally* counts failures since the last change of the rule: fires that were more than a second
late, and occurrences that did not fire.  How many fired is the number of the occurrence, which each
row has.  So a schedule that is on time has no tally, and writes not a byte more; the share of its
fires that were in time is known at every lifecycle level all the same.  Where no fires were kept at
first, a tally says from which occurrence on they are.

    occurrence 1 200, no tally                  1 200 fired, each within a second
    occurrence 1 200, tally 2 late, 3 missed    1 198 of 1 200 within a second, 1 200 of 1 203 fired
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as WrongSize  # noqa: N812  # the module's own name says nothing here
from typing import Final, NamedTuple

# How many fires are kept.
MOST_KEPT: Final = 10

# Nominal instant, the lower 16 bits of the version, late by, stands for
_FIRE: Final = Struct(">qHIH")
_pack: Final = _FIRE.pack
_SIZE: Final = _FIRE.size
_VERSIONS: Final = 1 << 16
_MOST_LATE: Final = (1 << 32) - 1
_MOST_MISSED: Final = (1 << 16) - 1

# The bytes behind a definition that has all of them: its size, all but the oldest, the number.
SIZE_OF_FULL: Final = MOST_KEPT * _SIZE + 1
NEWER_OF_FULL: Final = slice(_SIZE - SIZE_OF_FULL, -1)
NUMBER_OF_FULL: Final = bytes((MOST_KEPT,))


# Later by more than that is counted.
IN_TIME_MS: Final = 1_000
# Fires that were late, occurrences that did not fire, the latest fire (ms late), and the occurrence
# from which on all of that is counted.  It is as long as a fire.
_TALLY: Final = Struct(">IIII")


class Tally(NamedTuple):
    """Failures among the occurrences of a schedule.

    It is counted from the occurrence `first` on.  Numbers beyond 2³² - 1 are told as that.
    """

    late: int
    missed: int
    latest_ms: int
    first: int

    def counted(self, late_ms: int, missed: int) -> Tally:
        """With a fire that was so late, or none (0), and with occurrences that did not fire."""
        is_late = late_ms > IN_TIME_MS
        found = (
            self.late + is_late,
            self.missed + missed,
            max(self.latest_ms, late_ms if is_late else 0),
            self.first,
        )
        return Tally(*(min(each, _MOST_LATE) for each in found))


NO_TALLY: Final = Tally(0, 0, 0, 0)


class KeptFire(NamedTuple):
    """A fire: its instant by the rule, how late it was (ms), and how many others it stood for.

    More than 49 days late, and more than 65 535 others, are told as these.
    """

    nominal_ms: int
    version: int
    late_ms: int
    missed: int


def tally_of_fires(fires: Sequence[KeptFire], occurrence: int) -> Tally:
    """The tally of a schedule without one, by the last fires of its rule.

    Where one of them was late or stood for others, the row was written by a release that did not
    count them: how the fires before them went is not known, so counting begins with these.
    """
    tally = NO_TALLY._replace(first=occurrence - len(fires))
    for each in fires:
        tally = tally.counted(each.late_ms, each.missed)
    return tally if tally.late or tally.missed else NO_TALLY


def packed_fire(nominal_ms: int, version: int, late_ms: int, missed: int) -> bytes:
    """A fire at rest."""
    try:
        return _pack(nominal_ms, version & 0xFFFF, late_ms, missed)
    except WrongSize:
        most = max(0, min(late_ms, _MOST_LATE)), max(0, min(missed, _MOST_MISSED))
        return _pack(nominal_ms, version & 0xFFFF, *most)


def size_behind(record: bytes) -> int:
    """How many bytes lie behind the definition of a record that has fires."""
    return record[-1] * _SIZE + 1


def with_one_more(record: bytes, start: int, fire: bytes) -> bytes:
    """The record from `start` on with one more fire at its end; it has to have fewer than ten."""
    return b"".join((record[start:-1], fire, bytes((record[-1] + 1,))))


def with_one_more_behind_tally(record: bytes, start: int, fire: bytes) -> bytes:
    """The same of a record that has a tally; where it has ten fires the oldest one goes."""
    if record[-1] <= MOST_KEPT:
        return with_one_more(record, start, fire)
    oldest = len(record) - SIZE_OF_FULL
    return b"".join((record[start:oldest], record[oldest + _SIZE : -1], fire, record[-1:]))


def tally_behind(record: bytes) -> Tally:
    """The tally of a record that has one."""
    return Tally(*_TALLY.unpack_from(record, len(record) - size_behind(record)))


def with_tally(record: bytes, tally: Tally, *, instead: bool) -> bytes:
    """A record that has something behind it, with a tally before that, or `instead` of its own."""
    at = len(record) - size_behind(record)
    rest = record[at + (_SIZE if instead else 0) : -1]
    number = record[-1] + (0 if instead else 1)
    return b"".join((record[:at], _TALLY.pack(*tally), rest, bytes((number,))))


def without_tally(behind: bytes) -> bytes:
    """The bytes behind a definition, without the tally with which they begin."""
    return behind[_SIZE:-1] + bytes((behind[-1] - 1,))


def fires_behind(record: bytes, version: int, *, tally: bool) -> list[KeptFire]:
    """The fires of a record that has some, the oldest first; `version` is that of its schedule.

    `tally` says that one lies before them.
    """
    found: list[KeptFire] = []
    begin = len(record) - size_behind(record) + (_SIZE if tally else 0)
    for nominal_ms, low, late_ms, missed in _FIRE.iter_unpack(record[begin:-1]):
        # A fire is of no later version than its schedule.
        older = (version - low) % _VERSIONS
        found.append(KeptFire(nominal_ms, version - older, late_ms, missed))
    return found
