"""Requests as they may be shown: whose they are, no credential, and how long what is cut is."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import pytest

from belfry.process.shown_requests import (
    MOST_HEADERS,
    SAMPLE_BYTES,
    UNREAD_BYTES,
    RejectedReader,
    beginning,
    shown_fields,
)
from belfry.wire import framing
from belfry.wire.record import Headers
from tests.acceptance.harness.requests import request

ADDED: Final[Headers] = [
    ("belfry-error-code", b"bad_cron"),
    ("belfry-error-reason", b"why"),
    ("belfry-error-topic", b"belfry.schedules"),
    ("belfry-error-partition", b"1"),
    ("belfry-error-offset", b"7"),
]


class Record:
    """A record of belfry.rejected as librdkafka gives it."""

    def __init__(self, value: bytes | None, headers: Headers) -> None:
        self._value, self._headers = value, headers

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> Headers:
        return self._headers

    def key(self) -> bytes:
        return b"k"

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


def read(
    value: bytes | None, *before: Any, whose: bytes | None = b"mine", asked: Any = None
) -> Any:
    tenant: Headers = [] if whose is None else [("belfry-error-tenant", whose)]
    record: Any = Record(value, [*before, *ADDED, *tenant])
    # `map` calls the methods of real messages; here too.
    return RejectedReader(None).of(record, asked)


def test_a_tenant_is_shown_its_own_alone(monkeypatch: Any) -> None:
    stand_in(monkeypatch)
    assert read(b"v", asked="mine").code == "bad_cron"
    assert read(b"v", asked="other") is None
    assert read(b"v", whose=None, asked="mine") is None
    assert read(b"v", whose=None).tenant is None


def test_headers_that_the_request_came_with_name_nobody(monkeypatch: Any) -> None:
    stand_in(monkeypatch)
    forged = [("belfry-error-tenant", b"victim"), ("belfry-error-code", b"forged")]
    assert read(b"v", *forged, whose=None, asked="victim") is None
    found = read(b"v", *forged)
    assert (found.tenant, found.code) == ("mine", "bad_cron")
    assert [name for name, _ in found.headers] == ["belfry-error-tenant", "belfry-error-code"]


def test_credentials_are_masked(monkeypatch: Any) -> None:
    stand_in(monkeypatch)
    target = {
        "url": "https://a.example/x?token=hunter2",
        "headers": [{"name": "x", "value": "hunter2"}],
    }
    headers = [{"name": "Authorization", "value": b"hunter2"}]
    value = request("mine", "a", cron="x", http_targets=[target], headers=headers)
    signed = [("belfry-signature", b"hunter2"), ("x-api-key", b"hunter2")]
    found = read(value, *signed)
    assert found.request["cron"] == "x"
    assert "hunter2" not in repr(found)


def test_what_cannot_be_read_shows_its_frame_alone(monkeypatch: Any) -> None:
    stand_in(monkeypatch)
    broken = framing.single_object("ScheduleRequest") + b"\xff" * 100
    assert read(broken).sample == broken[:UNREAD_BYTES]
    assert read(b"x" * 9_000).sample == b"x" * SAMPLE_BYTES
    assert (read(None).sample, read(None).size_bytes) == (None, 0)


@pytest.mark.parametrize("name", ["key", "payload"])
def test_what_differs_behind_the_cut_is_told_by_size_and_digest(name: str) -> None:
    long = b"x" * SAMPLE_BYTES
    one, other = (shown_fields({name: long + last}) for last in (b"1", b"2"))
    assert one == {
        name: long,
        f"{name}_size_bytes": SAMPLE_BYTES + 1,
        f"{name}_sha256": sha256(long + b"1").hexdigest(),
    }
    assert one != other
    assert shown_fields({name: long}) == {name: long}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([("h", b"x" * SAMPLE_BYTES + b"1")], [("h", b"x" * SAMPLE_BYTES + b"2")]),
        ([("h", b"1")] * (MOST_HEADERS + 1), [("h", b"1")] * (MOST_HEADERS + 2)),
    ],
    ids=["a long value", "many headers"],
)
def test_headers_that_differ_behind_the_cut_are_told_apart(one: Headers, other: Headers) -> None:
    first, second = (shown_fields({"headers": as_fields(each)}) for each in (one, other))
    assert first["headers"] == second["headers"]
    assert first["headers_sha256"] != second["headers_sha256"]
    assert first["headers_size_bytes"] == sum(len(name) + len(value or b"") for name, value in one)
    assert set(shown_fields({"headers": as_fields([("h", b"1"), ("n", None)])})) == {"headers"}


def test_a_digest_says_nothing_of_a_credential() -> None:
    long = ("h", b"x" * 9_000)
    one, other = (
        shown_fields({"headers": as_fields([long, ("authorization", secret)])})
        for secret in (b"hunter2", b"swordfish!")
    )
    assert one == other


@pytest.mark.parametrize("letter", ["x", "ä", "→", "𝄞"])
@pytest.mark.parametrize("before", range(4))
def test_a_cut_never_falls_within_a_character(letter: str, before: int) -> None:
    text = "x" * before + letter * SAMPLE_BYTES
    found = beginning(text.encode())
    assert text.startswith(found.decode())
    assert SAMPLE_BYTES - 3 <= len(found) <= SAMPLE_BYTES
    assert len(beginning(b"\x80" * 9_000)) == SAMPLE_BYTES - 3


def as_fields(headers: Headers) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in headers]


def stand_in(monkeypatch: Any) -> None:
    """Headers of a record that no librdkafka made."""
    monkeypatch.setattr(
        "belfry.process.shown_requests.headers_of", lambda records: [records[0].headers()]
    )
