"""Fired events survive the wire."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from belfry.wire import catalogue
from belfry.wire.catalogue import MalformedError
from belfry.wire.fired import FiredEvent, decode_fired, encode_fired

RICH = FiredEvent(
    tenant="payments.eu",
    schedule_id="order/4711/é",
    fire_id="0f" * 16,
    version=3,
    occurrence=-1,
    scheduled_at=1_798_000_000_000,
    due_at=1_798_000_000_250,
    fired_at=1_798_000_000_262,
    event_type="reminder",
    group="customer-7",
    missed=4,
    payload=b"\x00\xff payload",
)
PLAIN = FiredEvent("demo", "a", "f", 1, 0, 1, 2, 3)


def test_the_class_has_the_fields_of_the_schema() -> None:
    schema = catalogue.schema("FiredEvent")
    assert [each.name for each in fields(FiredEvent)] == [one["name"] for one in schema["fields"]]


@pytest.mark.parametrize("event", [RICH, PLAIN], ids=["rich", "plain"])
def test_round_trip(event: FiredEvent) -> None:
    assert decode_fired(encode_fired(event)) == event


@pytest.mark.parametrize("event", [RICH, PLAIN], ids=["rich", "plain"])
def test_bytes_are_those_of_the_schema(event: FiredEvent) -> None:
    assert encode_fired(event) == catalogue.encode("FiredEvent", asdict(event))


def test_an_empty_payload_is_not_a_missing_one() -> None:
    event = FiredEvent("demo", "a", "f", 1, 0, 1, 2, 3, payload=b"")
    assert decode_fired(encode_fired(event)).payload == b""


def test_damaged_bytes_are_malformed() -> None:
    with pytest.raises(MalformedError):
        decode_fired(encode_fired(RICH)[:-1])
