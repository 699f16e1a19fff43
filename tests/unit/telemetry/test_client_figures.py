"""Figures of Kafka clients: statistics of librdkafka and of own clients as the same metrics."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError, NodeNotReadyError
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from belfry.kafka.client_properties import untold
from belfry.kafka.measured_client import FETCH, MeasuredClient
from belfry.partitions.gauges import Gauges
from belfry.telemetry.client_figures import UNKNOWN, ClientFigures
from belfry.telemetry.metrics import Metrics


class Shown:
    """The figures of clients named "writer", and the time that they go by."""

    def __init__(self, interval_ms: int = 10_000) -> None:
        self.now_s = 100.0
        self._registry = CollectorRegistry()
        metrics = Metrics(self._registry)._clients
        self.figures = ClientFigures(metrics, "writer", interval_ms, lambda: self.now_s)

    def of(self, name: str, broker: str = "1") -> float | None:
        labels = {"client": "writer", "broker": broker}
        return self._registry.get_sample_value(f"belfry_client_{name}_total", labels)

    def now(self, name: str) -> float | None:
        labels = {"client": "writer"}
        return self._registry.get_sample_value(f"belfry_client_{name}", labels)


@pytest.fixture
def shown() -> Shown:
    return Shown()


def statistics(name: str = "rdkafka#producer-1", kind: str = "producer", **given: int) -> str:
    """Statistics of a client with one broker, as librdkafka writes them."""
    broker = {
        "nodeid": given.get("node", 1),
        "outbuf_cnt": given.get("queued", 0),
        "waitresp_cnt": given.get("asked", 0),
        "txerrs": given.get("errors", 0),
        "rxerrs": 0,
        "req_timeouts": 0,
        "disconnects": given.get("disconnects", 0),
        "rtt": {"cnt": given.get("answers", 0), "sum": given.get("micros", 0)},
        "throttle": {"sum": given.get("throttle_ms", 0)},
    }
    partitions = {"0": {"fetchq_cnt": given.get("fetched", 0)}}
    told = {"name": name, "type": kind, "msg_cnt": given.get("records", 0)}
    told |= {"brokers": {"b": broker}, "topics": {"t": {"partitions": partitions}}}
    return orjson.dumps(told).decode()


def test_windows_add_up_and_counts_are_what_came_since(shown: Shown) -> None:
    shown.figures(statistics(answers=4, micros=8_000, throttle_ms=500, errors=2, disconnects=1))
    shown.figures(statistics(answers=1, micros=2_000, throttle_ms=0, errors=5, disconnects=1))
    assert shown.of("answers") == 5
    assert shown.of("round_trip_seconds") == pytest.approx(0.01)
    assert (shown.of("throttled_seconds"), shown.of("request_errors")) == (0.5, 5)
    assert shown.of("disconnects") == 1


def test_a_client_that_begins_anew_takes_nothing_back(shown: Shown) -> None:
    shown.figures(statistics(errors=7))
    shown.figures(statistics(errors=1))
    shown.figures(statistics("rdkafka#producer-2", errors=3))
    assert shown.of("request_errors") == 10


def test_a_client_that_was_silent_for_long_is_not_counted_from_its_begin(shown: Shown) -> None:
    shown.figures(statistics("a", errors=7, disconnects=2, records=40))
    shown.now_s += 31
    assert shown.now("queue_records") == 0
    shown.figures(statistics("b", errors=1))
    shown.figures(statistics("a", errors=8, disconnects=3, records=4))
    assert (shown.of("request_errors"), shown.of("disconnects")) == (9, 3)
    assert shown.now("queue_records") == 4


def test_of_clients_that_are_gone_so_many_are_remembered_and_no_more(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.telemetry.client_figures.MOST_SILENT", 3)
    for name in "abcdef":
        shown.figures(statistics(name, errors=1))
    # All of them tell, so none is forgotten.
    shown.figures(statistics("a", errors=1))
    assert shown.of("request_errors") == 6
    shown.now_s += 31
    for name in "ag":
        shown.figures(statistics(name, errors=1))
    assert len(shown.figures._told) == 3
    shown.figures(statistics("a", errors=1))
    assert shown.of("request_errors") == 7


@pytest.mark.parametrize("text", ["no JSON", "{}", '{"name": "a", "brokers": {"b": {}}}'])
def test_statistics_that_cannot_be_read_do_not_come_out_of_poll(shown: Shown, text: str) -> None:
    with capture_logs() as lines:
        for _ in range(9):
            shown.figures(text)
    assert len(lines) == 5
    assert {line["client"] for line in lines} == {"writer"}
    shown.figures(statistics(errors=1))
    assert shown.of("request_errors") == 1


def test_a_reader_has_the_broker_wait_which_is_no_round_trip(shown: Shown) -> None:
    shown.figures(statistics(kind="consumer", answers=9, micros=900_000, fetched=30))
    assert (shown.of("answers"), shown.of("round_trip_seconds")) == (0, 0)
    assert shown.now("queue_records") == 30


def test_what_is_under_way_is_the_sum_of_those_that_still_tell(shown: Shown) -> None:
    shown.figures(statistics("a", queued=2, asked=3, records=40))
    shown.figures.begun()
    shown.now_s += 20
    shown.figures(statistics("b", asked=1, records=2))
    assert (shown.now("requests_in_flight"), shown.now("queue_records")) == (7, 42)
    shown.now_s += 20
    shown.figures.ended()
    assert (shown.now("requests_in_flight"), shown.now("queue_records")) == (1, 2)


def test_brokers_that_have_no_number_yet_have_one_name(shown: Shown) -> None:
    shown.figures(statistics(node=-1, errors=1))
    shown.figures(statistics(node=-2, errors=2))
    assert shown.of("request_errors", UNKNOWN) == 2


def test_librdkafka_tells_what_is_read_of_it(shown: Shown) -> None:
    quick = ClientFigures(shown.figures._metrics, "writer", 20)
    nobody = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    client = Producer({**nobody, **quick.properties()})
    deadline = time.monotonic() + 10
    while shown.of("answers", UNKNOWN) is None and time.monotonic() < deadline:
        client.poll(0.05)
    assert shown.of("answers", UNKNOWN) == 0
    assert (shown.of("disconnects", UNKNOWN), shown.of("throttled_seconds", UNKNOWN)) == (0, 0)
    assert (shown.now("requests_in_flight"), shown.now("queue_records")) == (0, 0)


def test_a_client_that_nobody_polls_is_not_asked() -> None:
    given = Shown().figures.properties() | {"acks": "all"}
    assert set(given) == {"stats_cb", "statistics.interval.ms", "acks"}
    assert untold(given) == {"acks": "all"}


def test_an_interval_of_zero_wins_over_an_operators_own() -> None:
    given = {"statistics.interval.ms": 1_000} | Shown(interval_ms=0).figures.properties()
    assert given["statistics.interval.ms"] == 0


class Request:
    def __init__(self, key: int) -> None:
        self.API_KEY = key


class Answer:
    throttle_time_ms = 250


async def asked(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, request: Request, end: Exception | None = None
) -> Any:
    """What comes of a request, which ends in an answer or in an error."""

    async def send(self: Any, node_id: int, asked: Any, *, group: Any) -> Any:
        assert shown.now("requests_in_flight") == 1
        if end is not None:
            raise end
        return Answer()

    monkeypatch.setattr(AIOKafkaClient, "send", send)
    client = MeasuredClient(shown.figures.properties())
    return await client.send(1, request)


async def test_an_own_client_tells_of_each_answer(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(await asked(shown, monkeypatch, Request(0)), Answer)
    assert (shown.of("answers"), shown.of("throttled_seconds")) == (1, 0.25)
    assert 0 < (shown.of("round_trip_seconds") or 0) < 1
    await asked(shown, monkeypatch, Request(FETCH))
    assert (shown.of("answers"), shown.of("throttled_seconds")) == (1, 0.5)
    assert shown.now("requests_in_flight") == 0
    assert shown.of("request_errors") == 0


@pytest.mark.parametrize(
    ("error", "ended"), [(KafkaConnectionError(), 1), (NodeNotReadyError(), 0)]
)
async def test_an_own_client_tells_of_what_had_no_answer(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, error: Exception, ended: int
) -> None:
    with pytest.raises(type(error)):
        await asked(shown, monkeypatch, Request(0), error)
    assert (shown.of("request_errors"), shown.of("disconnects")) == (1, ended)
    assert shown.now("requests_in_flight") == 0


def test_clients_of_one_kind_have_figures_in_common() -> None:
    gauges = Gauges(Metrics(CollectorRegistry()))
    one, other = (gauges.client("writer", 10_000)["stats_cb"] for _ in range(2))
    assert one is other
    assert gauges.client("requests", 10_000)["stats_cb"] is not one
