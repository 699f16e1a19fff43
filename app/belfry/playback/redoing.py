"""Doing one attempt at a step: its parts on the engine, in the order in which a worker has them.

    fire        up to so many events that are due by the attempt's instant
    accept      the requests up to where the step's manifest ends
    forget      what a sweep of the worker ended, as the log says it
    sweeps, jobs where the attempt has them
    day files   payloads that went into one or came back, as the log says it (`filed_payloads.py`)

When a sweep comes, and from which name on, is in no log.  What it may end is: a marker a day after
its schedule ended, or sooner where its tenant says so, an answer an hour after its request, a job a
week after its end, each by the requests that have been read.  So what was forgotten is taken from
the log, and checked.  A tombstone of another row is none of a sweep, so it is left for the
comparison to find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from belfry.engine.partition import PartitionEngine
from belfry.playback.attempts import Attempt
from belfry.playback.filed_payloads import file_as_logged
from belfry.playback.logged import LoggedStep
from belfry.store.layout.jobs import HEAD_OF_JOB, KEPT_MS, decode_job
from belfry.store.layout.records import MARKER_MS, decode_marker, is_marker
from belfry.store.layout.verdicts import REQUEST_ID_MS, decode_verdict, is_answer
from belfry.store.schedules import ScheduleStore
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord

# So large a batch leaves room for whatever its requests set off: the log says where it ended.
ROOM: Final = 1 << 40
SWEEP_ROWS: Final = 500


class StepInput(NamedTuple):
    """What a step took in; `appended`: timestamps are the broker's.

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
) -> None:
    """Do the parts of a step as an attempt says; they are in the engine's effects.

    `store` is the engine's own.
    """
    if attempt.fires:
        _fire(engine, attempt)
    behind = step.manifest.position
    if behind > engine.position:
        requests, appended = taken.requests, taken.appended
        batch = SourceBatch(engine.position, behind, requests, appended=appended, size=ROOM)
        engine.accept(batch, attempt.now_ms)
    _forget_as_logged(store, step, taken)
    for swept_ms in attempt.sweeps:
        engine.sweep(swept_ms, SWEEP_ROWS)
    if attempt.budget is not None:
        allotted = None if attempt.allotted is None else dict(attempt.allotted)
        engine.advance_jobs(attempt.later_ms, attempt.budget, allotted)
    file_as_logged(engine, store, step.rows, attempt.now_ms)


def _fire(engine: PartitionEngine, attempt: Attempt) -> None:
    """Fire what is due, to where the time of the attempt is up."""
    in_time = attempt.in_time
    if in_time is None:
        engine.fire_due(attempt.now_ms, attempt.at_most)
        return
    effects = engine.effects
    engine.fire_due(attempt.now_ms, attempt.at_most, lambda: len(effects.fired) >= in_time)


def _forget_as_logged(store: ScheduleStore, step: LoggedStep, taken: StepInput) -> None:
    """Forget in the step under way what was forgotten in the log, where its time was over."""
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
