"""Lifecycle events survive the wire, and outcomes have one list of names."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import Any

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.wire import catalogue
from belfry.wire.catalogue import RecordReader
from belfry.wire.lifecycle import (
    LifecycleEvent,
    decode_lifecycle,
    encode_lifecycle,
    encode_record,
    generation_in,
    headers_of,
    record_of,
)

RICH = LifecycleEvent(
    tenant="demo",
    schedule_id="a",
    outcome=Outcome.REJECTED,
    request_id="r-1",
    fire_id="f-1",
    version=7,
    at=1_798_000_000_000,
    due_at=1_798_000_060_000,
    code="instant_in_seconds",
    reason="at 1798000000 is before 2001",
    target="https://example.com/hook",
    attempt=2,
    source_topic="belfry.schedules",
    source_partition=3,
    source_offset=2**40,
)


def test_the_class_has_the_fields_of_the_schema() -> None:
    schema = catalogue.schema("LifecycleEvent")
    assert [each.name for each in fields(LifecycleEvent)] == [
        *[one["name"] for one in schema["fields"]],
        "generation",
    ]


def test_the_generation_travels_in_a_header_that_old_readers_pass_over() -> None:
    bare = LifecycleEvent(tenant="t", schedule_id="a", outcome=Outcome.ACCEPTED, at=5)
    told = replace(bare, generation=2**31 - 1)
    assert encode_lifecycle(told) == encode_lifecycle(bare)
    assert (headers_of(bare), generation_in([])) == ([], None)
    assert generation_in([*headers_of(told)]) == 2**31 - 1
    for forged in (None, b"", b"x", b"-1", b"9" * 999):
        assert generation_in([("belfry-generation", forged)]) is None


def test_a_generation_has_ten_digits_at_most_and_the_first_that_is_one_counts() -> None:
    def told(*values: bytes | None) -> int | None:
        return generation_in([("other", b"1"), *(("belfry-generation", each) for each in values)])

    assert headers_of(replace(RICH, generation=7)) == [("belfry-generation", b"7")]
    assert told(b"9" * 10) == 9_999_999_999
    assert told(b"9" * 11) is None
    assert told(None, b"x", b"5", b"6") == 5
    assert generation_in(None) is None


@pytest.mark.parametrize("bits", [0, 5, 6, 7, 12, 13, 14, 20, 34, 48, 62, 63])
def test_numbers_of_any_size_are_written_as_by_fastavro(bits: int) -> None:
    for number in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1):
        if -(2**63) <= number < 2**63:
            event = replace(RICH, version=number, at=number, due_at=number, source_offset=number)
            assert encode_lifecycle(event) == encode_record(record_of(event))


@pytest.mark.parametrize("size", [0, 63, 64, 8_191, 8_192])
def test_texts_of_any_size_are_written_as_by_fastavro(size: int) -> None:
    event = replace(RICH, tenant="t" * size, schedule_id="é" * (size // 2), reason="r" * size)
    assert encode_lifecycle(event) == encode_record(record_of(event))


def test_what_is_null_is_written_as_by_fastavro() -> None:
    for name in ("request_id", "fire_id", "version", "due_at", "code", "reason", "target",
                 "attempt", "source_topic", "source_partition", "source_offset"):  # fmt: skip
        nothing: dict[str, Any] = {name: None}
        event = replace(RICH, **nothing)
        assert encode_lifecycle(event) == encode_record(record_of(event))


def test_outcomes_are_those_of_the_schema() -> None:
    schema = catalogue.schema("LifecycleEvent")
    outcome = next(each["type"] for each in schema["fields"] if each["name"] == "outcome")
    assert [each.name for each in Outcome] == outcome["symbols"]
    assert all(each.name == each.value for each in Outcome)


def test_round_trip_of_a_rich_event() -> None:
    assert decode_lifecycle(encode_lifecycle(RICH)) == RICH


@pytest.mark.parametrize("outcome", Outcome)
def test_round_trip_of_every_outcome(outcome: Outcome) -> None:
    event = LifecycleEvent(tenant="demo", schedule_id="a", outcome=outcome, at=1)
    read = decode_lifecycle(encode_lifecycle(event))
    assert read == event
    assert isinstance(read.outcome, Outcome)


def test_an_outcome_of_a_newer_release_reads_as_unknown() -> None:
    newer = copy.deepcopy(catalogue.schema("LifecycleEvent"))
    newer["fields"][2]["type"]["symbols"].append("EVAPORATED")
    body = encode_lifecycle(
        LifecycleEvent(tenant="d", schedule_id="a", outcome=Outcome.FAILED, at=1)
    )
    index = Outcome.__members__.__len__() * 2  # the enum's index is a zigzag number
    changed = body[:4] + bytes([index]) + body[5:]
    read = decode_lifecycle(changed, RecordReader("LifecycleEvent", newer))
    assert read.outcome is Outcome.UNKNOWN
