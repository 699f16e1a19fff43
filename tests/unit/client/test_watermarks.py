"""Where a log begins and ends is asked again while its leader changes, and only then."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition

from belfry.client import watermarks as module
from belfry.client.kafka import Cluster
from belfry.client.watermarks import offsets_since, watermarks

ROOT = Path(module.__file__ or "").parents[1]
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
        KafkaError._UNKNOWN_PARTITION,
    ],
)
def test_a_leader_that_changes_is_asked_again(code: int) -> None:
    asked = consumer(code, code, (7, 4_711))
    assert watermarks(asked, PLACE, 30) == (7, 4_711)
    asked.get_watermark_offsets.assert_called_with(PLACE, 30, cached=False)
    # The client keeps that there was no leader, until it hears of one.
    assert [each.args for each in asked.list_topics.call_args_list] == [(PLACE.topic,)] * 2


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


def test_a_partition_that_stays_without_a_leader_is_told_as_that() -> None:
    with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
        watermarks(consumer(*[KafkaError._UNKNOWN_PARTITION] * 3), PLACE, -1)


def test_the_ends_of_a_topic_are_asked_for_again_where_a_partition_has_no_leader() -> None:
    asked = MagicMock()
    partitions = SimpleNamespace(error=None, partitions={0: None})
    asked.list_topics.return_value.topics = {"belfry.usage": partitions}
    there = [TopicPartition("belfry.usage", 0, 17)]
    leaderless = KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
    asked.offsets_for_times.side_effect = [leaderless, there]
    assert Cluster("kafka:9092").ends(asked, "belfry.usage") == there
    assert asked.list_topics.call_count == 2


SINCE = [TopicPartition("belfry.usage", n, 1_800_000_000_000) for n in range(2)]
FOUND = [TopicPartition("belfry.usage", 0, 17), TopicPartition("belfry.usage", 1, OFFSET_END)]


def moving(code: int) -> list[TopicPartition]:
    """The answer of librdkafka where it knows a partition's error: as if no record were there."""
    failed = MagicMock(wraps=TopicPartition("belfry.usage", 1, OFFSET_END))
    failed.error = KafkaError(code)
    return [FOUND[0], failed]


def since(*answers: list[TopicPartition] | int) -> MagicMock:
    """A consumer with these answers in turn; a number is the code of an error of all."""
    found = MagicMock()
    found.offsets_for_times.side_effect = [
        KafkaException(KafkaError(each)) if isinstance(each, int) else each for each in answers
    ]
    return found


@pytest.mark.parametrize(
    "code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE]
)
def test_where_an_instant_lies_is_asked_again_while_a_leader_changes(code: int) -> None:
    asked = since(code, moving(code), FOUND)
    assert offsets_since(asked, SINCE, 30) == FOUND
    assert asked.offsets_for_times.call_count == 3
    assert [each.args for each in asked.list_topics.call_args_list] == [("belfry.usage",)] * 2
    asked.offsets_for_times.assert_called_with(SINCE, timeout=30)


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._TIMED_OUT])
def test_a_partition_that_cannot_be_asked_about_is_none_without_records(code: int) -> None:
    asked = since(moving(code), FOUND)
    with pytest.raises(KafkaException):
        offsets_since(asked, SINCE, 30)
    assert asked.offsets_for_times.call_count == 1


def test_where_an_instant_lies_is_not_asked_for_ever() -> None:
    asked = since(*[moving(KafkaError.NOT_LEADER_FOR_PARTITION)] * 3)
    with pytest.raises(KafkaException, match="NOT_LEADER"):
        offsets_since(asked, SINCE, -1)


def test_who_reads_from_an_instant_on_asks_in_one_way() -> None:
    """Each place in the package that asks by instants asks again, or says why it need not."""
    plain = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if "offsets_for_times(" in path.read_text("utf-8")
    }
    # `kafka.py` and `log_ends.py` ask for ends, and have loops of their own.
    assert plain == {
        "client/kafka.py", "client/watermarks.py", "kafka/log_ends.py", "kafka/offset_client.py",
    }  # fmt: skip
