"""Rows that a logged step forgot: what a worker's sweeps ended, taken from the log and checked.

When a sweep comes, and from which name on, is in no log.  What it may end is: a marker a day after
its schedule ended, an answer an hour after its request, a job a week after its end, each by the
requests that have been read.  A tombstone of another row is none of a sweep, so it is left for the
comparison to find.
"""

from __future__ import annotations

from collections.abc import Mapping

from belfry.store.layout.jobs import HEAD_OF_JOB, KEPT_MS, decode_job
from belfry.store.layout.records import MARKER_MS, decode_marker, is_marker
from belfry.store.layout.verdicts import REQUEST_ID_MS, decode_verdict, is_answer
from belfry.store.schedules import ScheduleStore


def forget_as_logged(
    store: ScheduleStore, logged: Mapping[bytes, bytes | None], heard_ms: int, now_ms: int
) -> None:
    """Forget in the step under way what was forgotten in the log, where its time was over.

    `heard_ms` is the newest arrival of a request before the step, `now_ms` an instant behind it.
    """
    for key, row in logged.items():
        if row is not None or key in store.changed:
            continue
        standing = store.named(key)
        if standing is not None and may_be_forgotten(standing, heard_ms, now_ms):
            store.note(key, None)


def may_be_forgotten(row: bytes, heard_ms: int, now_ms: int) -> bool:
    """Whether the time of a row is over."""
    if is_marker(row):
        return heard_ms - decode_marker(row).ended_ms >= MARKER_MS
    if row[:2] == HEAD_OF_JOB:
        ended_ms = decode_job(row).ended_ms
        return ended_ms is not None and now_ms - ended_ms >= KEPT_MS
    return is_answer(row) and heard_ms - decode_verdict(row).at_ms >= REQUEST_ID_MS
