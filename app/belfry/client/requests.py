"""Arguments of the client to a `ScheduleRequest`: when, what, and the checks that need no worker.

A worker judges every request. Mistakes that do not depend on the state of the schedule are found
here as well, with the same code and the same words, so that a caller need not wait for the verdict.

    schedule("demo", "hello", in_="5m", payload="hi")
        ─► {"tenant": "demo", "schedule_id": "hello", "action": "UPSERT", "kind": "AFTER",
            "delay_ms": 300000, "payload": b"hi", …}

Which arguments there are (`options.py`), and how each is read, follows from the table of a
request's fields. All of it is pure: the clock comes in as `now_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from belfry.client.options import Duration, Headers, Instant
from belfry.schedules.bulk import bulk_problem
from belfry.schedules.calendars import days_problem
from belfry.schedules.checks import trigger_problem
from belfry.schedules.field import Field, Form
from belfry.schedules.fields import EMPTY, FIELDS, KIND_OF, named
from belfry.schedules.identity import expected_from
from belfry.schedules.instants import parse_duration, parse_instant
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import (
    Request,
    fire_problem,
    schedule_id_problem,
    tenant_problem,
    text_problem,
)
from belfry.schedules.targets import record_of
from belfry.schedules.triggers.registry import KINDS, listed

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
EVENT_TYPE: Final = "event-type"
DEFINING: Final = frozenset({"UPSERT", "CREATE"})
_KINDS: Final = {kind.field.argument: kind for kind in KINDS.values()}
# Arguments that a request holds as they are given, besides those with a reader or one of their own.
_AS_GIVEN: Final = tuple(
    name
    for name in FIELDS
    if name in named(Form.TEXT, Form.SYMBOL, Form.NUMBER)
    and name not in KIND_OF
    and name not in {"tenant", "schedule_id", "action", "kind", "expected_version"}
)
_RULE: Final = tuple(
    FIELDS[name] for name in FIELDS if name in named(Form.INSTANT, Form.DURATION) - KIND_OF.keys()
)


def request(
    tenant: str, schedule_id: str, action: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """A `ScheduleRequest` as a dictionary; ValueError for options that say no or several instants.

    `options` are those of `Definition`, without `action`, `wait` and `timeout_s`. The options of
    when are read for UPSERT and CREATE alone; other actions do not change them. Finer values are
    rounded up to a millisecond, so that nothing fires early.
    """
    fields = {**EMPTY, "tenant": tenant, "schedule_id": schedule_id, "action": action}
    for name in _AS_GIVEN:
        fields[name] = options.get(name)
    fields["expected_version"] = _expected(options.get("expected_version"))
    fields["serial"] = bool(options.get("serial"))
    fields["payload"] = as_bytes(options.get("payload"))
    fields["key"] = as_bytes(options.get("key"))
    fields["headers"] = _headers(options.get("headers", ()))
    if options.get("tell_type", True):
        _tell_type(fields)
    if action in DEFINING:
        fields.update(_when(options))
        fields.update(_rule(options))
        fields["http_targets"] = [record_of(each) for each in options.get("http_targets") or ()]
    return fields


def _expected(given: int | str | None) -> int | None:
    """The `expected_version` for a version or an etag; ValueError for any other text."""
    if not isinstance(given, str):
        return given
    found = expected_from(given)
    if found is None:
        raise ValueError(
            f"expected_version {given[:60]!r} is no version: give one, such as 3, or an etag, such"
            " as 1234567.3."
        )
    return found


def _tell_type(fields: dict[str, Any]) -> None:
    """Let an event's type travel with it: else envelopes and CloudEvents alone show it."""
    event_type, headers = fields["event_type"], fields["headers"]
    if event_type and all(each["name"] != EVENT_TYPE for each in headers):
        headers.append({"name": EVENT_TYPE, "value": event_type.encode()})


def _when(options: Mapping[str, Any]) -> dict[str, Any]:
    """The kind of trigger and its field, from the one argument that says when."""
    given = [name for name in _KINDS if options.get(name) is not None]
    if len(given) != 1:
        names = ", ".join(given) or "none"
        raise ValueError(f"Exactly one of {listed(_KINDS, 'and')} says when; given: {names}.")
    kind = _KINDS[given[0]]
    return {"kind": kind.name, kind.field.name: _value(kind.field, options)}


def _rule(options: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds, jitter and the treatment of late occurrences, as numbers."""
    return {field.name: _value(field, options) for field in _RULE}


def _value(field: Field, options: Mapping[str, Any]) -> Any:
    """The value of a field for its argument."""
    given = options.get(field.argument)
    read = _READ.get(field.form)
    return given if given is None or read is None else read(given)


def problem(fields: dict[str, Any], now_ms: int) -> Rejection | None:
    """The refusal that any worker would give, or None.

    `fields` are those of `request`; `now_ms` is the caller's clock, in epoch ms.
    """
    checked: Request = fields  # type: ignore[assignment]  # `request` made it
    found = tenant_problem(checked["tenant"]) or schedule_id_problem(checked["schedule_id"])
    if found is None and checked["action"] in DEFINING:
        found = trigger_problem(checked, now_ms)
    found = found or fire_problem(checked) or bulk_problem(checked) or days_problem(checked)
    return found or text_problem(checked)


def instant_ms(instant: Instant) -> int:
    """Epoch milliseconds of an instant in any of its forms, rounded up.

    Raises ValueError for a text that is no instant, and for a datetime without a time zone.
    """
    if isinstance(instant, str):
        return parse_instant(instant)
    if isinstance(instant, int):
        return instant
    if instant.tzinfo is None:
        raise ValueError(
            f"{instant!r} has no time zone, so it is another instant on every machine:"
            " give an aware datetime, such as datetime(2026, 12, 1, 9, tzinfo=UTC)."
        )
    return -((_EPOCH - instant) // _MILLISECOND)


def duration_ms(duration: Duration) -> int:
    """Milliseconds of a duration in any of its forms, rounded up; ValueError if it is not one."""
    if isinstance(duration, str):
        return parse_duration(duration)
    if isinstance(duration, int):
        return duration
    return -(-duration // _MILLISECOND)


# How a value is read that may come in several forms.
_READ: Final[dict[Form, Callable[[Any], int]]] = {
    Form.INSTANT: instant_ms,
    Form.DURATION: duration_ms,
}


def as_bytes(value: str | bytes | None) -> bytes | None:
    """Text as UTF-8, bytes as they are."""
    return value.encode() if isinstance(value, str) else value


def _headers(headers: Headers) -> list[dict[str, Any]]:
    """Headers in their order; a mapping cannot hold the same name twice, pairs can."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [{"name": name, "value": as_bytes(value)} for name, value in pairs]
