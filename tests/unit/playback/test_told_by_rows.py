"""Which instant a row tells, row by row; and which rows tell none."""

from __future__ import annotations

import pytest

from belfry.playback.instants import (
    given_up_at,
    instants_of,
    tells_when_it_fired,
    tenants_that_fired,
    worked_at,
)
from belfry.playback.logged import LoggedStep
from belfry.schedules.jitter import jitter_ms
from belfry.schedules.triggers.encoding import encode_rule
from belfry.schedules.triggers.rule import Rule
from belfry.store.layout import keys
from belfry.store.layout.calendars import CalendarRow, calendar_key, encode_calendar
from belfry.store.layout.jobs import DONE, RUNNING, STOPPED, JobRow, encode_job, job_key
from belfry.store.layout.pending_bytes import DEPENDS
from belfry.store.layout.records import (
    ENDED_CANCELLED,
    ENDED_COMPLETED,
    ENDED_FIRED,
    ENDED_MISSED,
    Awaited,
    encode_awaited,
)
from belfry.store.layout.usage import METERED, UsageRow, encode_usage_row, usage_key
from tests.unit.playback.rows import KEY, WRITTEN, fired, over, schedule, step

JOB = job_key("shop", "job")
CALENDAR = calendar_key(b"shop", "de")
WATERMARK = 15_000


def job(state: str, ended_ms: int | None) -> bytes:
    return encode_job(JobRow("{}", 5, 1_000, (0, 5), state=state, ended_ms=ended_ms))


def calendar(*, under_way: bool, cursor: str = "") -> bytes:
    return encode_calendar(CalendarRow(b"", "{}", 9_000, 12_000, under_way, cursor))


@pytest.mark.parametrize(
    ("key", "row", "told"),
    [
        (KEY, over(12_000), [12_000]),
        (KEY, over(12_000, ENDED_MISSED), [12_000]),
        (KEY, over(12_000, ENDED_CANCELLED), []),
        (KEY, fired(9_000, 7, 70_000), [9_007]),
        (KEY, fired(9_000, 7, 70_000, jitter_ms=500), [9_007 + jitter_ms(KEY, 9_000, 500)]),
        (KEY, schedule(70_000), []),
        (keys.AWAITED_PREFIX + KEY,
         encode_awaited(Awaited(1, 12_000, 90_000, 11_000, 1, b"a", b"g")), [12_000]),
        (usage_key(b"shop"), encode_usage_row(UsageRow(1_000, 90_000, 12_000)), [12_000]),
        (usage_key(b""), METERED, []),
        (CALENDAR, calendar(under_way=True), [12_000]),
        (CALENDAR, calendar(under_way=True, cursor="shop/a"), []),
        (CALENDAR, calendar(under_way=False), []),
        (JOB, job(STOPPED, 12_000), [12_000]),
        (JOB, job(STOPPED, None), []),
        (JOB, job(DONE, 12_000), []),
        (JOB, job(RUNNING, None), []),
    ],
)  # fmt: skip
def test_what_a_row_tells_of_the_instant_of_its_step(
    key: bytes, row: bytes, told: list[int]
) -> None:
    assert instants_of(step({key: row})) == [WATERMARK, *told]
    # Where nothing fired, the step may have stopped amid what it held back.
    assert instants_of(step({key: row}, fired=0)) == [WATERMARK, *told, WRITTEN]
    assert tenants_that_fired(step({key: row})) == ({"shop"} if told and key == KEY else set())


def test_a_row_that_is_gone_tells_that_it_was_not_before_its_record() -> None:
    for key in (KEY, keys.AWAITED_PREFIX + KEY):
        assert instants_of(step({key: None})) == [WATERMARK, WRITTEN]
    assert instants_of(step({usage_key(b"shop"): None})) == [WATERMARK]


@pytest.mark.parametrize(
    ("row", "tells"),
    [
        (over(12_000, ENDED_FIRED), True),
        (over(12_000, ENDED_COMPLETED), True),
        (over(12_000, ENDED_CANCELLED), False),
        (over(12_000, ENDED_MISSED), False),
        (fired(9_000, 7, 70_000), True),
        (schedule(70_000), False),
        (None, False),
    ],
)
def test_ends_and_last_fires_tell_when_events_fired(row: bytes | None, tells: bool) -> None:
    assert tells_when_it_fired(step({b"shop/b": schedule(70_000), KEY: row})) is tells


def after_group(instant_ms: int, *, flags: int = 0, delay_ms: int | None = None) -> LoggedStep:
    extra = encode_rule(Rule(kind="AFTER_GROUP", awaited="g", ack_delay_ms=delay_ms))
    return step({KEY: schedule(instant_ms, kind="AFTER_GROUP", flags=flags, extra=extra)})


def test_jobs_and_walks_tell_when_they_worked() -> None:
    """Who waited for a group fires its delay after the walk that saw the group's end."""
    assert worked_at(after_group(12_000)) == [12_000]
    assert worked_at(after_group(12_000, delay_ms=2_000)) == [10_000]
    assert worked_at(after_group(12_000, flags=DEPENDS)) == []
    assert worked_at(step({KEY: schedule(12_000), b"shop/b": over(12_000), b"shop/c": None})) == []
    assert worked_at(step({JOB: job(DONE, 13_000)})) == [13_000]
    assert worked_at(step({JOB: job(RUNNING, None)})) == []


def test_who_is_given_up_tells_when() -> None:
    missed = {b"shop/%d" % at: over(at, ENDED_MISSED) for at in (11_000, 12_000)}
    assert given_up_at(step({**missed, KEY: over(12_000, ENDED_MISSED)})) == [11_000, 12_000]
    assert given_up_at(step({KEY: over(12_000), b"shop/b": schedule(12_000)})) == []
