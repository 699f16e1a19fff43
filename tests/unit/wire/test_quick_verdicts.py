"""The usual verdict is read by hand, and one that differs in any part is left to fastavro."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.quick_verdicts import QuickVerdict, quick_verdict

AT_MS = 1_800_000_000_000
USUAL = LifecycleEvent(
    tenant="demo", schedule_id="order/é", outcome=Outcome.ACCEPTED, request_id="r1", version=1,
    at=AT_MS, due_at=AT_MS + 5, source_topic="belfry.schedules", source_partition=3,
    source_offset=1_000,
)  # fmt: skip


def read(**changed: Any) -> QuickVerdict | None:
    """What is read by hand of the usual verdict with other parts."""
    return quick_verdict(encode_lifecycle(replace(USUAL, **changed)))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"tenant": "t" * 63, "schedule_id": "s" * 63, "request_id": "r" * 63},
        {"outcome": Outcome.PAUSED},
        {"version": 63, "source_partition": 63, "source_offset": 0},
        {"source_topic": "t" * 63, "source_offset": 2**62 - 1},
        {"at": 2**34, "due_at": 2**41 - 1},
    ],
)
def test_a_usual_one_is_read(changed: dict[str, Any]) -> None:
    event = replace(USUAL, **changed)
    assert read(**changed) == (
        event.tenant, event.schedule_id, event.outcome, event.request_id, event.version, event.at,
        event.due_at, event.source_topic, event.source_partition, event.source_offset,
    )  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"tenant": "t" * 64},
        {"schedule_id": "s" * 64},
        {"request_id": None},
        {"request_id": "r" * 64},
        {"fire_id": ""},
        {"fire_id": "f1"},
        {"version": None},
        {"version": 64},
        {"version": -1},
        {"at": 5},
        {"at": -AT_MS},
        {"at": 2**41},
        {"due_at": None},
        {"due_at": 5},
        {"due_at": -AT_MS},
        {"due_at": 2**41},
        {"code": "exists"},
        {"reason": "It lives."},
        {"target": "https://h/"},
        {"attempt": 1},
        {"source_topic": None},
        {"source_topic": "t" * 64},
        {"source_partition": None},
        {"source_partition": 64},
        {"source_partition": -1},
        {"source_offset": None},
        {"source_offset": -1},
        {"source_offset": 2**62},
    ],
)
def test_one_with_another_part_is_left_to_the_general_reader(changed: dict[str, Any]) -> None:
    assert read(**changed) is None


def test_one_that_is_cut_or_goes_on_is_left_to_the_general_reader() -> None:
    body = encode_lifecycle(USUAL)
    assert not any(quick_verdict(body[:size]) for size in range(len(body)))
    assert quick_verdict(body + b"\0") is None


def branches() -> list[int]:
    """The places of the bytes that say which of two branches a part has, and of what is null."""
    body = encode_lifecycle(USUAL)
    other = encode_lifecycle(replace(USUAL, version=9))
    (version,) = [at for at, byte in enumerate(body) if byte != other[at]]
    request_id = body.index(b"\2\4r1")
    topic = body.index(b"\2\x20belfry.schedules")
    partition = topic + 2 + len("belfry.schedules")
    # Behind the request's id: no fire's id, a version; behind the version and an instant: due.
    return [
        request_id, request_id + 4, version - 1, version + 1 + 6, *range(topic - 4, topic + 1),
        partition, partition + 2,
    ]  # fmt: skip


@pytest.mark.parametrize("place", branches())
@pytest.mark.parametrize("flipped", [1, 2, 4, 0x80])
def test_each_branch_is_looked_at(place: int, flipped: int) -> None:
    body = bytearray(encode_lifecycle(USUAL))
    body[place] ^= flipped
    assert quick_verdict(bytes(body)) is None
