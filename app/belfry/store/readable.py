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

from belfry.schedules.rule import KINDS, READS, RECURRING, without_targets
from belfry.schedules.triggers import trigger_of, zones
from belfry.store.committed import Committed
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import FLAGS, fires_once, kind_and_flags, with_a_rule

# The errors of a rule that is not understood, or damaged.
UNREADABLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct_error,
)


def reads() -> bytes:
    """The formats that this process can read, noted in stores that it has looked through."""
    return f"{READS} {FLAGS} {zones.VERSION} {len(zones.names())}".encode()


def unreadable_in(store: Committed) -> dict[bytes, str]:
    """Schedules of a local store that cannot be fired here: changelog key, and why."""
    return {
        decode_pending(record).name: why
        for record in store.all_pending()
        if (why := why_unreadable(record))
    }


def why_unreadable(record: bytes) -> str:
    """Why this version cannot fire the schedule in a pending record; empty where it can."""
    if fires_once(record):
        return ""
    kind, flags = kind_and_flags(record)
    if kind >= len(KINDS):
        return f"its kind {kind} is of a later release: run that one"
    if flags & ~FLAGS:
        return f"its flags {flags:08b} are of a later release: run that one"
    rule = decode_pending(record).extra
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
        return str(error).removesuffix(".") or type(error).__name__
    return ""


def note_unreadable(found: dict[bytes, str], changes: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Keep up with changes of the changelog: which schedules cannot be fired, and why.

    Each key comes once.
    """
    if found:
        changes = list(changes)
        for key, _ in changes:
            found.pop(key, None)
    for key, value in with_a_rule(changes):
        if value is not None and (why := why_unreadable(value)):
            found[key] = why
