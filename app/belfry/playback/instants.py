"""The instants at which a logged step may have happened, the likeliest first.

A manifest does not say when its step looked at the clock.  It says the watermark, up to which the
timeline was emptied, and that is the instant of the step unless it stopped amid due rows.  Then its
rows tell it:

    marker that no cancel left         when it ended
    record of what recurs              its last fire: due instant, and how late it was
    awaited fire                       when it fired
    usage of a tenant                  up to when it was reckoned
    calendar that was changed          how far the partition had come
    job that was stopped               when the request to stop it was taken in
    nothing, of tenants that           any instant at which all was due that fired: when the step
    remember no ends                   was written
    awaited fire, removed              any instant from its time-out on: likewise
    nothing, and nothing fired         likewise

One of them is right, and which one, the bytes say: all others give other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from belfry.playback.logged import LoggedStep
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.rule import decode_rule
from belfry.schedules.triggers.acknowledged import AFTER_GROUP
from belfry.store.layout import keys
from belfry.store.layout.calendars import CALENDAR_PREFIX, decode_calendar
from belfry.store.layout.jobs import JOB_PREFIX, STOPPED, decode_job
from belfry.store.layout.pending import decode_pending
from belfry.store.layout.pending_bytes import depends, is_pending, last_fires
from belfry.store.layout.records import (
    ENDED_CANCELLED,
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    HEAD_OF_MARKER,
    decode_awaited,
    decode_marker,
    is_marker,
)
from belfry.store.layout.usage import METERED, USAGE_PREFIX, decode_usage_row

# Rows that are looked at: all that a step fired say the same.
MOST_ROWS = 1_000


def instants_of(step: LoggedStep) -> list[int]:
    """Epoch milliseconds, each once; the watermark is the first."""
    found = {step.manifest.watermark_ms: None}
    # A step that fired nothing may have stopped amid rows that it held back.
    last = [] if step.manifest.fired else [step.written_ms]
    for (key, row), _ in zip(step.rows.items(), range(MOST_ROWS), strict=False):
        if row is not None:
            found |= dict.fromkeys(_told_by(key, row))
        elif key[:1] != b"\0" or key.startswith(keys.AWAITED_PREFIX):
            last = [step.written_ms]
    return list(dict.fromkeys([*found, *last]))


def worked_at(step: LoggedStep) -> list[int]:
    """When jobs and walks of a step looked at the clock, behind its other parts; each once.

    The row of an ended job says it, and so does that of a schedule that waited for a group: its
    instant is that, and its delay later.
    """
    told = (_worked_by(key, row) for key, row in step.rows.items() if row is not None)
    return list(dict.fromkeys(at_ms for at_ms in told if at_ms is not None))


def given_up_at(step: LoggedStep) -> list[int]:
    """When a step gave up schedules that waited for an acknowledgement, if it did; each once."""
    rows = (row for row in step.rows.values() if row is not None and is_marker(row))
    ended = (decode_marker(row) for row in rows)
    return list(dict.fromkeys(each.ended_ms for each in ended if each.how == ENDED_MISSED))


def _worked_by(key: bytes, row: bytes) -> int | None:
    if key.startswith(JOB_PREFIX):
        return decode_job(row).ended_ms
    if key[:1] == b"\0" or not is_pending(row) or depends(row):
        return None
    pending = decode_pending(row)
    if pending.kind != AFTER_GROUP.code:
        return None
    return pending.nominal_ms - (decode_rule(pending.extra).ack_delay_ms or 0)


def tenants_that_fired(step: LoggedStep) -> frozenset[str]:
    """Tenants of which a step fired something, as far as its rows tell."""
    found = {
        keys.tenant_of(key)
        for key, row in step.rows.items()
        if row is not None and key[:1] != b"\0" and any(_told_by(key, row))
    }
    return frozenset(name.decode(errors="replace") for name in found)


def tells_when_it_fired(step: LoggedStep) -> bool:
    """Whether a row says at which instant the events of a step fired."""
    rows = [row for row in step.rows.values() if row is not None]
    ends = (decode_marker(row).how for row in rows if is_marker(row))
    fires = (is_pending(row) and bool(last_fires(row)) for row in rows)
    return any(how in (ENDED_FIRED, ENDED_COMPLETED) for how in ends) or any(fires)


def concerned_by(step: LoggedStep, rows: Iterable[bytes]) -> Iterator[str]:
    """Tenants of `rows` (changelog keys) that an attempt has and the step has not.

    They may have been held back in the step, whether or not they would have fired.
    """
    for key in rows:
        if key in step.rows or not (key[:1] != b"\0" or key.startswith(keys.AWAITED_PREFIX)):
            continue
        name = keys.tenant_of(key.removeprefix(keys.AWAITED_PREFIX))
        yield name.decode(errors="replace")


def _told_by(key: bytes, row: bytes) -> Iterator[int]:
    """When a row was written, where it says so."""
    if key[:1] == b"\0":
        yield from _told_by_other(key, row)
    elif row[:2] == HEAD_OF_MARKER:
        marker = decode_marker(row)
        if marker.how != ENDED_CANCELLED:
            yield marker.ended_ms
    elif is_pending(row) and (fires := last_fires(row)):
        pending, last = decode_pending(row), fires[-1]
        apart = pending.jitter_ms
        shift = jitter_ms(pending.name, last.nominal_ms, apart) if apart else 0
        yield last.nominal_ms + shift + last.late_ms


def _told_by_other(key: bytes, row: bytes) -> Iterator[int]:
    """The same of a row that is not a schedule's."""
    if key.startswith(keys.AWAITED_PREFIX):
        yield decode_awaited(row).fired_ms
    elif key.startswith(USAGE_PREFIX):
        if row != METERED:
            yield decode_usage_row(row).reckoned_ms
    elif key.startswith(CALENDAR_PREFIX):
        calendar = decode_calendar(row)
        # One that is walked for says when it was changed, in a step before.
        if calendar.under_way and not calendar.cursor:
            yield calendar.reached_ms
    elif key.startswith(JOB_PREFIX):
        job = decode_job(row)
        if job.state == STOPPED and job.ended_ms is not None:
            yield job.ended_ms
