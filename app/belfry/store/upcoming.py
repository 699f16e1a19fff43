"""The next occurrences of a schedule that waits: when each is due by its rule, and when it fires.

    rule 09:00 daily, jitter up to 10 min, 2 of 4 fires left

        number   scheduled   due
             2   09:00       09:03:12     the pending record's own
             3   09:00       09:08:41     the rule's next, with the jitter of that instant

Only time zone data, a tenant's state, or a later request can still change them.  Finding an instant
of an expression costs up to some milliseconds, so the caller says how long to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from belfry.schedules.jitter import jitter_ms
from belfry.schedules.rule import decode_rule
from belfry.schedules.triggers import trigger_of
from belfry.schedules.triggers.registry import BY_CODE
from belfry.store.layout.pending import Pending


class Upcoming(NamedTuple):
    """One occurrence to come; instants in epoch milliseconds."""

    number: int
    scheduled_ms: int
    due_ms: int


def upcoming(row: Pending, count: int, goes_on: Callable[[], bool]) -> list[Upcoming]:
    """At most `count` occurrences, the pending one first; `goes_on` is asked after each.

    The record has to be one that this release can read (`readable.why_unreadable_rule`).
    """
    found: list[Upcoming] = []
    for each in _all(row):
        if len(found) == count:
            break
        found.append(each)
        if not goes_on():
            break
    return found


def _all(row: Pending) -> Iterator[Upcoming]:
    yield Upcoming(row.occurrence, row.nominal_ms, row.due_ms)
    if not BY_CODE[row.kind].recurs:
        return
    trigger, most = trigger_of(row.extra), decode_rule(row.extra).max_fires
    number, nominal_ms = row.occurrence + 1, trigger.after_ms(row.nominal_ms)
    while nominal_ms is not None and (most is None or number < most):
        late_ms = jitter_ms(row.name, nominal_ms, row.jitter_ms) if row.jitter_ms else 0
        yield Upcoming(number, nominal_ms, nominal_ms + late_ms)
        number, nominal_ms = number + 1, trigger.after_ms(nominal_ms)
