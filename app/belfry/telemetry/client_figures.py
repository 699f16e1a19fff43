"""Figures of the Kafka clients of a worker: by what a client is for, and by broker.

    librdkafka ── JSON, every few seconds ─┐
                                           ├─► ClientFigures("changelog") ─► metrics
    belfry's own clients ── each answer ───┘

A client gets its figures as the property `stats_cb`, beside its servers: librdkafka calls it with
its statistics, and clients of belfry's own tell it of each request.  What librdkafka tells waits
until its client is polled, so only clients that are polled for as long as they live may have it.

librdkafka counts since its client began, so counters get what came since it told last, however long
that is ago.  Of a client that is gone nothing comes any more: what it told of records and requests
under way counts for three intervals more.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Mapping
from itertools import islice
from threading import Lock
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson
import structlog
from prometheus_client import Counter, Gauge

from belfry.host.errors import named
from belfry.telemetry.limited import LimitedLogger
from belfry.telemetry.metric_maker import MetricMaker

# What librdkafka calls a broker that it does not know the number of yet.
UNKNOWN: Final = "(bootstrap)"
INTERVALS: Final = 3
# Clients that are remembered although they tell no more; one that tells is never forgotten.
MOST_SILENT: Final = 1_000
_ERRORS: Final = ("txerrs", "rxerrs", "req_timeouts")

log = structlog.get_logger(__name__)


class _Told(NamedTuple):
    """What a client of librdkafka told last, and when by the monotonic clock in seconds.

    `disconnects` and `errors` are by broker, since the client began.
    """

    at_s: float
    in_flight: int = 0
    queued: int = 0
    disconnects: Mapping[str, int] = MappingProxyType({})
    errors: Mapping[str, int] = MappingProxyType({})


class _Broker(NamedTuple):
    """The counters of one broker."""

    answers: Any
    round_trip: Any
    throttled: Any
    disconnects: Any
    errors: Any


class ClientMetrics:
    """Metrics of Kafka clients, by kind of client and by broker."""

    def __init__(self, make: MetricMaker) -> None:
        counted = ("answers", "round_trip_seconds", "throttled_seconds", "disconnects")
        names = (f"belfry_client_{each}_total" for each in (*counted, "request_errors"))
        self.counters: list[Counter] = [make.counter(name) for name in names]
        self.in_flight: Gauge = make.gauge("belfry_client_requests_in_flight")
        self.queued: Gauge = make.gauge("belfry_client_queue_records")


class ClientFigures:
    """Figures of all clients of one kind; from any thread."""

    def __init__(
        self,
        metrics: ClientMetrics,
        client: str,
        interval_ms: int,
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        """`client` says what they are for; librdkafka tells every `interval_ms`, 0: never."""
        self._metrics = metrics
        self._client = client
        self._interval_ms = interval_ms
        self._now_s = now_s
        self._lock = Lock()
        self._log = LimitedLogger(log, clock=now_s)
        # The one that has told last comes last.
        self._told: dict[str, _Told] = {}
        self._brokers: dict[str, _Broker] = {}
        self._own = 0
        metrics.in_flight.labels(client).set_function(self._in_flight)
        metrics.queued.labels(client).set_function(self._queued)

    def properties(self) -> dict[str, Any]:
        """What the properties of a client get, so that it tells its figures.

        They win over an operator's own interval, as whatever is told is counted here.
        """
        return {"stats_cb": self, "statistics.interval.ms": self._interval_ms}

    # -- a client of librdkafka --------------------------------------------------------------------

    def __call__(self, text: str) -> None:
        """Take the statistics of a client, as librdkafka's STATISTICS.md describes them.

        Raises nothing: an error would come out of the client's `poll`, and end who reads or writes.
        """
        try:
            self._take(text)
        except Exception as error:  # noqa: BLE001  # see above
            event = "the statistics of a Kafka client could not be read"
            self._log.warning("client_statistics", event, client=self._client, error=named(error))

    def _take(self, text: str) -> None:
        told = orjson.loads(text)
        brokers = list(told["brokers"].values())
        now_s, name = self._now_s(), str(told["name"])
        disconnects, errors = Counts[str](), Counts[str]()
        for broker in brokers:
            label = _label(broker)
            disconnects[label] += broker.get("disconnects", 0)
            errors[label] += sum(broker[each] for each in _ERRORS)
            self._add_window(broker, reads=told["type"] == "consumer")
        in_flight = sum(max(0, each["outbuf_cnt"]) + each["waitresp_cnt"] for each in brokers)
        now = _Told(now_s, in_flight, _waiting(told), disconnects, errors)
        with self._lock:
            before = self._told.pop(name, _Told(now_s))
            self._told[name] = now
            self._forget()
        for label in disconnects:
            of = self._broker(label)
            of.disconnects.inc(max(0, disconnects[label] - before.disconnects.get(label, 0)))
            of.errors.inc(max(0, errors[label] - before.errors.get(label, 0)))

    def _forget(self) -> None:
        """Forget who has been silent for longest, where there are too many; the lock is held.

        Not by time alone: a client that nobody polled for a while would be counted from its begin
        once more.
        """
        late_s, too_many = self._late_s(), max(0, len(self._told) - MOST_SILENT)
        for name, each in list(islice(self._told.items(), too_many)):
            if each.at_s < late_s:
                del self._told[name]

    def _add_window(self, broker: Mapping[str, Any], *, reads: bool) -> None:
        """Add what librdkafka measured of a broker since it told last."""
        of, trip = self._broker(_label(broker)), broker["rtt"]
        # Who reads has the broker wait until there is something.
        if not reads:
            of.answers.inc(trip["cnt"])
            of.round_trip.inc(trip["sum"] / 1_000_000)
        of.throttled.inc(broker["throttle"]["sum"] / 1000)

    # -- a client of belfry's own ------------------------------------------------------------------

    def begun(self) -> None:
        """A request leaves."""
        with self._lock:
            self._own += 1

    def ended(self) -> None:
        """It was answered, or was not."""
        with self._lock:
            self._own -= 1

    def answered(self, node: int, seconds: float | None, throttle_ms: int) -> None:
        """A broker answered after so long; None where the request asked it to wait."""
        of = self._broker(str(node))
        if seconds is not None:
            of.answers.inc()
            of.round_trip.inc(seconds)
        if throttle_ms:
            of.throttled.inc(throttle_ms / 1000)

    def failed(self, node: int, *, disconnected: bool) -> None:
        """A request got no answer."""
        of = self._broker(str(node))
        of.errors.inc()
        if disconnected:
            of.disconnects.inc()

    # -- both --------------------------------------------------------------------------------------

    def _broker(self, label: str) -> _Broker:
        """The counters of a broker; all of them are there, at 0, once one of them is asked for."""
        found = self._brokers.get(label)
        if found is None:
            made = (each.labels(self._client, label) for each in self._metrics.counters)
            found = self._brokers[label] = _Broker(*made)
        return found

    def _in_flight(self) -> float:
        return self._own + sum(each.in_flight for each in self._alive())

    def _queued(self) -> float:
        return sum(each.queued for each in self._alive())

    def _alive(self) -> list[_Told]:
        """What was told last by clients that still tell."""
        late_s = self._late_s()
        with self._lock:
            return [each for each in self._told.values() if each.at_s >= late_s]

    def _late_s(self) -> float:
        """Who has told nothing since then tells no more."""
        return self._now_s() - INTERVALS * self._interval_ms / 1000


def _label(broker: Mapping[str, Any]) -> str:
    return str(broker["nodeid"]) if broker["nodeid"] >= 0 else UNKNOWN


def _waiting(told: Mapping[str, Any]) -> int:
    """Records that wait in a client: to be sent, or to be taken."""
    fetched = sum(
        each["fetchq_cnt"]
        for topic in told["topics"].values()
        for each in topic["partitions"].values()
    )
    return int(told["msg_cnt"]) + int(fetched)
