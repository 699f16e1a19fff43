"""Bodies over HTTP: wrong types, wrong names, numbers without measure, JSON that is none.

What is right: 400 for what is no JSON, 422 for what is not allowed, 413 and 415 for size and kind,
and 201 for what is fine; never 500, and nothing is asked of belfry for what is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.attack.door import OWN, Door
from tests.attack.family import Attack, judge

PATH: Final = "/v1/tenants/orders/schedules"
FINE: Final = {"schedule_id": "n", "delay_ms": 60_000, "payload_text": "x"}
JSON: Final = "application/json"
TEXTS: Final = (
    *("schedule_id", "cron", "timezone", "event_type", "group", "request_id", "payload_text"),
    *("payload_base64", "key_text", "key_base64", "misfire", "kind"),
)
WHOLE: Final = ("delay_ms", "interval_ms", "jitter_ms", "max_lateness_ms", "max_fires")
NO_TEXT: Final[dict[str, Any]] = {
    "number": 1,
    "fraction": 1.5,
    "true": True,
    "list": ["x"],
    "object": {"a": "x"},
    "empty list": [],
}
NO_NUMBER: Final[dict[str, Any]] = {
    "text": "1",
    "fraction": 1.5,
    "true": True,
    "list": [1],
    "object": {"a": 1},
    "minus": -1,
    "beyond": 2**53 + 1,
    "beyond 64 bits": 2**64,
    "1000 digits": 10**1000,
}
UNKNOWN: Final = (
    *(
        "delay",
        "id",
        "tenant ",
        "Tenant",
        "__proto__",
        "constructor",
        "__class__",
        "payload",
        "key",
    ),
    *("action", "expected_version", "standing", "$ref", "", "\x00", "schedule_id ", "model_config"),
)


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    door = Door([], opened=True)
    yield door
    door.close()


def sent(name: str, right: int, body: Any, kind: str = JSON) -> Attack[tuple[str, bytes]]:
    """A body as it is, or as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Attack(name, (kind, raw), right)


def fields() -> Iterator[Attack[tuple[str, bytes]]]:
    """Each field with values of another type."""
    for field in TEXTS:
        for name, value in NO_TEXT.items():
            yield sent(f"{field} {name}", 422, {**FINE, field: value})
    for field in WHOLE:
        rest = {k: v for k, v in FINE.items() if k != "delay_ms"} | {"interval_ms": 60_000}
        for name, value in NO_NUMBER.items():
            yield sent(f"{field} {name}", 422, {**rest, field: value})
    for name in UNKNOWN:
        yield sent(f"unknown {name!r}", 422, {**FINE, name: "x"})
    for name, value in {
        "text": "x",
        "object": {},
        "number": 1,
        "names": [1],
        "null": [None],
    }.items():
        yield sent(f"headers {name}", 422, {**FINE, "headers": value})
        yield sent(f"targets {name}", 422, {**FINE, "http_targets": value})
    for name in ("=", "a", "a===", "\u0661", "a b c", "YQ=", "YQ==YQ==", "-_-_", "YQ==\n"):
        yield sent(f"base64 {name!r}", 422, {**FINE, "payload_text": None, "payload_base64": name})
    for one, other in (("payload_text", "payload_base64"), ("payload_text", "payload_json")):
        yield sent(f"{one} and {other}", 422, {**FINE, one: "YQ==", other: "YQ=="})
    for more in ({"at": "2040-01-01T00:00:00Z"}, {"cron": "@daily"}, {"interval_ms": 60_000}):
        yield sent(f"two instants, {[*more]}", 422, {**FINE, **more})
    for at in (
        "tomorrow",
        "2040-01-01",
        "2040-01-01T00:00:00",
        "2040-13-01T00:00:00Z",
        "",
        "NaN",
        "1e13",
    ):
        rest = {k: v for k, v in FINE.items() if k != "delay_ms"}
        yield sent(f"at {at}", 422, {**rest, "at": at})


def documents() -> Iterator[Attack[tuple[str, bytes]]]:
    """What is no JSON, and JSON that asks for much."""
    fine = json.dumps(FINE).encode()
    for size in range(1, len(fine)):
        yield sent(f"cut at {size}", 400, fine[:size])
    for raw in (
        b"",
        b"{",
        b"nul",
        b"'a'",
        b"{'a': 1}",
        b"{,}",
        b"[1,]",
        b"\xff\xfe{}",
        b"{}{}",
        b"\x00",
    ):
        yield sent(f"{raw!r}", 400, raw)
    for raw in (b"[]", b"null", b"1", b'"x"', b"true", b"{}"):
        yield sent(f"{raw!r}", 422, raw)
    for raw in (
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"schedule_id": "\xff"}',
        b'{"schedule_id": "\\ud800"}',
    ):
        yield sent(f"{raw[:24]!r} of {len(raw)}", 400, raw)
    yield sent("byte order mark", 400, b"\xef\xbb\xbf" + fine)
    yield sent("utf-16", 400, fine.decode().encode("utf-16"))
    yield sent("larger than a body may be", 413, b'{"a": "' + b"x" * 1_100_000 + b'"}')
    for kind in (
        "",
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ):
        yield sent(f"kind {kind}", 415, fine, kind)
    for kind in ("application/JSON", "application/json; charset=utf-8", "application/json;x"):
        yield sent(f"kind {kind}", 201, fine, kind)
    yield sent("fine", 201, fine)
    yield sent(
        "text in many scripts", 201, {**FINE, "payload_text": "\u202e\u0000\ufeff\U0001f4a9"}
    )


@pytest.mark.parametrize("family", [fields, documents])
def test_what_is_refused_is_told_and_asks_for_nothing(door: Door, family: Any) -> None:
    def answer(given: tuple[str, bytes]) -> int | str:
        kind, body = given
        found = door("POST", PATH, {"content-type": kind}, body)
        asked = door.desk.asked
        door.reached  # noqa: B018  # forget
        if (found.status == 201) != (asked == {OWN}):
            return f"{found.status}, and asked for {asked}"
        if found.status >= 400:
            assert found.headers["content-type"] == "application/problem+json"
            assert json.loads(found.body)["detail"]
        return int(found.status)

    judge(family(), answer, 80)
