"""Where a schedule lies that waits for an acknowledgement: behind a lock of the awaited one.

    after the acknowledgement of x     h | tenant \\0 | d | 1 | x | due | seq
    when all of group g are            h | tenant \\0 | e | 1 | g | due | seq

So all that wait for one are found in one short scan, and nothing is kept beside the schedules
themselves.  `due` is the instant at which they fire without an acknowledgement
(`triggers/acknowledged.py`).  The letters are frozen.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import Final

from belfry.schedules.rule import Rule, decode_rule
from belfry.schedules.triggers.acknowledged import AFTER_ACK, AFTER_GROUP
from belfry.store.layout.pending import decode_pending

OF_SCHEDULE: Final = b"d"
OF_GROUP: Final = b"e"
# The letters of locks that are not ack locks: rows behind them wait to be due at all.
DEPENDENCES: Final = (OF_SCHEDULE, OF_GROUP)
_LETTERS: Final = {AFTER_ACK.name: OF_SCHEDULE, AFTER_GROUP.name: OF_GROUP}


def dependence_in(rule: Rule) -> bytes:
    """The lock that a rule's schedule waits behind; empty where it waits for nobody."""
    letter = _LETTERS.get(rule.kind)
    return b"" if letter is None or rule.awaited is None else letter + rule.awaited.encode()


def dependence_of(record: bytes) -> bytes:
    """The same of a pending record; empty as well for one of a later release."""
    try:
        return dependence_in(decode_rule(decode_pending(record).extra))
    except (ValueError, IndexError, struct_error):
        return b""
