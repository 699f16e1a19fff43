"""What stands in for confluent-kafka's classes: same names, same errors, as the shell uses them.

An EndTxn has four fates: it arrives and is answered; it is lost; it arrives and the answer is lost;
or it arrives late, when the client has long given up.  The last three look alike to the client: a
time-out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.broker import OFFSETS, Broker, Entry, Headers, Log, Refused
from tests.simulation.machine import machine
from tests.simulation.murmur import partition_of
from tests.simulation.replication import LOOK_MS
from tests.simulation.stage import here

CODES: Final = {
    "fenced": KafkaError.INVALID_PRODUCER_EPOCH,
    "forgotten": KafkaError.INVALID_PRODUCER_ID_MAPPING,
    "state": KafkaError.INVALID_TXN_STATE,
    "unknown_topic": KafkaError.UNKNOWN_TOPIC_OR_PART,
    "refused": KafkaError.TOPIC_AUTHORIZATION_FAILED,
}
# As long as this, and all that is queued for a partition meanwhile leaves in one batch.
LINGERS_MS: Final = 5_000
# A flush without a limit gives up after so long.
LONGEST_MS: Final = 60_000.0
Record = tuple[bytes | None, bytes | None, Headers | None]


def _bytes(given: str | bytes | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


def failure(
    code: int, reason: str, *, retriable: bool = False, fatal: bool = False, abort: bool = False
) -> KafkaException:
    """An exception as librdkafka raises it."""
    return KafkaException(KafkaError(code, reason, fatal, retriable, abort))


def _timed_out(what: str) -> KafkaException:
    return failure(KafkaError._TIMED_OUT, f"{what} timed out", retriable=True)


def _waiting(timeout_s: float, what: str) -> Callable[[float], None]:
    """A wait of some milliseconds, again and again, that times out after so many seconds in all."""
    until_ms = here().now_ms + (timeout_s * 1000 if timeout_s >= 0 else LONGEST_MS)

    def wait(ms: float) -> None:
        if here().now_ms >= until_ms:
            raise _timed_out(what)
        here().sleep(ms)

    return wait


def metadata(broker: Broker, known: dict[str, list[Log]] | None = None) -> Any:
    """What clients are told of the cluster, and of topics as they are `known`."""
    leader = SimpleNamespace(leader=1, replicas=[1], isrs=[1], error=None)
    topics = {
        name: SimpleNamespace(
            topic=name, error=None, partitions={log.partition: leader for log in logs}
        )
        for name, logs in (broker.topics if known is None else known).items()
    }
    return SimpleNamespace(
        cluster_id="simulated", brokers={1: "one"}, topics=topics, controller_id=1
    )


class SimMessage:
    """`Message`: a record that was read, an end of partition, or a delivery report."""

    def __init__(self, log: Log, entry: Entry | None, error: KafkaError | None, at: int) -> None:
        self._log, self._entry, self._error, self._at = log, entry, error, at

    def error(self) -> KafkaError | None:
        """Why there is no record."""
        return self._error

    def topic(self) -> str:
        """The topic's name."""
        return self._log.topic

    def partition(self) -> int:
        """The partition's number."""
        return self._log.partition

    def offset(self) -> int:
        """The record's offset, or that of the end."""
        return self._at

    def timestamp(self) -> tuple[int, int]:
        """Type (append time) and milliseconds."""
        return (2, self._entry.timestamp_ms if self._entry is not None else -1)

    def key(self) -> bytes | None:
        """The record's key."""
        return None if self._entry is None else self._entry.key

    def value(self) -> bytes | None:
        """The record's value."""
        return None if self._entry is None else self._entry.value

    def headers(self) -> Headers | None:
        """The record's headers; None for none."""
        return None if self._entry is None else self._entry.headers or None


class SimProducer:
    """`Producer` with a transactional id."""

    def __init__(self, properties: dict[str, Any], **_: Any) -> None:
        self._machine = machine()
        self._broker = self._machine.broker
        self._name = str(properties["transactional.id"])
        self._timeout_ms = float(properties["transaction.timeout.ms"])
        # A producer that lingers keeps a batch that is not full until it is flushed.
        lingers = properties.get("linger.ms", 5) > LINGERS_MS
        self._keeps = "belfry.changelog" if lingers else ""
        self._epoch = -1
        self._queue: list[tuple[str, int, Record, Callable[[Any, Any], None] | None]] = []
        self._reports: list[tuple[Callable[[Any, Any], None], Any, Any]] = []
        self._error: KafkaException | None = None
        self._fenced = False
        self._begun = False
        # Batches that not all replicas have yet: where, what, and the last offset.
        self._unacked: list[tuple[Log, Sequence[Any], list[Entry], int]] = []

    def init_transactions(self, timeout: float = -1) -> None:
        """Fence whoever has this transactional id."""
        here().check()
        if not self._machine.travel(timeout * 1000):
            raise _timed_out("init_transactions")
        self._epoch = self._broker.init(self._name, _waiting(timeout, "init_transactions"))
        self._machine.travel(timeout * 1000)

    def begin_transaction(self) -> None:
        """Begin; nothing is sent."""
        self._alive()
        self._begun = True

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        on_delivery: Callable[[Any, Any], None] | None = None,
        headers: Any = None,
        **_: Any,
    ) -> None:
        """Queue a record; some of the queue may leave at once."""
        self._alive()
        key, value = _bytes(key), _bytes(value)
        if partition < 0:
            partition = self._partition(topic, key)
        listed = list(headers.items()) if isinstance(headers, dict) else headers
        if listed:
            listed = [(name, _bytes(given)) for name, given in listed]
        self._queue.append((topic, partition, (key, value, listed), on_delivery))
        eager = self._machine.weather.strikes(self._machine.weather.eager)
        if eager and not self._broker.busy(self._name):
            self._send_some(here().random.randint(1, len(self._queue)))

    def produce_batch(
        self, topic: str, messages: Sequence[dict[str, Any]], partition: int = -1, **_: Any
    ) -> int:
        """Queue records; how many were taken."""
        for message in messages:
            self.produce(topic, message.get("value"), message.get("key"), partition)
        return len(messages)

    def send_offsets_to_transaction(
        self, positions: Sequence[Any], group: str, timeout: float = -1
    ) -> None:
        """Commit offsets of a group with the transaction: `group` is what its member says it is."""
        self._alive()
        wait = _waiting(timeout, "send_offsets_to_transaction")
        while self._broker.busy(self._name):
            wait(2.0)
        if not self._machine.travel(timeout * 1000):
            raise _timed_out("send_offsets_to_transaction")
        if OFFSETS not in self._broker.topics:
            self._broker.create(OFFSETS, 1)
        kept = {
            (group, each.topic, each.partition): (each.offset, each.metadata or "")
            for each in positions
        }
        self._send_batch(OFFSETS, 0, [((group.encode(), repr(kept).encode(), None), None)])
        if self._error is not None:
            raise self._error
        txn = self._broker.begin((self._name, self._epoch), self._timeout_ms)
        txn.offsets |= kept

    def _partition(self, topic: str, key: bytes | None) -> int:
        count = len(self._broker.topics.get(topic, ())) or 1
        return here().random.randrange(count) if key is None else partition_of(key, count)

    def _alive(self) -> None:
        here().check()
        if self._fenced:
            raise failure(CODES["fenced"], "this producer was fenced", fatal=True)

    def _send_some(self, count: int) -> None:
        """Send the first records, but none of a partition before all of a batch is there.

        Batches of outputs are taken for full.  Those of the changelog are told where to end.
        """
        kept = [each for each in self._queue[:count] if each[0] == self._keeps]
        self._queue[:count] = [each for each in self._queue[:count] if each[0] != self._keeps]
        sent, behind = self._queue[: count - len(kept)], self._queue[count - len(kept) :]
        self._queue = [*sent, *kept, *behind]
        self._send(len(sent))

    def _send(self, count: int) -> None:
        """Send the first records of the queue; a failure is told by the commit."""
        self._acknowledge()
        sent, self._queue = self._queue[:count], self._queue[count:]
        for (topic, partition), queued in groupby(sent, key=lambda each: each[:2]):
            if self._machine.cut:
                self._error = self._error or _timed_out("a record")
                return
            self._send_batch(topic, partition, [each[2:] for each in queued])

    def _send_batch(self, topic: str, partition: int, queued: Sequence[Any]) -> None:
        """Records of one partition, which nothing comes between."""
        place, producer = (topic, partition), (self._name, self._epoch)
        records = [record for record, _ in queued]
        try:
            entries = self._broker.produce(producer, place, records, self._timeout_ms)
        except Refused as refused:
            self._refuse(refused, Log(topic, partition), queued)
            return
        log = self._broker.log(topic, partition)
        if log.replicas is None:
            self._report(log, queued, entries)
        else:
            self._unacked.append((log, queued, entries, len(log.replicas.cuts)))

    def _refuse(self, refused: Refused, log: Log, queued: Sequence[Any]) -> None:
        error = KafkaError(CODES[refused.kind], str(refused))
        if refused.kind == "forgotten":
            self._machine.struck.append("id forgotten")
        self._fenced = self._fenced or refused.kind == "fenced"
        self._error = self._error or failure(
            error.code(), error.str(), fatal=self._fenced, abort=not self._fenced
        )
        message = SimMessage(log, None, error, -1)
        self._reports += [(report, error, message) for _, report in queued if report is not None]

    def _report(self, log: Log, queued: Sequence[Any], entries: Sequence[Entry]) -> None:
        for (_, report), entry in zip(queued, entries, strict=True):
            if report is not None:
                self._reports.append((report, None, SimMessage(log, entry, None, entry.offset)))

    def _acknowledge(self) -> None:
        """Report what all replicas have by now; send again, in order, what elections have lost."""
        if self._machine.cut:
            return
        unacked, self._unacked = self._unacked, []
        for log, queued, entries, elections in unacked:
            assert log.replicas is not None
            if log.replicas.is_lost(entries[-1].offset, elections):
                self._send_batch(log.topic, log.partition, queued)
                if self._unacked and self._unacked[-1][2][0].txn is not None:
                    # What was sent first of two partitions now comes behind.
                    self._unacked[-1][2][0].txn.in_batches = True
            elif log.replicas.high > entries[-1].offset:
                self._report(log, queued, entries)
            else:
                self._unacked.append((log, queued, entries, elections))

    def flush(self, timeout: float = -1) -> int:
        """Send what is queued; how much is left."""
        self._alive()
        wait = _waiting(timeout, "flush")
        while self._broker.busy(self._name):
            wait(2.0)
        if self._queue and not self._machine.travel(timeout * 1000):
            raise _timed_out("flush")
        self._send(len(self._queue))
        until_ms = here().now_ms + (timeout * 1000 if timeout >= 0 else LONGEST_MS)
        while self._unacked and here().now_ms < until_ms:
            here().sleep(LOOK_MS)
            self._acknowledge()
        reports, self._reports = self._reports, []
        for report, error, message in reports:
            report(error, message)
        return len(self._queue) + len(self._unacked)

    def poll(self, timeout: float = -1) -> int:
        """Serve delivery reports; without a wait where there is nothing to send."""
        if timeout == 0 and not self._queue:
            here().check()
            return 0
        return self.flush(timeout)

    def commit_transaction(self, timeout: float = -1) -> None:
        """Flush, then EndTxn."""
        left = self.flush(timeout)
        if self._error is not None:
            raise self._error
        if left:
            raise _timed_out("commit_transaction")
        self._end("commit", timeout * 1000)

    def abort_transaction(self, timeout: float = -1) -> None:
        """Drop what is queued, then EndTxn."""
        self._alive()
        self._queue.clear()
        self._unacked.clear()
        self._reports.clear()
        if self._error is not None and self._error.args[0].code() == CODES["forgotten"]:
            # The client asks for the id anew and goes on, whoever had it meanwhile.
            self.init_transactions(timeout)
        else:
            self._end("abort", timeout * 1000)
        self._error = None

    def _end(self, outcome: str, timeout_ms: float) -> None:
        fate = self._machine.weather.end_fate()
        stage, producer = here(), (self._name, self._epoch)
        if fate == "late":
            self._machine.struck.append("late EndTxn")
            stage.later(stage.random.random() * 2 * timeout_ms, lambda: self._late(outcome))
        if fate in ("late", "lost") or not self._machine.travel(timeout_ms):
            stage.sleep(timeout_ms)
            raise _timed_out(f"{outcome}_transaction")
        try:
            self._broker.end(producer, outcome)
        except Refused as refused:
            self._fenced = True
            raise failure(CODES[refused.kind], str(refused), fatal=True) from None
        self._machine.reach("S6")
        if fate == "unheard" or not self._machine.travel(timeout_ms):
            self._machine.struck.append("lost reply")
            stage.sleep(timeout_ms)
            raise _timed_out(f"{outcome}_transaction")
        self._begun = False

    def _late(self, outcome: str) -> None:
        # Nobody hears the answer.
        with suppress(Refused):
            self._broker.end((self._name, self._epoch), outcome)

    def purge(self, **_: Any) -> None:
        """Drop what is queued."""
        self._queue.clear()
        self._unacked.clear()

    def __len__(self) -> int:
        return len(self._queue) + len(self._unacked)


def headers_of(message: SimMessage) -> Headers:
    """As `belfry.client.kafka.headers_of`, which asks confluent-kafka's own class."""
    return message.headers() or []
