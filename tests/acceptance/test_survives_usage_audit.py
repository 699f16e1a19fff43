"""The auditor of usage finds each figure that is wrong: doctored evidence gives the finding."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.sent import CANCEL, UPSERT, Sent
from tests.acceptance.harness.usage_audit import UsageAudit

LENGTH_MS = 10_000
T0 = 1_800_000_000_000
SIZE = 88 + len("alpha") + len("a") + len(b"r1 x")
SENT = [
    Sent("r1", UPSERT, "alpha", "a", T0 + 12_000, payload=b"r1 x", partition=0, offset=1),
    Sent("r2", UPSERT, "alpha", "b", T0 + 50_000, payload=b"r2 x", partition=0, offset=2),
    Sent("r3", CANCEL, "alpha", "b", partition=0, offset=3),
]


def event(outcome: str, at_ms: int, request_id: str | None = None) -> dict[str, Any]:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return {"outcome": outcome, "at": at, "request_id": request_id, "fire_id": "f1"}


TOLD = [
    event("ACCEPTED", T0 + 1_000, "r1"),
    event("ACCEPTED", T0 + 1_000, "r2"),
    event("CANCELLED", T0 + 3_000, "r3"),
    event("FIRED", T0 + 12_000),
]
FIRED = [Record("x.fired.alpha", 0, 0, 0, b"a", b"r1 x", [("belfry-fire-id", b"f1")])]
HELD = [SIZE * (9_000 + 2_000), SIZE * 2_000]


def used(begin: int, **figures: int) -> Record:
    at = datetime.fromtimestamp((T0 + begin) / 1000, UTC).isoformat()
    zeros = {"accepted": 0, "fired": 0, "delivered": 0, "held_byte_ms": 0}
    value = json.dumps({"tenant": "alpha", "from": at, **zeros, **figures}).encode()
    return Record("x.metering", 0, 0, 0, b"alpha", value, [])


GOOD = [used(0, accepted=2, held_byte_ms=HELD[0]), used(10_000, fired=1, held_byte_ms=HELD[1])]


def findings(*metering: Record, fired: list[Record] = FIRED) -> list[str]:
    return [each.sentence for each in UsageAudit(SENT, TOLD, fired, LENGTH_MS).run(metering)]


def test_what_is_right_gives_no_finding() -> None:
    assert not findings(*GOOD)


@pytest.mark.parametrize(
    ("metering", "figure"),
    [
        (GOOD[:1], "fired"),
        ([*GOOD, GOOD[0]], "accepted"),
        ([*GOOD, used(0, held_byte_ms=1)], "held_byte_ms"),
        ([*GOOD, used(10_000, delivered=1)], "delivered"),
        ([*GOOD, used(20_000, fired=1)], "fired"),
    ],
)
def test_what_is_wrong_is_found(metering: list[Record], figure: str) -> None:
    assert any(each.startswith(figure) for each in findings(*metering))


def test_what_fired_without_an_outcome_is_found() -> None:
    other = Record("x.fired.alpha", 0, 1, 0, b"a", b"r9", [("belfry-fire-id", b"f9")])
    assert any("no outcome" in each for each in findings(*GOOD, fired=[*FIRED, other]))
