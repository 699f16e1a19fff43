"""The digest of a request: whether two requests that show one `request_id` ask for the same.

A retry has to give the same digest whichever door it takes, so the digest covers the content of the
request and nothing of how it came:

- fields that have their default are left out, so a header request, an Avro record of any release
  and a body of HTTP agree, and a field that a later release adds changes no digest without it;
- a request that keeps nothing (CANCEL, PAUSE, TRIGGER …) is told by action, schedule, and the
  version, fire, job or days that it names: a payload or a key that came along means nothing;
- tenant and `request_id` are left out, for the digest is kept under them;
- `reason` is left out, for it is a remark;
- headers of a trace are left out, for each attempt to send begins a span of its own.

    field = name "=" value      text, bytes: size ":" bytes      number: "i" digits ";"
                                list: "[" values "]"             record: "{" fields "}"

An UPSERT of tenant t, id a, at 5, payload x is hashed as this text, with fields by their names:

    {at=i5;payload=1:xschedule_id=1:a}

Sizes stand before texts, as in bencode, so no two requests give one text.  The digest is the first
16 bytes of its SHA-256.

Frozen: digests lie in the changelog for an hour, and workers of two releases compare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from belfry.schedules.request import KEEPING, TRACE_HEADERS, PlainRequest, Request

DIGEST_BYTES: Final = 16
_BEGUN: Final = sha256()
_LEFT_OUT: Final = frozenset({"tenant", "request_id", "reason"})
_TELLING: Final = (*("action", "bulk", "days_off", "expected_version", "fire_id", "schedule_id"),)
_DEFAULTS: Final = {"action": "UPSERT", "kind": "AT"}


def digest_of(request: Request) -> bytes:
    """The digest of a request with all of its fields."""
    if request["action"] not in KEEPING:
        return _hashed(_record({name: request[name] for name in _TELLING}))
    asked = {
        name: value
        for name, value in request.items()
        if name not in _LEFT_OUT and not (name in _DEFAULTS and value == _DEFAULTS[name])
    }
    headers = [each for each in request["headers"] if each["name"] not in TRACE_HEADERS]
    return _hashed(_record({**asked, "headers": headers}))


def digest_of_plain(plain: PlainRequest) -> bytes:
    """The same digest, of a request that is still bytes.

    The fast path calls it for each request with an id of its own.  The fields are written in the
    order of their names by hand; a property test holds it to `digest_of`.
    """
    _, schedule_id, at_ms, event_type, group, key, payload, _ = plain
    if event_type is group is None and key is not None and payload is not None:
        # As most are: payloads are copied once, and not twice.
        return _hashed(
            b"{at=i%d;key=%d:%bpayload=%d:%bschedule_id=%d:%b}"
            % (at_ms, len(key), key, len(payload), payload, len(schedule_id), schedule_id)
        )
    middle = b""
    if event_type is not None:
        middle = b"event_type=%d:%b" % (len(event_type), event_type)
    if group is not None:
        middle += b"group=%d:%b" % (len(group), group)
    if key is not None:
        middle += b"key=%d:%b" % (len(key), key)
    if payload is not None:
        middle += b"payload=%d:%b" % (len(payload), payload)
    return _hashed(b"{at=i%d;%bschedule_id=%d:%b}" % (at_ms, middle, len(schedule_id), schedule_id))


def _hashed(said: bytes) -> bytes:
    # A copy of a hash that has begun costs less than another one.
    digest = _BEGUN.copy()
    digest.update(said)
    return digest.digest()[:DIGEST_BYTES]


def _record(fields: Mapping[str, Any]) -> bytes:
    given = sorted(
        (name.encode(), value)
        for name, value in fields.items()
        if value is not None and value is not False and value != []
    )
    return b"{%b}" % b"".join(b"%b=%b" % (name, _value(value)) for name, value in given)


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        value = value.encode(errors="replace")
    if isinstance(value, bytes):
        return b"%d:%b" % (len(value), value)
    if isinstance(value, int):
        return b"i%d;" % value
    if isinstance(value, Mapping):
        return _record(value)
    if isinstance(value, list):
        return b"[%b]" % b"".join(map(_value, value))
    return _value(repr(value))
