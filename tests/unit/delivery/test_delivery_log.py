"""The member of the group that delivers: how it begins, and that its end is not waited for."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from belfry.delivery import delivery_log
from belfry.delivery.delivery_log import DeliveryLog
from belfry.delivery.log_clients import consumer_properties
from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.settings import DeliverySettings

SILENT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no coordinator", retriable=True))
FENCED = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))


class Client:
    """Stands in for both clients: what `init_transactions` comes to, and what it was asked."""

    def __init__(self, *ends: Exception | None) -> None:
        self.made: list[str] = []
        self.ends = list(ends)
        self.waited: list[float] = []
        self.subscribed = False
        self.asked: Any = lambda: None

    def __call__(self, properties: dict[str, Any]) -> Client:
        self.made.append(str(properties.get("transactional.id", "")))
        return self

    def init_transactions(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.asked()
        if (error := self.ends.pop(0)) is not None:
            raise error

    def subscribe(self, *_: Any, **__: Any) -> None:
        self.subscribed = True


def opened(client: Client, stopping: Event, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(librdkafka, "Producer", client)
    patch.setattr(librdkafka, "Consumer", client)
    settings = DeliverySettings(bootstrap_servers="one:9092", data_dir=tmp_path)
    DeliveryLog(settings, {}, None, None).open(stopping)


def test_what_a_former_life_left_open_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(SILENT, SILENT, None)
    opened(client, Event(), tmp_path, monkeypatch)
    assert client.subscribed
    assert client.waited == [1.0] * 3


def test_a_worker_that_is_to_stop_waits_for_no_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, stopping = Client(SILENT), Event()
    client.asked = stopping.set
    opened(client, stopping, tmp_path, monkeypatch)
    assert not client.subscribed
    assert client.waited == [1.0]


def test_what_does_not_pass_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(FENCED)
    with pytest.raises(KafkaException, match="fenced"):
        opened(client, Event(), tmp_path, monkeypatch)
    monkeypatch.setattr(delivery_log, "INIT_S", 0.0)
    with pytest.raises(KafkaException, match="no coordinator"):
        opened(Client(SILENT), Event(), tmp_path, monkeypatch)


class Consumer(Client):
    """Stands in for a consumer of partition 0, which is committed at an offset and kept between two
    others.
    """

    def __init__(self, committed: int, low: int, high: int, *events: Any) -> None:
        super().__init__(None)
        self.place, self.kept, self.events = committed, (low, high), events
        self.assigned: list[int] = []

    def subscribe(self, *_: Any, on_assign: Any, **__: Any) -> None:
        on_assign(self, [TopicPartition("belfry.deliveries", 0)])

    def committed(self, partitions: list[TopicPartition], _timeout: float) -> Any:
        return [TopicPartition(each.topic, each.partition, self.place) for each in partitions]

    def get_watermark_offsets(self, *_: Any) -> tuple[int, int]:
        return self.kept

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = [each.offset for each in partitions]

    def poll(self, _timeout: float) -> Any:
        return next(iter(self.events), None)

    def pause(self, _partitions: Any) -> None:
        """Read nothing."""

    def resume(self, _partitions: Any) -> None:
        """Go on."""

    def assignment(self) -> list[Any]:
        return []

    def consume(self, *_: Any) -> list[Any]:
        return list(self.events)


def began(
    client: Consumer, tmp_path: Path, patch: pytest.MonkeyPatch
) -> tuple[DeliveryLog, dict[int, Any]]:
    patch.setattr(librdkafka, "Producer", client)
    patch.setattr(librdkafka, "Consumer", client)
    settings = DeliverySettings(bootstrap_servers="one:9092", data_dir=tmp_path)
    given: dict[int, Any] = {}
    found = DeliveryLog(settings, {}, given.update, None)
    found.open(Event())
    return found, given


def test_what_was_removed_before_it_was_read_is_counted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Consumer(3, 10, 12)
    with capture_logs() as logs:
        _, given = began(client, tmp_path, monkeypatch)
    assert client.assigned == [10]
    assert given[0].removed == 7
    (told,) = logs
    assert told["log_level"] == "error"
    assert (told["topic"], told["at_most"]) == ("belfry.deliveries", 7)


@pytest.mark.parametrize(
    ("committed", "low", "high", "begins"),
    [(5, 0, 9, 5), (5, 5, 5, 5), (OFFSET_INVALID, 3, 9, 3), (50, 0, 9, 0)],
    ids=["kept", "all delivered", "a new group", "a topic made anew"],
)
def test_nothing_is_told_of_where_nothing_was_removed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    committed: int,
    low: int,
    high: int,
    begins: int,
) -> None:
    client = Consumer(committed, low, high)
    with capture_logs() as logs:
        _, given = began(client, tmp_path, monkeypatch)
    assert client.assigned == [begins]
    assert given[0].removed == 0
    assert given[0].kept is (begins == committed)
    assert logs == []


class Happened:
    """A message that says that something has happened."""

    def __init__(self, code: int, offset: int = 0) -> None:
        self._code, self._offset = code, offset

    def error(self) -> KafkaError:
        return KafkaError(self._code)

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


def test_the_end_of_a_partition_is_told_of_and_a_lost_position_ends_the_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Consumer(5, 0, 9, Happened(KafkaError._PARTITION_EOF, 9))
    found, _ = began(client, tmp_path, monkeypatch)
    assert found.read(10, 0.0) == []
    assert found.ends == {0: 9}
    client.events = ()
    found.read(10, 0.0)
    assert found.ends == {}
    client.events = (Happened(KafkaError._AUTO_OFFSET_RESET),)
    with pytest.raises(KafkaException):
        found.read(10, 0.0)


def test_who_has_no_room_hears_all_the_same_that_its_position_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "LONGEST_SILENCE_S", 0.0)
    client = Consumer(5, 0, 9)
    found, _ = began(client, tmp_path, monkeypatch)
    for passes in (KafkaError._TRANSPORT, KafkaError._PARTITION_EOF):
        client.events = (Happened(passes, 9),)
        assert found.read(0, 0.0) == []
        assert found.ends == {}
    client.events = (Happened(KafkaError._AUTO_OFFSET_RESET),)
    with pytest.raises(KafkaException):
        found.read(0, 0.0)


def test_a_position_out_of_the_log_is_an_error_and_the_end_is_asked_for(tmp_path: Path) -> None:
    settings = DeliverySettings(bootstrap_servers="one:9092", data_dir=tmp_path)
    found = consumer_properties(settings, "")
    assert found["auto.offset.reset"] == "error"
    assert found["enable.partition.eof"] is True


def test_a_producer_that_nobody_needs_is_let_go_and_another_one_begins_by_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(machine, "monotonic", lambda: now_s)
    client: Any = Consumer(5, 0, 9)
    client.ends = [None, SILENT, None]
    steps: list[str] = []
    client.poll = lambda _timeout: steps.append("served")
    client.begin_transaction = lambda: steps.append("begun")
    client.consumer_group_metadata = lambda: None
    client.send_offsets_to_transaction = lambda *_: None
    client.commit_transaction = lambda _timeout: steps.append("committed")
    found, _ = began(client, tmp_path, monkeypatch)
    now_s += delivery_log.IDLE_S
    found.read(10, 0.0)
    found.commit([], {})
    assert len(client.waited) == 1
    now_s += delivery_log.IDLE_S + 1
    for _ in range(2):
        found.read(10, 0.0)
    assert steps == ["served", "begun", "committed", "served"]
    found.commit([], {})
    assert len(client.waited) == 3
    assert steps[-2:] == ["begun", "committed"]
    _, first, second = client.made
    assert first == second != ""


def test_a_producer_that_begins_again_has_no_more_time_than_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that stops waits for its last commit."""
    now_s = 100.0
    monkeypatch.setattr(machine, "monotonic", lambda: now_s)
    client: Any = Consumer(5, 0, 9)
    client.ends = [None, *[SILENT] * 99]
    client.poll = lambda _timeout: None
    found, _ = began(client, tmp_path, monkeypatch)
    now_s += delivery_log.IDLE_S + 1
    found.read(10, 0.0)
    before_s = now_s

    def waited() -> None:
        nonlocal now_s
        now_s += delivery_log.LOOK_S

    client.asked = waited
    with pytest.raises(KafkaException):
        found.commit([], {})
    assert now_s - before_s <= delivery_log.COMMIT_S + delivery_log.LOOK_S
