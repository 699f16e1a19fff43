"""Instants on fired records are RFC 3339 in UTC, to the millisecond."""

from __future__ import annotations

import pytest

from belfry.schedules.instants import format_instant
from belfry.wire.fired import rfc3339


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, b"1970-01-01T00:00:00.000Z"),
        (1_800_000_000_007, b"2027-01-15T08:00:00.007Z"),
        (1_709_164_800_000, b"2024-02-29T00:00:00.000Z"),
        (999, b"1970-01-01T00:00:00.999Z"),
        (-1, b"1969-12-31T23:59:59.999Z"),
        (253_402_300_799_999, b"9999-12-31T23:59:59.999Z"),
    ],
)
def test_instants(ms: int, text: bytes) -> None:
    assert rfc3339(ms) == text


def test_the_slow_way_says_the_same() -> None:
    for ms in range(10**12, 5 * 10**12, 123_456_789_012):
        assert rfc3339(ms).decode() == format_instant(ms)
