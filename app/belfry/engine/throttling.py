"""Throttling: whether a request is dropped because its schedule waits, or has fired just now.

    row under the name      pending            ─► dropped: it waits
                            marker of a fire   ─► dropped within the window after it
                            marker of no fire, or none ─► taken in

The reply is UNCHANGED with the code `throttled`, and names the instant from which on a request is
taken in again.  `schedules/throttle.py` draws the window.
"""

from __future__ import annotations

from belfry.engine.reports import Reply
from belfry.engine.transitions import Asked
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import Outcome
from belfry.schedules.request import KEEPING
from belfry.schedules.throttle import CODE, is_within
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.records import ENDED_MISSED, decode_marker, is_marker
from belfry.store.schedules import ScheduleStore


def throttled(asked: Asked, arrived_ms: int, store: ScheduleStore) -> Reply | None:
    """The reply to a request that its `throttle_ms` drops, or None.

    A schedule that was given up has not fired, and a cancelled one is not remembered: neither
    counts.
    """
    window_ms = asked.request["throttle_ms"]
    if window_ms is None or not asked.version or asked.request["action"] not in KEEPING:
        return None
    assert asked.row is not None
    if not is_marker(asked.row):
        due_ms = decode_pending(store.pending_at(asked.name, asked.row)).due_ms
        reason = "The schedule waits already, and throttle_ms leaves it as it is."
        return Reply(Outcome.UNCHANGED, asked.version, due_ms, CODE, reason)
    ended = decode_marker(asked.row)
    never = ended.how == ENDED_MISSED or not ended.occurrence
    if never or not is_within(arrived_ms, ended.ended_ms, window_ms):
        return None
    reason = (
        f"The schedule has fired at {format_instant(ended.ended_ms)}, and throttle_ms leaves room"
        f" for the next one from {format_instant(ended.ended_ms + window_ms)} on."
    )
    return Reply(Outcome.UNCHANGED, asked.version, ended.due_ms, CODE, reason)
