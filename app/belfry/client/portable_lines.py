"""Pending records as lines of JSON, at a third of what `portable` costs.

Most schedules fire once and have no rule. Their record says all of it in fields at known places, so
the line is made of these alone:

    record of AT, no rule        ─► line_of, by hand
    record of any other kind     ─► portable ─► request_fields understands it? ─► line

What is made by hand can be read again by its form: a property test compares each such line with
that of `portable`, and reads it. Any other line is read once before it is written, so a backup
holds none that a restore would refuse.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

import orjson

from belfry.client.portable import NotPortable, UnreadableSchedule, portable, request_fields
from belfry.schedules.instants import format_instant
from belfry.store.layout.pending import AT, decode_headers, decode_row
from belfry.store.layout.pending_bytes import PAUSED, fires_once, is_plain_one_shot

_KIND: Final = slice(2, 3)
_AT: Final = bytes((AT,))
_FLAGS_AT: Final = 3


def line_of(record: bytes) -> bytes:
    """A pending record of the changelog as a line of JSON, with its end.

    `record` has the bytes that `store/README.md` specifies. Raises `UnreadableSchedule`.
    """
    if record[_KIND] == _AT and is_plain_one_shot(record) and fires_once(record):
        return orjson.dumps(_once(record), option=orjson.OPT_APPEND_NEWLINE)
    found = portable(record)
    try:
        request_fields(found)
    except NotPortable as error:
        raise UnreadableSchedule(
            f"Schedule {found['tenant']}/{found['schedule_id']} cannot be written so that it could"
            f" be restored: {error}."
        ) from None
    return orjson.dumps(found, option=orjson.OPT_APPEND_NEWLINE)


def _once(record: bytes) -> dict[str, Any]:
    """An AT without a rule, its fields in the order of `portable`."""
    (_, nominal_ms, _, _, _, version, occurrence, _, at_ms, jitter_ms, tenant, schedule_id, group,
     event_type, key, headers, _, payload) = decode_row(record)  # fmt: skip
    next_at = format_instant(nominal_ms)
    found: dict[str, Any] = {
        "tenant": tenant.decode(),
        "schedule_id": schedule_id.decode(),
        "kind": "AT",
        "at": next_at if at_ms == nominal_ms else format_instant(at_ms),
    }
    if jitter_ms:
        found["jitter_ms"] = jitter_ms
    if event_type:
        found["event_type"] = event_type.decode()
    if group:
        found["group"] = group.decode()
    if key is not None:
        _show(found, "key", key)
    if payload is not None:
        _show(found, "payload", payload)
    if headers:
        found["headers"] = [_header(name, value) for name, value in decode_headers(headers)]
    found["standing"] = {
        "next_at": next_at,
        "occurrence": occurrence,
        "version": version,
        "paused": bool(record[_FLAGS_AT] & PAUSED),
    }
    return found


def _header(name: str, value: bytes | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name}
    if value is not None:
        _show(found, "value", value)
    return found


def _show(found: dict[str, Any], name: str, value: bytes) -> None:
    """Put bytes in under the name that says how they are written."""
    try:
        found[f"{name}_text"] = value.decode()
    except UnicodeDecodeError:
        found[f"{name}_base64"] = b64encode(value).decode()
