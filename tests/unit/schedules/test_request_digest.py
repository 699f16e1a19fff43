"""The digest by which a repeat is known: of fields, and of bytes, it is the same one."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from belfry.schedules.fields import EMPTY
from belfry.schedules.request import PlainRequest
from belfry.schedules.request_digest import DIGEST_BYTES, digest_of, digest_of_plain


def request(**fields: Any) -> Any:
    return {**EMPTY, "tenant": "t", "schedule_id": "a/\u00e9", "at": 1_800_000_000_000, **fields}


def plain(
    event_type: bytes | None, group: bytes | None, key: bytes | None, payload: bytes | None
) -> PlainRequest:
    name = "a/\u00e9".encode()
    return (b"t", name, 1_800_000_000_000, event_type, group, key, payload, b"r")


@pytest.mark.parametrize(
    "texts",
    list(product([None, "", "type"], [None, "", "g"], [None, b"", b"k"], [None, b"", b"p"])),
)
def test_bytes_have_the_digest_of_their_fields(texts: tuple[Any, ...]) -> None:
    event_type, group, key, payload = texts
    by_bytes = plain(
        None if event_type is None else event_type.encode(),
        None if group is None else group.encode(),
        *(key, payload),
    )
    fields = {"event_type": event_type, "group": group, "key": key, "payload": payload}
    assert digest_of_plain(by_bytes) == digest_of(request(**fields, request_id="other"))
    assert len(digest_of_plain(by_bytes)) == DIGEST_BYTES


def test_a_digest_is_frozen() -> None:
    """Verdicts of releases before are kept by it for an hour."""
    expected = "13daf6be94a2b9ce2475aec6e32bda5c"  # pragma: allowlist secret
    assert digest_of(request(payload=b"p", key=b"k")).hex() == expected
    headers = [{"name": "h", "value": b"v"}, {"name": "i", "value": None}]
    more = request(headers=headers, max_fires=1.5)
    expected = "2aaf9f4fbbc88d4636ca52fc97e29de3"  # pragma: allowlist secret
    assert digest_of(more).hex() == expected


def test_what_says_who_asked_and_why_tells_no_request_from_another() -> None:
    same = digest_of(request())
    for fields in ({"tenant": "u"}, {"request_id": "r"}, {"reason": "why"}, {"action": "UPSERT"}):
        assert digest_of(request(**fields)) == same
    trace = [{"name": "traceparent", "value": b"x"}]
    assert digest_of(request(headers=trace)) == same
    others: list[dict[str, Any]] = [
        {"schedule_id": "b"}, {"at": 1}, {"action": "CREATE"}, {"payload": b""}, {"max_fires": 1},
        {"headers": [{"name": "h", "value": None}]}, {"kind": "EVERY"}, {"group": "g"},
    ]  # fmt: skip
    found = {digest_of(request(**fields)) for fields in others}
    assert len(found | {same}) == len(others) + 1


def test_an_action_is_told_by_what_it_reads_alone() -> None:
    same = digest_of(request(action="CANCEL"))
    assert digest_of(request(action="CANCEL", payload=b"p", group="g")) == same
    others: list[dict[str, Any]] = [{"action": "PAUSE"}, {"expected_version": 1}]
    for fields in (*others, {"schedule_id": "b"}):
        assert digest_of(request(**{"action": "CANCEL", **fields})) != same
