"""Where the request of a fired event lies, as a consumer gets it."""

from __future__ import annotations

import pytest

from belfry.client import FiredRecord, RequestSource


def event(*values: bytes | None) -> FiredRecord:
    return FiredRecord("t", 0, 0, None, None, b"v", [("belfry-source", each) for each in values])


def test_it_has_topic_partition_and_offset() -> None:
    assert event(b"belfry.schedules/3/4711").source == RequestSource("belfry.schedules", 3, 4711)
    # The last one is belfry's.
    assert event(b"x/1/2", b"belfry.schedules/3/4711").source == ("belfry.schedules", 3, 4711)


@pytest.mark.parametrize(
    "value", [None, b"", b"t", b"t/1", b"t/1/", b"/1/2", b"t/1/2/3", b"t/-1/x", b"t/1/" + b"9" * 19]
)
def test_an_event_that_does_not_say_it_has_none(value: bytes | None) -> None:
    assert event(value).source is None
    assert event().source is None
