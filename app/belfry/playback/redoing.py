"""Doing one attempt at a step: its parts on the engine, in the order in which a worker has them.

    fire        up to so many events that are due by the attempt's instant
    accept      the requests up to where the step's manifest ends, large payloads refused of those
                that came while their store was away
    forget      what a sweep of the worker ended, as the log says it
    sweeps, jobs where the attempt has them; groups end that ended in the log
    day files   payloads that went into one or came back, as the log says it (`filed_payloads.py`)

When a sweep comes, and from which name on, is in no log.  What it may end is: a marker a day after
its schedule ended, or sooner where its tenant says so, an answer an hour after its request, a job a
week after its end, each by the requests that have been read.  So the forgotten rows are taken from
the log, and checked.  A tombstone of another row is not a sweep's, so it is left for the comparison
to find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from belfry.engine.job_counts import WorkAsLogged
from belfry.engine.partition import PartitionEngine
from belfry.playback.attempts import Attempt
from belfry.playback.filed_payloads import file_as_logged
from belfry.playback.logged import LoggedStep
from belfry.store.layout.dependence import OF_GROUP
from belfry.store.layout.jobs import HEAD_OF_JOB, KEPT_MS, decode_job
from belfry.store.layout.locations import BEHIND_LOCK, decode_location, is_location
from belfry.store.layout.pending_bytes import depends, is_pending
from belfry.store.layout.records import MARKER_MS, decode_marker, is_marker
from belfry.store.layout.verdicts import REQUEST_ID_MS, decode_verdict, is_answer
from belfry.store.schedules import ScheduleStore
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord

# So large a batch leaves room for all that its requests set off: the log says where it ended.
ROOM: Final = 1 << 40
SWEEP_ROWS: Final = 500


class StepInput(NamedTuple):
    """The requests that a step took in; `appended`: timestamps are the broker's.

    `heard_ms` is the newest arrival of a request before the step (epoch ms).  `remember_ms` says of
    a schedule's name for how long its end is remembered.
    """

    requests: Sequence[SourceRecord]
    appended: bool
    heard_ms: int
    remember_ms: Callable[[bytes], int] = lambda _name: MARKER_MS


def redo(
    engine: PartitionEngine,
    store: ScheduleStore,
    attempt: Attempt,
    step: LoggedStep,
    taken: StepInput,
    keep_large: Callable[..., None],
) -> None:
    """Do the parts of a step as an attempt says; they are in the engine's effects.

    `store` is the engine's own.  `keep_large(away=…)` lets the store of large payloads be away.
    """
    if attempt.fires:
        _fire(engine, attempt)
    _take_in(engine, attempt, step.manifest.position, taken, keep_large)
    _forget_as_logged(store, step, taken)
    for swept_ms in attempt.sweeps:
        engine.sweep(swept_ms, SWEEP_ROWS)
    if attempt.budget is not None:
        allotted = None if attempt.allotted is None else dict(attempt.allotted)
        done = WorkAsLogged(allotted, _let_go_as_logged(store, step))
        engine.advance_jobs(attempt.later_ms, attempt.budget, done)
    file_as_logged(engine, store, step.rows, attempt.now_ms)


def _fire(engine: PartitionEngine, attempt: Attempt) -> None:
    """Fire due rows, to where the time of the attempt is up."""
    in_time = attempt.in_time
    if in_time is None:
        engine.fire_due(attempt.now_ms, attempt.at_most)
        return

    def time_is_up() -> bool:
        return len(engine.effects.fired) >= in_time

    engine.fire_due(attempt.now_ms, attempt.at_most, time_is_up)


def _take_in(
    engine: PartitionEngine,
    attempt: Attempt,
    behind: int,
    taken: StepInput,
    keep_large: Callable[..., None],
) -> None:
    """Take the requests before this offset in: in parts, where the store went away amid them."""
    away = attempt.away
    for part in (away.start, away.stop, behind):
        start, end = engine.position, min(part, behind)
        if start >= end:
            continue
        requests = [each for each in taken.requests if start <= each[0] < end]
        keep_large(away=start in away)
        batch = SourceBatch(start, end, requests, appended=taken.appended, size=ROOM)
        engine.accept(batch, attempt.now_ms)
    keep_large(away=False)


def _let_go_as_logged(store: ScheduleStore, step: LoggedStep) -> frozenset[bytes]:
    """The schedules that waited for a group before the step, and have an instant since.

    How far the walk through a group had come is in no log, for a walk that meets somebody writes
    nothing.
    """
    return frozenset(
        key
        for key, row in step.rows.items()
        if row is not None and key[:1] != b"\0" and is_pending(row) and _waits_for_group(store, key)
        if not depends(row)
    )


def _waits_for_group(store: ScheduleStore, name: bytes) -> bool:
    place = store.named(name)
    if not is_location(place):
        return False
    where, _, _, lock = decode_location(place)
    return where == BEHIND_LOCK and lock[:1] == OF_GROUP


def _forget_as_logged(store: ScheduleStore, step: LoggedStep, taken: StepInput) -> None:
    """Forget in the step under way the rows that its log forgot, where their time was over."""
    for key, row in step.rows.items():
        if row is not None or key in store.changed:
            continue
        standing = store.named(key)
        if standing is not None and _may_be_forgotten(key, standing, taken, step.written_ms):
            store.note(key, None)


def _may_be_forgotten(key: bytes, row: bytes, taken: StepInput, now_ms: int) -> bool:
    """Whether the time of a row is over; `now_ms` is an instant behind its step."""
    heard_ms = taken.heard_ms
    if is_marker(row):
        return heard_ms - decode_marker(row).ended_ms >= taken.remember_ms(key)
    if row[:2] == HEAD_OF_JOB:
        ended_ms = decode_job(row).ended_ms
        return ended_ms is not None and now_ms - ended_ms >= KEPT_MS
    return is_answer(row) and heard_ms - decode_verdict(row).at_ms >= REQUEST_ID_MS
