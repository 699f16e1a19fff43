"""The last fires of a schedule that recurs, kept behind its pending record.

    pending record │ fire  fire  …  fire │ number
                   ◄── at most ten × 16 ─►◄── 1 ──►     only with flag `KEPT_FIRES`

Each fire that has one after it writes its row anyway, so ten of them in that row cost no record of
their own, and they go where the schedule goes: to another owner, to a standby.  They are no part
of what was asked for (`pending.same_definition`).  A row without the flag has none.
"""

from __future__ import annotations

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

# What lies behind a definition that has all of them: its size, all but the oldest, the number.
SIZE_OF_FULL: Final = MOST_KEPT * _SIZE + 1
NEWER_OF_FULL: Final = slice(_SIZE - SIZE_OF_FULL, -1)
NUMBER_OF_FULL: Final = bytes((MOST_KEPT,))


class KeptFire(NamedTuple):
    """A fire: its instant by the rule, how late it was (ms), and how many others it stood for.

    More than 49 days late, and more than 65 535 others, are told as these.
    """

    nominal_ms: int
    version: int
    late_ms: int
    missed: int


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


def fires_behind(record: bytes, version: int) -> list[KeptFire]:
    """The fires of a record that has some, the oldest first; `version` is that of its schedule."""
    found: list[KeptFire] = []
    for nominal_ms, low, late_ms, missed in _FIRE.iter_unpack(record[-size_behind(record) : -1]):
        # A fire is of no later version than its schedule.
        older = (version - low) % _VERSIONS
        found.append(KeptFire(nominal_ms, version - older, late_ms, missed))
    return found
