"""A request as the engine sees it, and the checks of its names and texts.

`Request` is the dictionary that an Avro reader of `ScheduleRequest` returns (instants as epoch
milliseconds): giving each of 100 000 requests a second an object of its own would cost more than
decoding it.  `checks.RequestChecks` puts these checks and those of the rule together.

A check is a function that returns the reason to refuse, or None if there is no reason.  So checks
are joined by `or`, the first reason wins, and nothing is raised on the way:

    return tenant_problem(tenant) or schedule_id_problem(name) or text_problem(request)

Limits are in bytes of UTF-8 and not in characters, since bytes are what the changelog, RocksDB and
Kafka have to hold.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypedDict

from belfry.schedules.rejections import Rejection

TENANT: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
FIRE_ID: Final = re.compile(r"[0-9a-f]{32}")
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MAX_TEXT_BYTES: Final = 255
MAX_HEADERS: Final = 256

ACTIONS: Final = frozenset(
    {
        *("UPSERT", "CREATE", "CANCEL", "PAUSE", "RESUME", "TRIGGER", "ACK", "BULK", "BULK_STOP"),
        *("CALENDAR", "CALENDAR_REMOVE"),
    }
)
# Actions that define a schedule; the others act on one that exists, on a job or on a calendar.
KEEPING: Final = frozenset({"UPSERT", "CREATE"})
# Headers of a trace: each attempt to send has its own.
TRACE_HEADERS: Final = frozenset({"traceparent", "tracestate", "baggage"})


class Header(TypedDict):
    """One user header; order, repeats and nulls are kept."""

    name: str
    value: bytes | None


class ExportedState(TypedDict):
    """Where an exported schedule stood; `belfry schedule import` sends it along.

    `next_at` is the next nominal instant (epoch ms), `occurrence` its number counted from 0,
    `version` the schedule's version, and `paused` whether it waits for its instant at all.
    """

    next_at: int
    occurrence: int
    version: int
    paused: bool


class Request(TypedDict):
    """Fields of `ScheduleRequest` that this version reads; instants in epoch milliseconds.

    All keys are always there: doors fill fields that were not given with the defaults of
    `fields.EMPTY`. `fields.FIELDS` says what each field means; its order is that of the schema, not
    of this class.
    """

    tenant: str
    schedule_id: str
    action: str
    kind: str
    at: int | None
    delay_ms: int | None
    jitter_ms: int | None
    event_type: str | None
    group: str | None
    key: bytes | None
    payload: bytes | None
    headers: list[Header]
    misfire: str | None
    max_lateness_ms: int | None
    start_at: int | None
    end_at: int | None
    max_fires: int | None
    interval_ms: int | None
    cron: str | None
    rrule: str | None
    timezone: str | None
    except_cron: str | None
    calendar: str | None
    on_holiday: str | None
    http_targets: list[dict[str, Any]]
    overlap: str | None
    serial: bool
    ack_timeout_ms: int | None
    standing: ExportedState | None
    expected_version: int | None
    request_id: str | None
    reason: str | None
    fire_id: str | None
    bulk: str | None
    max_wait_ms: int | None
    throttle_ms: int | None
    concurrency: int | None
    after_ack: str | None
    after_group: str | None
    ack_delay_ms: int | None
    latest_at: int | None
    priority: int | None
    days_off: str | None


# A one-shot UPSERT with nothing special, still as bytes: tenant, schedule id, at (epoch ms), event
# type, group, key, payload, request id.  Most requests are such, and worth a way of their own.
PlainRequest = tuple[
    bytes, bytes, int, bytes | None, bytes | None, bytes | None, bytes | None, bytes | None
]
# Bytes that a schedule id may hold without a closer look.
PLAIN_BYTES: Final = bytes(range(0x20, 0x7F))


def tenant_problem(tenant: str) -> Rejection | None:
    """Why a tenant's name is not allowed, or None.

    The name is part of topics (`belfry.fired.<tenant>`), of keys and of ACLs, so it has the letters
    that Kafka allows in a topic.  It has no slash: ``tenant/schedule_id`` stays unambiguous.
    """
    if not tenant:
        return Rejection("no_tenant", "The request names no tenant; set the field `tenant`.")
    if len(tenant) > 100 or TENANT.fullmatch(tenant) is None:
        return Rejection(
            "bad_tenant",
            f"Tenant {tenant[:120]!r} is not allowed: 1-100 of A-Z a-z 0-9 _ -, with single dots"
            " inside, such as `payments.eu`.",
        )
    return None


def schedule_id_problem(schedule_id: str) -> Rejection | None:
    """Why a schedule's id is not allowed, or None; asked once for each request.

    The usual id is printable ASCII, for which neither an encoding nor the expression is needed.
    """
    size = len(schedule_id) if schedule_id.isascii() else _utf8_length(schedule_id)
    if 1 <= size <= MAX_TEXT_BYTES and (
        schedule_id.isprintable() or CONTROL.search(schedule_id) is None
    ):
        return None
    return Rejection(
        "bad_schedule_id",
        f"schedule_id {schedule_id[:60]!r} is not allowed: 1-255 bytes of UTF-8 without control"
        " characters, such as `order/4711`.",
    )


def _utf8_length(text: str) -> int:
    # Lone surrogates cannot be encoded: as long as forbidden.
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return MAX_TEXT_BYTES + 1


def action_problem(action: str) -> Rejection | None:
    """Why an action is not allowed, or None."""
    if action in ACTIONS:
        return None
    return Rejection(
        "unknown_action", f"Action {action!r} is not known: {', '.join(sorted(ACTIONS))}."
    )


def fire_problem(request: Request) -> Rejection | None:
    """Why the fire that an ACK names cannot be one, or None.

    Only its form is looked at.  Whether such a fire is awaited the engine decides by its state.
    """
    fire_id = request["fire_id"]
    if request["action"] != "ACK" or (fire_id is not None and FIRE_ID.fullmatch(fire_id)):
        return None
    given = "is missing" if fire_id is None else f"{fire_id[:60]!r} is no id of a fire"
    return Rejection(
        "bad_fire_id",
        f"fire_id {given}: ACK needs the 32 hexadecimal digits that the fired record has in its"
        " header belfry-fire-id.",
    )


def text_problem(request: Request) -> Rejection | None:
    """Why one of the optional texts or headers is not allowed, or None.

    Most requests have none of them, so their absence is looked for first.
    """
    group, event_type = request["group"], request["event_type"]
    request_id, headers = request["request_id"], request["headers"]
    if group is event_type is request_id is None and not headers:
        return None
    for name, value in (("group", group), ("event_type", event_type)):
        if value is not None and not 1 <= _utf8_length(value) <= MAX_TEXT_BYTES:
            return Rejection("bad_fields", f"{name} {value[:60]!r} is not 1-255 bytes of UTF-8.")
    if request_id is not None and not may_be_kept(request_id):
        return Rejection(
            "bad_request_id", f"request_id {request_id[:60]!r} is not 1-255 bytes of UTF-8."
        )
    return headers_problem(headers)


def may_be_kept(request_id: str | None) -> bool:
    """Whether an answer may be remembered under this id: 1 to 255 bytes of UTF-8."""
    return request_id is not None and 1 <= _utf8_length(request_id) <= MAX_TEXT_BYTES


def headers_problem(headers: list[Header]) -> Rejection | None:
    """Why the user's headers are not allowed, or None.

    At most 256 headers, and a name of at most 1 024 bytes.  Their values count with the payload
    towards the size of the fired event, which the engine looks at (`payload_too_large`).
    """
    if len(headers) > MAX_HEADERS:
        return Rejection("bad_fields", f"{len(headers)} headers; at most {MAX_HEADERS} travel.")
    for header in headers:
        if _utf8_length(header["name"]) > 1024:
            return Rejection("bad_fields", "A header's name is longer than 1024 bytes of UTF-8.")
    return None
