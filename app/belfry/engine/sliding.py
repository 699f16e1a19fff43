"""Sliding: the row of a debounced schedule after a further request of its run.

The waiting row keeps in `accepted_ms` when the first request of the run came
(`schedules/debounce`).

    delay 5 min, longest wait 12 min
    12:00  a   accepted 12:00   due 12:05
    12:03  b   accepted 12:00   due 12:08        another version of the same schedule
    12:09  c   …                                 12:08 has fired: c begins a run of its own
"""

from __future__ import annotations

from belfry.schedules.debounce import slid_ms
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.triggers import trigger_of
from belfry.store.layout.pending import Pending


def slid(row: Pending, old: Pending | None, longest_ms: int) -> Pending:
    """The row that a debouncing request asks for, while `old` waits.

    `row` is what the request would be by itself, `longest_ms` its `max_wait_ms`.  A new run begins,
    and `row` stays as it is, where `old` is None (it cannot be read) or does not debounce.
    """
    if old is None or not old.extra or trigger_of(old.extra).rule.max_wait_ms is None:
        return row
    nominal_ms = slid_ms(row.accepted_ms, row.when, old.accepted_ms, longest_ms)
    due_ms = nominal_ms
    if row.jitter_ms:
        due_ms += jitter_ms(row.name, nominal_ms, row.jitter_ms)
    return row._replace(due_ms=due_ms, nominal_ms=nominal_ms, accepted_ms=old.accepted_ms)
