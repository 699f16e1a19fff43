"""Fields that came after the first release, in the order of the schema (`fields.FIELDS`).

`LATER` stands before the fields of the later kinds, `LATEST` and `DEPENDENCE` behind them.  A new
field is the last.

To add a field: put it at the end of `DEPENDENCE`, with its default, its names at the doors and its
check; add it to `Request` and to the schema; then run `tests/architecture/test_fields.py`, which
names each door that still lacks it.  The doors that are made from the table need nothing more.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.bulk import bulk_problem
from belfry.schedules.calendars import days_problem
from belfry.schedules.debounce import max_wait_problem
from belfry.schedules.field import Field, Form
from belfry.schedules.fire_checks import (
    acknowledgement_problem,
    priority_problem,
    targets_problem,
)
from belfry.schedules.rule_checks import calendar_problem, standing_problem
from belfry.schedules.throttle import throttle_problem
from belfry.schedules.triggers.acknowledged import dependence_problem
from belfry.schedules.triggers.left_out import left_out_problem
from belfry.schedules.triggers.registry import RECURRING, listed
from belfry.schedules.triggers.rule import ON_HOLIDAY, OVERLAPS

_RECURRING: Final = listed(RECURRING, "and")

LATER: Final = (
    Field(
        name="http_targets",
        form=Form.TARGETS,
        doc="Where fired events are posted to besides the topic.",
        default=[],
        header="belfry-webhook",
        also=("webhooks", "target", "http-targets"),
        flag="--webhook",
        argument="http_targets",
        check=targets_problem,
    ),
    Field(
        name="overlap",
        form=Form.SYMBOL,
        doc=f"{_RECURRING}: ALLOW (and null) fires whether or not the last occurrence was"
        " acknowledged; SKIP gives this one up; QUEUE_ONE fires the latest when the acknowledgement"
        " comes, QUEUE_ALL each of them, one after the other; CANCEL_OTHER is QUEUE_ONE, and asks"
        " the last fire to end; TERMINATE_OTHER fires, and the last fire is awaited no more.",
        symbols=OVERLAPS[1:],
        header="belfry-overlap",
        flag="--overlap",
        argument="overlap",
        check=acknowledgement_problem,
    ),
    Field(
        name="serial",
        form=Form.FLAG,
        doc="The event's group waits after it until it is acknowledged.",
        default=False,
        header="belfry-serial",
        flag="--serial",
        argument="serial",
        check=acknowledgement_problem,
    ),
    Field(
        name="ack_timeout_ms",
        form=Form.DURATION,
        doc="How long an acknowledgement is waited for, in milliseconds, where overlap or serial"
        " asks for one; null is 300 000.",
        header="belfry-ack-timeout",
        flag="--ack-timeout",
        argument="ack_timeout",
        check=acknowledgement_problem,
    ),
    Field(
        name="standing",
        form=Form.STANDING,
        doc="Where a new life begins, instead of at its first occurrence; what `belfry schedule"
        " import` sends. Without meaning for a schedule that exists.",
        check=standing_problem,
    ),
)

_MANY: Final = (
    Field(
        name="bulk",
        form=Form.TEXT,
        doc="BULK: the job whose id is schedule_id, as a JSON object: action (CANCEL, PAUSE,"
        " RESUME, MOVE, TRIGGER, BACKFILL, REKEY), and the filter schedule_id, prefix, group,"
        " event_type, due_from, due_until, state; move_ms of a MOVE; range_from, range_until of a"
        " BACKFILL; key of a REKEY; per_second.",
        header="belfry-bulk",
        check=bulk_problem,
    ),
)

_KEYS: Final = (
    Field(
        name="except_cron",
        form=Form.TEXT,
        doc=f"{_RECURRING}: cron expression of five fields, read in the schedule's time zone; no"
        " occurrence in the minutes that it names.",
        header="belfry-except-cron",
        also=("except",),
        flag="--except-cron",
        argument="except_cron",
        check=left_out_problem,
    ),
    Field(
        name="max_wait_ms",
        form=Form.DURATION,
        doc="AFTER: debounces. Each further request while the schedule waits moves its instant to"
        " that request's own delay, at the latest to so many milliseconds after the first one.",
        header="belfry-max-wait",
        also=("debounce",),
        flag="--max-wait",
        argument="max_wait",
        check=max_wait_problem,
    ),
    Field(
        name="throttle_ms",
        form=Form.DURATION,
        doc="AT and AFTER: the request changes nothing while the schedule waits, nor within so many"
        " milliseconds after its last fire; at most a day.",
        header="belfry-throttle",
        flag="--throttle",
        argument="throttle",
        check=throttle_problem,
    ),
    Field(
        name="concurrency",
        form=Form.NUMBER,
        doc="The event's group waits while so many of its fires are to be acknowledged, 1 to 255;"
        " serial is 1.",
        header="belfry-concurrency",
        flag="--concurrency",
        argument="concurrency",
        check=acknowledgement_problem,
    ),
)

_CALENDARS: Final = (
    Field(
        name="calendar",
        form=Form.TEXT,
        doc=f"{_RECURRING}: name of a calendar of the tenant, whose days off are read in the"
        " schedule's time zone.",
        header="belfry-calendar",
        flag="--calendar",
        argument="calendar",
        check=calendar_problem,
    ),
    Field(
        name="on_holiday",
        form=Form.SYMBOL,
        doc="What becomes of an instant on a day off of the calendar: SKIP (and null) leaves it"
        " out; NEXT_BUSINESS_DAY and PREVIOUS_BUSINESS_DAY move it, at the same time on the wall.",
        symbols=ON_HOLIDAY[1:],
        header="belfry-on-holiday",
        also=("holiday",),
        flag="--on-holiday",
        argument="on_holiday",
        check=calendar_problem,
    ),
    Field(
        name="days_off",
        form=Form.TEXT,
        doc="CALENDAR: the calendar whose name is schedule_id, as a JSON object: days (dates such"
        " as 2026-12-25), weekend (MON to SUN), source (where they are from).",
        header="belfry-days-off",
        check=days_problem,
    ),
)

LATEST: Final = (*_MANY, *_KEYS, *_CALENDARS)

DEPENDENCE: Final = (
    Field(
        name="ack_delay_ms",
        form=Form.DURATION,
        doc="AFTER_ACK and AFTER_GROUP: due so many milliseconds after the acknowledgement.",
        header="belfry-ack-delay",
        flag="--ack-delay",
        argument="ack_delay",
        check=dependence_problem,
    ),
    Field(
        name="latest_at",
        form=Form.INSTANT,
        doc="AFTER_ACK and AFTER_GROUP: due at this instant at the latest, acknowledged or not.",
        header="belfry-latest-at",
        also=("deadline", "at-the-latest"),
        flag="--latest-at",
        argument="latest_at",
        check=dependence_problem,
    ),
    Field(
        name="priority",
        form=Form.NUMBER,
        doc="Which of the tenant's events leave first while they are held back, -9 to 9: higher"
        " ones do; null is 0. Not for the events of a group, which keep their due order.",
        header="belfry-priority",
        flag="--priority",
        argument="priority",
        check=priority_problem,
    ),
)
