"""Shapes of the answers on schedules and verdicts; they document the JSON that is sent.

The JSON itself is made as plain dictionaries (`shapes.py`), for a page of schedules would take
longer to check than to read.  Instants are RFC 3339 in UTC, durations are milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, create_model

from belfry.api.json.occurrences import FireCountsAnswer, LastFireAnswer, UpcomingAnswer
from belfry.schedules.field import Form
from belfry.schedules.fields import WHEN


class HeaderAnswer(BaseModel):
    """One header of the event, its value as text or, if it is not text, as base64."""

    name: str
    value_text: str | None = None
    value_base64: str | None = None


if TYPE_CHECKING:
    _SaysWhen = BaseModel
else:
    _SaysWhen = create_model(
        "SaysWhen",
        **{
            field.name: ((int if field.form is Form.DURATION else str) | None, None)
            for field in WHEN
        },
    )


class SummaryAnswer(_SaysWhen):
    """A schedule as lists show it."""

    tenant: str
    schedule_id: str
    state: str = Field(description="PENDING or PAUSED while it waits; how it ended, for a day.")
    version: int
    generation: int = Field(description="Another one for each life that begins under this id.")
    occurrence: int = Field(description="Number of the next fire, from 0.")
    due_at: str = Field(
        description="Next due instant; of what is over the last one. One that nobody knows before"
        " an acknowledgement is in the year 9998."
    )
    ended_at: str | None = None
    kind: str | None = None
    scheduled_at: str | None = Field(None, description="Next instant by the rule, before jitter.")
    accepted_at: str | None = None
    timezone: str | None = None
    except_cron: str | None = None
    calendar: str | None = None
    on_holiday: str | None = None
    start_at: str | None = None
    end_at: str | None = None
    max_fires: int | None = None
    misfire: str | None = None
    max_lateness_ms: int | None = None
    overlap: str | None = None
    serial: bool | None = None
    concurrency: int | None = None
    ack_timeout_ms: int | None = None
    priority: int | None = None
    jitter_ms: int | None = None
    max_wait_ms: int | None = Field(None, description="From accepted_at, of the first request.")
    ack_delay_ms: int | None = None
    latest_at: str | None = None
    event_type: str | None = None
    group: str | None = None
    payload_bytes: int | None = None
    unreadable: str | None = Field(
        None,
        description="Why this worker cannot fire it, or cannot show its payload: it is of a later"
        " release, say, or the payload's day file cannot be read now.",
    )
    waiting_for: str | None = Field(
        None,
        description="What it waits for besides its due instant: `ack_lock`, `tenant_blocked`,"
        " `tenant_queue`, `catch_up`, `firing`, `later_release`, `day_file`, `resume`"
        " or `acknowledgement`.",
    )
    waiting_cause: str | None = Field(
        None,
        description="Why, more closely: `output_topic`, `paused` or `not_served` of a blocked"
        " tenant; `rate`, `priority` or `queue`; `clock` or `partition`; else as `waiting_for`.",
    )
    waiting_reason: str | None = Field(None, description="The same in words.")
    waiting_since: str | None = Field(None, description="When its owner has first seen it so.")


class ScheduleAnswer(SummaryAnswer):
    """A schedule with all that it will send."""

    words: str | None = Field(None, description="Its rule in English.")
    source_partition: int | None = Field(
        None, description="Where the request lies that says what it is, in the topic of requests."
    )
    source_offset: int | None = None
    key_text: str | None = None
    key_base64: str | None = None
    payload_text: str | None = None
    payload_base64: str | None = None
    payload_json: Any = None
    headers: list[HeaderAnswer] = Field(default_factory=list)
    http_targets: list[dict[str, Any]] | None = Field(
        None, description="Where it is posted to besides the topic; defaults are left out."
    )
    next_occurrences: list[UpcomingAnswer] | None = Field(
        None,
        description="As many as `next` asks for; fewer where the rule ends, or where it takes more"
        " than 50 ms to find them. A pause does not count.",
    )
    last_fires: list[LastFireAnswer] | None = Field(
        None, description="The oldest first, as many as `last` asks for and there are."
    )
    fires: FireCountsAnswer | None = Field(
        None,
        description="Beside `last_fires`, of what recurs. Null where fires before were not kept.",
    )


class LockAnswer(BaseModel):
    """An ack lock: a fire that has to be acknowledged, and the events that wait for it."""

    tenant: str
    schedule_id: str = Field(description="Whose fire it is.")
    fire_id: str = Field(description="What to acknowledge.")
    group: str | None
    locks: list[str] = Field(description="What waits: `group`, `schedule`, or both.")
    version: int
    due_at: str
    fired_at: str
    expires_at: str = Field(description="When what waits goes on without an acknowledgement.")


class LocksAnswer(BaseModel):
    """Some of a tenant's ack locks, by fire id."""

    locks: list[LockAnswer]
    cursor: str | None = Field(description="Give it back for the next page; null at the end.")


class PageAnswer(BaseModel):
    """Some schedules of a list; several pages are no snapshot, for schedules come and go."""

    schedules: list[SummaryAnswer]
    examined: int = Field(description="Rows of the tenant that were looked at.")
    cursor: str | None = Field(description="Give it back for the next page; null at the end.")


class CountsAnswer(BaseModel):
    """Waiting schedules per minute in which they are due."""

    counts: list[CountAnswer]
    drained: list[DrainedAnswer] = Field(
        description="Minutes of the range that ended lately, as far as the owner remembers them."
    )
    examined: int = Field(description="Minutes on this page.")
    cursor: str | None


class DrainedAnswer(BaseModel):
    """A minute that has passed, and in which no schedule waits any more."""

    minute: str
    drained_at: str = Field(description="When the last schedule of the minute left.")
    late_ms: int = Field(description="How long that was after the last due instant of the minute.")


class CountAnswer(BaseModel):
    """One minute of one partition; a tenant in several has a minute in parts, on several pages."""

    minute: str
    pending: int
    first_due_at: str = Field(description="None of them is due earlier.")
    last_due_at: str = Field(description="None of them is due later.")


class VerdictAnswer(BaseModel):
    """The verdict on a request, in the names of `LifecycleEvent`."""

    tenant: str
    schedule_id: str
    outcome: str | None = Field(description="Null if the caller did not wait for it.")
    request_id: str | None
    fire_id: str | None = None
    version: int | None
    generation: int | None = None
    at: str | None
    due_at: str | None
    code: str | None
    reason: str | None
    source_topic: str | None
    source_partition: int | None
    source_offset: int | None


class DryRunAnswer(BaseModel):
    """Where the copy of a dry run lies."""

    topic: str
    partition: int
    offset: int
    fire_id: str


CountsAnswer.model_rebuild()
