"""The kinds of triggers that there are.  A new kind is a module of this folder, and a line here.

The order is that of the codes at rest and of the enum in the schema, so a new kind is the last.
Doors ask for a kind by its name, records at rest by its code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from belfry.schedules.triggers.acknowledged import AFTER_ACK, AFTER_GROUP
from belfry.schedules.triggers.cron import CRON
from belfry.schedules.triggers.every import EVERY
from belfry.schedules.triggers.kind import OneShot, Recurring, TriggerKind
from belfry.schedules.triggers.once import AFTER, AT
from belfry.schedules.triggers.rrule import RRULE

_ALL: Final[tuple[TriggerKind, ...]] = (
    AT,
    AFTER,
    EVERY,
    CRON,
    RRULE,
    AFTER_ACK,
    AFTER_GROUP,
)

KINDS: Final = {kind.name: kind for kind in _ALL}
BY_CODE: Final = {kind.code: kind for kind in _ALL}
assert len(KINDS) == len(BY_CODE) == len(_ALL), "a name or a code is given to two kinds"

ONE_SHOT: Final = {kind.name: kind for kind in _ALL if isinstance(kind, OneShot)}
RECURRING: Final = {kind.name: kind for kind in _ALL if isinstance(kind, Recurring)}
ZONED: Final = tuple(kind.name for kind in _ALL if kind.zoned)


def listed(names: Iterable[str], word: str) -> str:
    """Names as people list them: ``listed(("A", "B", "C"), "or")`` gives ``A, B or C``."""
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last


def kind_at_rest(code: int) -> TriggerKind:
    """The kind that a pending record names; ValueError for one of a later release.

    The engine does not fire such a schedule: it waits behind a lock of its own until a worker that
    knows the kind owns the partition.
    """
    found = BY_CODE.get(code)
    if found is None:
        raise ValueError(f"Kind {code} is of a later release: run that one.")
    return found
