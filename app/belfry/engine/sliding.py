"""Sliding: the row of a debounced schedule after a further request of its run.

What waits keeps in `accepted_ms` when the first request of the run came (`schedules/debounce`).
"""

from __future__ import annotations

from belfry.schedules.debounce import slid_ms
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.triggers import trigger_of
from belfry.store.layout.pending import Pending


def slid(row: Pending, old: Pending | None, longest_ms: int) -> Pending:
    """The row that a request asks for which debounces, where `old` waits.

    None for `old` is what cannot be read; that, and what does not slide, is followed by a new run.
    """
    if old is None or not old.extra or trigger_of(old.extra).rule.max_wait_ms is None:
        return row
    nominal_ms = slid_ms(row.accepted_ms, row.when, old.accepted_ms, longest_ms)
    due_ms = nominal_ms
    if row.jitter_ms:
        due_ms += jitter_ms(row.name, nominal_ms, row.jitter_ms)
    return row._replace(due_ms=due_ms, nominal_ms=nominal_ms, accepted_ms=old.accepted_ms)
