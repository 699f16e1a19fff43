"""How many occurrences a MISSED event tells of: in its reason, which is written and read here.

    62 occurrences did not fire, from 2026-12-01T09:00:00.000Z on: the one of … fires for them

The schema has no field for the number, and the sentence tells it to people.  One place writes and
reads it, so that statistics count occurrences and not events: a year of seconds is one event.
"""

from __future__ import annotations

import re
from typing import Final

from belfry.schedules.instants import format_instant
from belfry.wire.lifecycle_heads import reason_in

# Others may write to the topic: no number of theirs makes a sum larger than 64 bits.
MOST: Final = 10_000_000_000
_NUMBER: Final = re.compile(rb"([1-9][0-9]{0,18}) occurrences? did not fire, from ")


def missed_reason(number: int, first_ms: int, end: str) -> str:
    """The reason for so many occurrences, 1 or more; `end` says how far they reach, in words.

    `first_ms` is the nominal instant of the first one, in epoch milliseconds.
    """
    several = "occurrence" if number == 1 else "occurrences"
    return f"{number} {several} did not fire, from {format_instant(first_ms)} {end}"


def missed_in(body: bytes) -> int:
    """The number that a MISSED event tells of, `MOST` at most; 1 where its reason names none.

    `body` is that of an event, without a frame. Bytes that are none count as 1.
    """
    found = _NUMBER.match(reason_in(body) or b"")
    return 1 if found is None else min(int(found[1]), MOST)
