"""Events that are sent again: which are asked for, and what their copies are."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.client.refired import FiredSource, RefireRange
from belfry.wire.record import Headers

EVENT: Headers = [("a", None), ("belfry-fire-id", b"f"), ("belfry-schedule-id", b"order/1")]
TOPIC = "belfry.fired.demo"


class Record:
    """A record of an output topic, as Kafka's client has it."""

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 41

    def key(self) -> bytes:
        return b"k"

    def value(self) -> None:
        return None


def source(**said: Any) -> FiredSource:
    return FiredSource(TOPIC, RefireRange(5, 9, **said))


def test_a_copy_is_the_event_with_a_mark_in_its_own_partition() -> None:
    record: Any = Record()
    (copy,) = source(name="monday").again(record, EVENT)
    assert (copy.topic, copy.partition, copy.key, copy.value) == (TOPIC, 3, b"k", None)
    assert copy.headers == [*EVENT, ("belfry-redriven", b"monday@41")]
    assert source(name="monday").marked(copy.headers) == 41
    assert source().marked(copy.headers) is None
    assert source().wanted(8, copy.headers) is None


@pytest.mark.parametrize(
    ("at_ms", "said", "wanted"),
    [
        (8, {}, True),
        (9, {}, False),
        (8, {"schedule_id": "order/1"}, True),
        (8, {"schedule_id": "order/"}, False),
        (8, {"prefix": "order/"}, True),
        (8, {"prefix": "other/"}, False),
    ],
)
def test_the_range_and_the_id_choose(at_ms: int, said: dict[str, str], *, wanted: bool) -> None:
    found = source(**said).wanted(at_ms, EVENT)
    assert found == (("order/1", None) if wanted else None)


def test_what_is_no_event_of_belfry_is_left_alone() -> None:
    assert source().marked([]) is None
    assert source().wanted(8, [("a", b"1")]) is None


@pytest.mark.parametrize("offset", ["\u00b2", "\u0664", "-1", "", "9" * 5_000])
def test_what_is_no_offset_marks_nothing(offset: str) -> None:
    assert source().marked([*EVENT, ("belfry-redriven", f"redrive@{offset}".encode())]) is None


def test_a_header_of_the_users_own_makes_no_copy() -> None:
    forged: Headers = [("belfry-redriven", b"redrive@7"), *EVENT]
    assert source().marked(forged) is None
    assert source().wanted(8, forged) == ("order/1", None)
    assert source().marked(forged[:1]) is None
    # Its own copy is one all the same.
    copied: Headers = [*forged, ("belfry-redriven", b"redrive@41")]
    assert (source().marked(copied), source().wanted(8, copied)) == (41, None)


def test_a_tenant_marks_no_event_of_another_one() -> None:
    mark = ("belfry-redriven", b"redrive@41")
    theirs: Headers = [*EVENT, ("belfry-schedule-tenant", b"mail"), mark]
    assert source(tenant="shop").marked(theirs) is None
    assert source(tenant="mail").marked(theirs) == 41
