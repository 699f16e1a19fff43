"""Lifecycle events survive the wire, and outcomes have one list of names."""

from __future__ import annotations

import copy
from dataclasses import fields, replace

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.wire import catalogue
from belfry.wire.catalogue import RecordReader
from belfry.wire.lifecycle import (
    LifecycleEvent,
    decode_lifecycle,
    encode_lifecycle,
    generation_in,
    headers_of,
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
