"""The options of requests, as editors and type checkers know them.

    belfry.schedule("demo", "hello", in_="5m", payload="hi", wait=False)
                                     └──── Definition ────┘  └ Change ┘

`Change` has the options of every request, `Definition` those that define a schedule. Both are types
alone: `requests.py` checks and reads values, and the options of a call are a plain mapping. The
fields of a request stand in a table already (`schedules/fields.py`), of which `Definition` is the
copy that a type checker can read. A test compares the two, so an option that is missing here fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict

Instant = int | str | datetime
Duration = int | str | timedelta
Headers = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]]


class Change(TypedDict, total=False):
    """Options that every request has."""

    request_id: str
    """Name of the request; a repeat within an hour is answered DUPLICATE.  Default: a new one."""
    expected_version: int | str
    """The request counts only if the schedule has this version, or this `etag`, such as
    ``1234567.3``: a schedule that ended and was begun anew has another."""
    reason: str
    """Why, in words of your own; kept in the history."""
    wait: bool
    """Wait for the verdict (default), or only until Kafka has the request."""
    timeout_s: float
    """Longest wait for the verdict, in seconds (10)."""


# Options that every request has.
OF_REQUESTS: Final = frozenset(Change.__annotations__)


class Definition(Change, total=False):
    """What to send and when: exactly one of `at`, `in_`, `every`, `cron`, `rrule`, `after_ack`,
    `after_group`."""

    at: Instant
    """Epoch milliseconds, RFC 3339 with offset, or an aware datetime."""
    in_: Duration
    """Milliseconds, a text such as ``5m`` or ``PT5M``, or a timedelta, from when Kafka has it."""
    every: Duration
    """Interval of a recurring schedule, in the same forms."""
    cron: str
    """Cron expression of a recurring schedule."""
    rrule: str
    """Rule of RFC 5545 of a recurring schedule, such as ``FREQ=WEEKLY;BYDAY=MO``; `start_at` is its
    DTSTART."""
    after_ack: str
    """Id of a schedule of the tenant: once, when the next of its fires is acknowledged."""
    after_group: str
    """A group of the tenant: once, when all of it have fired and are acknowledged."""
    ack_delay: Duration
    """How long after that acknowledgement."""
    latest_at: Instant
    """When at the latest, acknowledged or not."""
    timezone: str
    """IANA time zone that `cron`, `rrule`, `except_cron` and `calendar` are read in (UTC)."""
    except_cron: str
    """Cron expression of the minutes in which a recurring schedule has no occurrence, such as
    ``* 0-5 * * *``."""
    calendar: str
    """Name of a calendar of the tenant, whose days off a recurring schedule heeds."""
    on_holiday: str
    """The treatment of an instant on a day off: ``SKIP``, ``NEXT_BUSINESS_DAY`` or
    ``PREVIOUS_BUSINESS_DAY``."""
    start_at: Instant
    """No occurrence of a recurring schedule before it."""
    end_at: Instant
    """No occurrence of a recurring schedule after it."""
    max_fires: int
    """A recurring schedule is complete after so many fires."""
    jitter: Duration
    """Each occurrence comes up to this much later, by a share of its own."""
    max_wait: Duration
    """Debounce: each further request while the schedule waits slides `in_`, at the latest to so
    long after the first one."""
    throttle: Duration
    """Change nothing (UNCHANGED, code `throttled`) while the schedule waits, nor within so long
    after its last fire; at most a day."""
    misfire: str
    """How to treat late occurrences: ``FIRE_ONCE``, ``FIRE_ALL`` or ``SKIP``."""
    max_lateness: Duration
    """How late an occurrence still is in time."""
    overlap: str
    """While the last occurrence is not acknowledged: ``ALLOW``, ``SKIP``, ``QUEUE_ONE``,
    ``QUEUE_ALL``, ``CANCEL_OTHER`` or ``TERMINATE_OTHER``."""
    serial: bool
    """The group waits until this event is acknowledged."""
    concurrency: int
    """The group waits while so many of its fires are to be acknowledged; `serial` is 1."""
    ack_timeout: Duration
    """How long an acknowledgement is waited for."""
    priority: int
    """Which of the tenant's events leave first while they are held back: -9 to 9, higher ones do;
    not for the events of a group."""
    payload: str | bytes | None
    """Value of the event, opaque to belfry; None sends a null value."""
    key: str | bytes | None
    """Key of the event; None takes the group, else the schedule's id."""
    group: str
    """Events of one group keep their due order and share an output partition."""
    event_type: str
    """Type of the event, for CloudEvents and for `FiredEvent`."""
    tell_type: bool
    """Send the type as header ``event-type`` as well (default), for `Handlers` to go by."""
    headers: Headers
    """Headers of the event; order, repeats and nulls are kept."""
    http_targets: Sequence[str | Mapping[str, Any]]
    """Where the event is posted to besides the topic: addresses, or fields of `HttpTarget`."""
    action: str
    """``UPSERT`` (default), or ``CREATE``, which leaves an existing schedule alone."""
