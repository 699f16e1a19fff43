"""Where a log begins and ends is asked again while its leader changes, and only then."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.client import watermarks as module
from belfry.client.watermarks import watermarks

PLACE = TopicPartition("belfry.changelog", 3)


def consumer(*answers: tuple[int, int] | int) -> MagicMock:
    """A consumer with these answers in turn; a number is the code of an error."""
    found = MagicMock()
    found.get_watermark_offsets.side_effect = [
        KafkaException(KafkaError(each)) if isinstance(each, int) else each for each in answers
    ]
    return found


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
    ],
)
def test_a_leader_that_changes_is_asked_again(code: int) -> None:
    asked = consumer(code, code, (7, 4_711))
    assert watermarks(asked, PLACE, 30) == (7, 4_711)
    asked.get_watermark_offsets.assert_called_with(PLACE, 30, cached=False)


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED]
)
def test_an_error_that_stays_is_raised_at_once(code: int) -> None:
    asked = consumer(code, (0, 1))
    with pytest.raises(KafkaException):
        watermarks(asked, PLACE, 30)
    assert asked.get_watermark_offsets.call_count == 1


def test_no_leader_in_time_is_an_error() -> None:
    asked = consumer(*[KafkaError.LEADER_NOT_AVAILABLE] * 3)
    with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
        watermarks(asked, PLACE, -1)
    assert asked.get_watermark_offsets.call_count == 1
