"""Whether this version can fire a schedule: whether it understands all of its pending record.

A later release may have written a kind, a flag or a field of a rule that this one does not know,
and newer time zone data may have a zone that this worker's lacks.  To fire such a schedule would be
a guess.  It is noticed while the changelog is read, before an owner is fenced that can fire it; and
where nobody else can, the schedule is held back by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import error as struct_error
from typing import Final

from belfry.schedules.rule import KINDS, ONE_SHOT, READS, RECURRING, without_targets
from belfry.schedules.triggers import trigger_of, zones
from belfry.store import keys
from belfry.store.ordered_map import OrderedMap
from belfry.store.records import FORMAT, PAUSED, PENDING, decode_row

TENANT: Final = 10
SCHEDULE_ID: Final = 11
RULE: Final = 16
_WAITS: Final = bytes((FORMAT, PENDING))
# Kinds and flags of records that fire once; without a rule nothing of them can be unknown.
ONE_SHOT_HEADS: Final = frozenset(
    bytes((KINDS.index(kind), flags)) for kind in ONE_SHOT for flags in (0, PAUSED)
)
_NO_RULE: Final = bytes(4)
_RULE_SIZE: Final = slice(80, 84)
# What a rule raises that is not understood, or damaged.
UNREADABLE: Final = (ValueError, IndexError, struct_error, AssertionError)
# Where pending records lie in a local store: all but the first by their tenant or name.
_PENDING_ROWS: Final = (
    (keys.TIMELINE_PREFIX, keys.TIMELINE_END),
    (keys.BACKLOG_PREFIX, keys.CATCH_UP_END),
    (keys.GATED_PREFIX, keys.GATED_END),
    (keys.PAUSED_PREFIX, keys.PAUSED_END),
)


def reads() -> bytes:
    """What this process can read, for a local store to be known as looked through by its like."""
    return f"{READS} {PAUSED} {zones.VERSION} {len(zones.names())}".encode()


def unreadable_in(rows: OrderedMap) -> dict[bytes, str]:
    """Schedules of a local store that cannot be fired here: changelog key, and why."""
    return {
        b"%b/%b" % (row[TENANT], row[SCHEDULE_ID]): why
        for start, end in _PENDING_ROWS
        for _, record in rows.scan(start, end)
        if (why := why_unreadable(record)) and (row := decode_row(record))
    }


def why_unreadable(record: bytes) -> str:
    """Why this version cannot fire the schedule in a pending record; empty where it can."""
    if record[2:4] in ONE_SHOT_HEADS and record[_RULE_SIZE] == _NO_RULE:
        return ""
    kind, flags = record[2], record[3]
    if kind >= len(KINDS):
        return f"its kind {kind} is of a later release: run that one"
    if flags & ~PAUSED:
        return f"its flags {flags:08b} are of a later release: run that one"
    rule = decode_row(record)[RULE]
    if not rule and KINDS[kind] in RECURRING:
        return "it recurs, and its record has no rule"
    return why_unreadable_rule(rule)


def why_unreadable_rule(rule: bytes) -> str:
    """Why this version cannot follow a rule as it lies in a pending record; empty: it can."""
    return _why(without_targets(rule)) if rule else ""


@lru_cache(maxsize=65_536)
def _why(rule: bytes) -> str:
    try:
        trigger_of(rule)
    except UNREADABLE as error:
        return str(error) or type(error).__name__
    return ""


def note_unreadable(found: dict[bytes, str], changes: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Keep up with changes of the changelog: which schedules cannot be fired, and why."""
    for key, value in changes:
        if value is not None and value[:2] == _WAITS and (why := why_unreadable(value)):
            found[key] = why
        elif found:
            found.pop(key, None)
