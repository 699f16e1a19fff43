"""Requests as they may be shown: refused ones, and one at its place; credentials are masked.

Keys, payloads and headers may be long, so only their beginning is shown. A cut value has the length
and a digest of the whole, so two requests that differ behind the cut can be told apart:

    {"payload": the first 2 048 bytes, "payload_size_bytes": 9000, "payload_sha256": "5f2c…"}

A cut never falls within a character. The digest of headers is taken after they were masked, so it
reveals no credential.

A refused request is shown as far as it can be read. Of an unreadable one in Avro only the first
bytes are shown, because the bytes behind them are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import orjson
from confluent_kafka import Message

from belfry.api.workers.kept import RejectedRequest
from belfry.client.decoding import Decoder, Look
from belfry.kafka.record_headers import headers_of
from belfry.schedules.header_secrets import carries_credentials
from belfry.schedules.masking import MASK, masked_target
from belfry.wire.framing import FrameKind, read_frame
from belfry.wire.record import SIGNATURE, Headers

# Most bytes of a key, a payload or a header that are shown.
SAMPLE_BYTES: Final = 2_048
# Bytes of an unreadable value: its frame, and hardly more.
UNREAD_BYTES: Final = 32
MOST_HEADERS: Final = 50
_ERROR: Final = "belfry-error-"


class RejectedReader:
    """Reads records of belfry.rejected, and leaves only the parts that may be shown."""

    def __init__(self, look: Look | None) -> None:
        """`look` looks writers' schemas up."""
        self._decoder = Decoder("ScheduleRequest", look, only=False)

    def of(self, message: Message, tenant: str | None) -> RejectedRequest | None:
        """The request in a record; None for one that is not this tenant's."""
        (found,) = headers_of([message])
        own, said = _apart(found or [])
        whose = _text(said.get(f"{_ERROR}tenant")) or None
        if tenant is not None and whose != tenant:
            return None
        value = message.value()
        fields = None if value is None else self._decoder.record(value, own)
        return RejectedRequest(
            at_ms=message.timestamp()[1],
            tenant=whose,
            code=_text(said.get(f"{_ERROR}code")),
            reason=_text(said.get(f"{_ERROR}reason")),
            source=(
                _text(said.get(f"{_ERROR}topic")),
                _number(said.get(f"{_ERROR}partition")),
                _number(said.get(f"{_ERROR}offset")),
            ),
            key=None if message.key() is None else beginning(_bytes(message.key())),
            headers=tuple(_short(_masked(*each)) for each in own[:MOST_HEADERS]),
            size_bytes=len(value or b""),
            request=None if fields is None else shown_fields(fields),
            sample=None if fields is not None else _sample(value, own),
        )


def _apart(headers: Headers) -> tuple[Headers, dict[str, bytes | None]]:
    """The headers as received, and those that were added.

    The writer of the request may have given it headers of the same names: belfry's come last.
    """
    codes = [n for n, (name, _) in enumerate(headers) if name == f"{_ERROR}code"]
    first = codes[-1] if codes else len(headers)
    return headers[:first], dict(headers[first:])


def _sample(value: bytes | None, headers: Headers) -> bytes | None:
    """The beginning of a value that is not a readable request."""
    if value is None:
        return None
    framed = read_frame(value, headers).kind is not FrameKind.UNFRAMED
    return value[:UNREAD_BYTES] if framed else beginning(value)


def shown_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that have values, with credentials masked.

    Of a key, a payload or headers that are too long, only the beginning, beside `…_size_bytes` and
    `…_sha256` of the whole. Headers are lists of a name and a value.
    """
    found = {name: value for name, value in fields.items() if value not in (None, [], b"")}
    if "http_targets" in found:
        found["http_targets"] = [masked_target(each) for each in found["http_targets"]]
    if "headers" in found:
        masked = [_masked(each["name"], each["value"]) for each in found["headers"]]
        found["headers"] = [list(_short(each)) for each in masked[:MOST_HEADERS]]
        if found["headers"] != list(map(list, masked)):
            found |= _of_whole("headers", *_as_bytes(masked))
    for name in ("key", "payload"):
        whole = found.get(name, b"")
        if len(whole) > SAMPLE_BYTES:
            found |= {name: beginning(whole), **_of_whole(name, len(whole), whole)}
    return found


def beginning(value: bytes) -> bytes:
    """The first `SAMPLE_BYTES` of a value, or up to three less, so that no character is cut."""
    end = min(len(value), SAMPLE_BYTES)
    # A byte 10xxxxxx continues a character of UTF-8, which has four bytes at most.
    while SAMPLE_BYTES - 3 < end < len(value) and value[end] & 0xC0 == 0x80:
        end -= 1
    return value[:end]


def _of_whole(name: str, size_bytes: int, whole: bytes) -> dict[str, Any]:
    return {f"{name}_size_bytes": size_bytes, f"{name}_sha256": sha256(whole).hexdigest()}


def _as_bytes(headers: Headers) -> tuple[int, bytes]:
    """Size of names and values, and the bytes of a digest: JSON, with values in hexadecimal."""
    size = sum(len(name.encode()) + len(value or b"") for name, value in headers)
    told = [[name, None if value is None else value.hex()] for name, value in headers]
    return size, orjson.dumps(told)


def _masked(name: str, value: bytes | None) -> tuple[str, bytes | None]:
    """A header, with its value hidden if it may be a credential or signs the request."""
    is_hidden = name == SIGNATURE or carries_credentials(name)
    return name, MASK.encode() if is_hidden else value


def _short(header: tuple[str, bytes | None]) -> tuple[str, bytes | None]:
    name, value = header
    return name, None if value is None else beginning(value)


def _text(value: bytes | None) -> str:
    """A header as text; bytes that are not UTF-8 are replaced."""
    return (value or b"").decode(errors="replace")


def _number(value: bytes | None) -> int | None:
    """A header as a number, None if it is not a number."""
    return int(value) if value is not None and value.isdigit() else None


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
