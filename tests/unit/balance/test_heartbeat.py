"""A heartbeat travels as the metadata of a position, of which Kafka keeps 4 096 bytes."""

from __future__ import annotations

import pytest

from belfry.balance.heartbeat import Heartbeat, read_heartbeat

KAFKA_KEEPS = 4_096


@pytest.mark.parametrize("well", [(), (0,), (3, 5, 200), range(0, 10_000, 2)])
def test_a_heartbeat_travels(well: range | tuple[int, ...]) -> None:
    beat = Heartbeat("belfry-worker-0001", frozenset(well))
    told = beat.encode()
    assert read_heartbeat(told) == beat
    assert len(told) < KAFKA_KEEPS


@pytest.mark.parametrize(
    "told", [None, "", "x", "3", "{}", '{"worker":"w"}', '{"worker":"w","well":3}', '{"well":"z"}']
)
def test_what_is_no_heartbeat_says_nothing(told: str | None) -> None:
    assert read_heartbeat(told) is None


def test_what_a_later_version_adds_is_passed_over() -> None:
    told = '{"format":2,"worker":"w","well":"5","mood":"fine"}'
    assert read_heartbeat(told) == Heartbeat("w", frozenset({0, 2}))
