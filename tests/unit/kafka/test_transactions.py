"""How a transaction ends that cannot be rolled back either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.engine.effects import Effects, Letter
from belfry.kafka import librdkafka
from belfry.kafka.outcome import Aborted, TopicGone, Unknown
from belfry.kafka.row_signing import RowSigner
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.kafka.transactions import PartitionProducer
from belfry.store.layout import keys
from belfry.store.signatures import FILLER, NEAR, RowKeys


def failure(code: int, *, fatal: bool = False, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, "no", fatal, False, abort))


def either(transactional: Any, other: Any) -> Callable[[dict[str, Any]], Any]:
    """Makes the other one of the properties that a producer without transactions adds."""
    return lambda given: other if "acks" in given else transactional


NONE_TO_ABORT: Final = failure(KafkaError.INVALID_TXN_STATE, fatal=True)


def end_of(
    cause: int,
    monkeypatch: pytest.MonkeyPatch,
    abort: KafkaException | None = NONE_TO_ABORT,
) -> BaseException:
    """How a step ends that fails by this; `abort` is how the broker refuses to abort it."""
    client = MagicMock()
    client.commit_transaction.side_effect = failure(cause, abort=True)
    client.abort_transaction.side_effect = abort
    monkeypatch.setattr(librdkafka, "Producer", lambda _properties: client)
    output_topics = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    around = ProducerSurroundings(output_topics, MagicMock(), MagicMock())
    effects: Any = Effects(rows={b"\0": b"manifest"})
    with pytest.raises(Exception) as raised:  # noqa: PT011  # which one is what is asked for
        PartitionProducer({}, 0, around).commit(effects)
    return raised.value


def test_a_right_that_is_missing_is_remembered_where_nothing_could_be_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = end_of(KafkaError.TOPIC_AUTHORIZATION_FAILED, monkeypatch)
    assert isinstance(end, Unknown)
    assert end.blocked


@pytest.mark.parametrize(
    ("cause", "blocked"),
    [(KafkaError.TOPIC_AUTHORIZATION_FAILED, True), (KafkaError.INVALID_RECORD, False)],
)
def test_a_right_that_is_missing_is_remembered_where_all_was_rolled_back(
    cause: int, blocked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = end_of(cause, monkeypatch, None)
    assert isinstance(end, Aborted)
    assert (end.topics, end.blocked) == ({}, blocked)


def test_who_has_a_forgotten_id_neither_rolls_back_nor_asks_for_it_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client could: its roll-back would succeed, whoever has owned the partition meanwhile."""
    end = end_of(KafkaError.INVALID_PRODUCER_ID_MAPPING, monkeypatch, None)
    assert isinstance(end, Unknown)
    assert not end.blocked


def test_another_failure_bars_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    end = end_of(KafkaError.INVALID_RECORD, monkeypatch)
    assert isinstance(end, Unknown)
    assert not end.blocked


def test_a_topic_that_an_earlier_step_sent_to_is_innocent_of_a_later_roll_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, sent = MagicMock(), MagicMock()
    monkeypatch.setattr(librdkafka, "Producer", either(client, sent))
    client.produce.side_effect = failure(KafkaError.INVALID_RECORD, abort=True)
    output_topics = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    producer = PartitionProducer(
        {}, 0, ProducerSurroundings(output_topics, MagicMock(), MagicMock())
    )
    # Purged with the producer, so told by its flush.
    told: list[Any] = []
    sent.produce.side_effect = lambda *_, on_delivery, **__: told.append(on_delivery)
    purged = KafkaError(KafkaError._PURGE_QUEUE, "Local: Purged in queue")
    message = MagicMock(topic=lambda: "innocent")
    sent.flush.side_effect = lambda _timeout: [told.pop()(purged, message) for _ in list(told)]
    fired: Any = [("innocent", b"k", None, b"v", [])]
    first = Effects(rows={b"\0": b"manifest"}, fired=fired, non_transactional={"innocent"})
    for effects in (first, Effects(rows={b"\0": b"manifest"})):
        with pytest.raises(Aborted) as raised:
            producer.commit(effects)
        assert raised.value.topics == {}


@pytest.mark.parametrize("guarantee", ["exactly once", "at least once"])
def test_a_topic_that_goes_while_a_step_writes_to_it_rolls_the_step_back(
    monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    """Its tenant is then held: nobody else's step, and no partition, ends by it."""

    def gone(topic: str) -> int:
        raise TopicGone(topic)

    client = MagicMock()
    monkeypatch.setattr(librdkafka, "Producer", either(client, MagicMock()))
    output_topics = OutputTopics("c", "s", "r", "l", b"", "d", b"", gone)
    producer = PartitionProducer(
        {}, 0, ProducerSurroundings(output_topics, MagicMock(), MagicMock())
    )
    fired: Any = [("doomed", b"k", b"group", b"v", [])]
    effects = Effects(rows={b"\0": b"manifest"}, fired=fired)
    effects.non_transactional = {"doomed"} if guarantee == "at least once" else set()
    with pytest.raises(Aborted) as raised:
        producer.commit(effects)
    assert raised.value.topics == {"doomed": "doomed is not there any more"}
    assert client.abort_transaction.called


@pytest.mark.parametrize("left", [0, 1], ids=["all acknowledged", "something is left in the queue"])
def test_rows_and_their_fillers_are_queued_where_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """A batch could end amid them otherwise, and a stranger's copy lie before the fillers."""
    client, queued, sent = MagicMock(), list[bytes](), list[list[bytes]]()
    message = MagicMock(offset=lambda: 1, timestamp=lambda: (1, 0))

    def produce(_topic: str, _value: Any, key: bytes, **given: Any) -> None:
        queued.append(key)
        if "on_delivery" in given:
            given["on_delivery"](None, message)

    def flush(_seconds: float) -> int:
        sent.append(list(queued))
        queued.clear()
        return left

    client.produce, client.flush = produce, flush
    monkeypatch.setattr(librdkafka, "Producer", lambda _properties: client)
    output_topics = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    clock = MagicMock(both_ms=lambda: (0.0, 0.0))
    producer = PartitionProducer({}, 0, ProducerSurroundings(output_topics, clock, MagicMock()))
    producer.signer = RowSigner(RowKeys(b"k" * 32, "log", 0), 0, int)
    producer.signer.aborted()
    rows: dict[bytes, bytes | None] = {b"t/a": b"row", keys.manifest_key(1): b"manifest"}
    effects: Any = Effects(rows=rows, fired=[("f", b"fired", None, b"", [])])
    if left:
        with pytest.raises(Aborted, match="not acknowledged in time"):
            producer.commit(effects)
        return
    assert producer.commit(effects).next_offset == 2
    part = [b"t/a", keys.manifest_key(1), *[FILLER] * NEAR]
    assert sent == [[b"fired"], part]


def test_a_topic_of_dead_letters_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    client, sent = MagicMock(), list[tuple[Any, ...]]()
    monkeypatch.setattr(librdkafka, "Producer", either(client, MagicMock()))
    message = MagicMock(topic=lambda: "letters")

    def produce(*record: Any, on_delivery: Any = None, **_: Any) -> None:
        sent.append(record)
        if record[0] == "letters" and on_delivery is not None:
            on_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large"), message)

    client.produce = produce
    client.commit_transaction.side_effect = failure(KafkaError.INVALID_RECORD, abort=True)
    output_topics = OutputTopics("c", "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    clock = MagicMock(both_ms=lambda: (0.0, 0.0))
    producer = PartitionProducer({}, 0, ProducerSurroundings(output_topics, clock, MagicMock()))
    effects = Effects(rows={b"\0": b"manifest"}, letters=[Letter("letters", b"k", b"v", [])])
    # A step that fails is watched the second time.
    named = []
    for _ in range(2):
        with pytest.raises(Aborted) as raised:
            producer.commit(effects)
        named.append(raised.value.topics)
    assert named == [{}, {"letters": "too large"}]
    assert sent.count(("letters", b"v", b"k")) == 2
