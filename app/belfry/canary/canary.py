"""Asks for events on each owned partition, reads the fired events, and writes the results down.

The owner of a partition asks for its events.  No second coordination is needed, because the fence
leaves one owner.  The next owner asks late for events that could not be asked for, as the request
of a user would have waited.  Events that were due before that are never asked for, and so count as
an outage.

    slot begins ─► request ─► belfry.schedules ─► the partition commits ─► known here at once
                                                   └► due 5 s later ─► belfry.canary ─► read here
                                    the results, a second later at most ─► belfry.slo

It reads as users do, and reads the rows of other workers of the last hour.  The lateness of an
event that came while no worker read follows from the timestamp of its record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import structlog
from confluent_kafka import KafkaException, TopicPartition

from belfry.canary.asking import CanaryRequests, accepted_in
from belfry.canary.rows import CanaryRows
from belfry.canary.slots import HOUR_MS, IN_TIME_MS, Probe, decode_row, probe_in
from belfry.client.kafka import Cluster
from belfry.client.watermarks import offsets_since
from belfry.host.background import Background
from belfry.settings import SharedSettings
from belfry.tenants.canary import CANARY_TOPIC, SLO_TOPIC
from belfry.wire.accepted import Told

# Seconds that one turn of the thread reads for.
POLL_S: Final = 0.25
BATCH: Final = 500
# Seconds for brokers to tell the offsets to begin at.
REACH_S: Final = 5.0
# How often results are written.
WRITE_EVERY_MS: Final = 1_000
# For so long rows of others are read, before slots count as not asked for.
LISTEN_MS: Final = 2_000
# An event that is older than this at the start was counted by the process before.
COUNTED_MS: Final = 60_000
# For so long an event is remembered that came while its partition was being taken over.
SEEN_MS: Final = 600_000
MOST_COMMITTED: Final = 10_000

log = structlog.get_logger(__name__)


class ProbeCounters(Protocol):
    """Counters of probes."""

    def probed(self, what: str, events: int = 1) -> None:
        """``asked``, ``registered``, ``fired`` or ``fired_in_time``."""

    def probe_lateness(self, late_ms: int) -> None:
        """How late a reader had a probe's event, in ms."""


class CanaryPlace(NamedTuple):
    """What the canary asks by: its requests, the number of homes, the clock.

    `run` names this run of a process among all that ever write rows.
    """

    asking: CanaryRequests
    partitions: int
    now_ms: Callable[[], float]
    run: str


class Canary:
    """Runs in a thread of its own; `committed` comes from any.

    One interval of ten seconds, at a partition that is owned here:

        12:00:00.000  slot 1 begins: the request is written, asked
        12:00:00.008  the partition's thread says that it committed ACCEPTED: registered
        12:00:05.000  the event is due (5 s after its slot began)
        12:00:05.007  read from belfry.canary: fired, 7 ms late, in time
        12:00:06.000  a row with these bits goes to belfry.slo

    A failure of Kafka ends a turn with an exception, which is logged, and the next turn goes on.
    An event that could not be asked for stays asked and not registered: that is an outage, and it
    is counted as one.
    """

    def __init__(
        self,
        settings: SharedSettings,
        place: CanaryPlace,
        owned: Callable[[], Iterable[int]],
        counters: ProbeCounters,
    ) -> None:
        """`owned` are the partitions of this worker."""
        self._interval_ms = settings.canary_interval_ms
        self._asking, self._now_ms = place.asking, place.now_ms
        self._owned = owned
        self._counters = counters
        self._requests = settings.topic("schedules")
        self._events, self._noted = settings.topic(CANARY_TOPIC), settings.topic(SLO_TOPIC)
        self._rows = CanaryRows(self._noted, place.partitions, place.run)
        properties = settings.kafka_properties()
        self._cluster = Cluster(properties.pop("bootstrap.servers"), properties)
        self._group = f"{settings.cluster.app_id}.canary"
        self._committed: deque[Told] = deque(maxlen=MOST_COMMITTED)
        self._seen: dict[Probe, int] = {}
        self._began_ms = self._wrote_ms = 0.0
        self._producer: Any = None
        self._consumer: Any = None
        self._thread = Background("canary", self._turn, log, "the canary stumbled")
        self._thread.last = self._end

    def start(self) -> None:
        """Begin to ask, unless the canary is off."""
        if self._interval_ms:
            self._thread.start()

    def stop(self) -> None:
        """Write the last results down, and end."""
        self._thread.stop()

    def committed(self, events: Sequence[Told]) -> None:
        """Note outcomes that this worker has just committed; from any thread."""
        if self._interval_ms:
            self._committed.extend(e for e in events if accepted_in(e, self._interval_ms))

    # -- the thread ------------------------------------------------------------------------------

    def _turn(self) -> None:
        """One turn of the thread: ask where a slot has begun, read, settle, write."""
        if self._consumer is None:
            self._begin()
        now_ms = self._now_ms()
        if now_ms >= self._began_ms + LISTEN_MS:
            for partition in self._owned():
                self._ask(partition, int(now_ms))
        left_s = self._interval_ms / 1000 - now_ms / 1000 % (self._interval_ms / 1000)
        self._read(min(POLL_S, left_s))
        self._settle()
        self._note_accepted()
        self._producer.poll(0)
        if self._now_ms() >= self._wrote_ms + WRITE_EVERY_MS:
            self._wrote_ms = self._now_ms()
            self._rows.write(self._producer, self._wrote_ms)

    def _begin(self) -> None:
        """Begin to read at an hour ago: fired events, and the rows of others."""
        producer = self._producer = self._producer or self._cluster.producer()
        consumer = self._cluster.consumer(self._group)
        self._began_ms = self._now_ms()
        since_ms = int(self._began_ms) - HOUR_MS
        places = [
            TopicPartition(topic, partition, since_ms)
            for topic in (self._events, self._noted)
            for partition in self._cluster.partitions(producer, topic)
        ]
        try:
            consumer.assign(offsets_since(consumer, places, REACH_S))
        except KafkaException:
            # The next turn begins with another one.
            consumer.close()
            raise
        self._consumer = consumer

    def _ask(self, partition: int, now_ms: int) -> None:
        """Ask for the events that are to be asked for by now."""
        probes, newly = self._rows.to_ask(partition, self._interval_ms, now_ms)
        self._counters.probed("asked", newly)
        for probe in probes:
            self._rows.mark(probe, "asked")
            asked = self._asking.request(probe)
            # A request that cannot be produced counts as asked for and not accepted.
            with suppress(BufferError, KafkaException):
                self._producer.produce(
                    self._requests, asked.value, asked.key, asked.partition, headers=asked.headers
                )

    def _note_accepted(self) -> None:
        """Note which requests were accepted in time, by the outcomes that were committed here."""
        while self._committed:
            event = self._committed.popleft()
            probe = accepted_in(event, self._interval_ms)
            if probe is None or event.at > probe.due_ms:
                continue
            if self._rows.mark(probe, "registered"):
                self._counters.probed("registered")

    def _read(self, wait_s: float) -> None:
        for message in self._consumer.consume(1, wait_s) + self._consumer.consume(BATCH, 0):
            if message.error() is not None:
                continue
            if message.topic() == self._events:
                self._note_fired(message)
            elif (row := decode_row(message.value())) is not None:
                self._rows.known.add(row)

    def _note_fired(self, message: Any) -> None:
        """Note an event that a reader has, and how late it is."""
        probe = probe_in(message.value())
        if probe is not None:
            stamped_ms = message.timestamp()[1]
            seen_ms = self._now_ms() if stamped_ms >= self._began_ms else stamped_ms
            self._seen.setdefault(probe, max(0, int(seen_ms) - probe.due_ms))

    def _settle(self) -> None:
        """Write down the events of partitions that are owned here now."""
        owned, before_ms = set(self._owned()), self._now_ms() - SEEN_MS
        for probe, late_ms in list(self._seen.items()):
            if probe.partition in owned:
                self._fired(probe, late_ms)
            if probe.partition in owned or probe.due_ms < before_ms:
                del self._seen[probe]

    def _fired(self, probe: Probe, late_ms: int) -> None:
        """Note a fired event, and count it unless another process has done so."""
        known = self._rows.known.of(probe).fired & probe.bit
        fired = self._rows.mark(probe, "fired")
        in_time = late_ms <= IN_TIME_MS and self._rows.mark(probe, "in_time")
        if not fired or known or probe.due_ms < self._began_ms - COUNTED_MS:
            return
        self._counters.probed("fired")
        self._counters.probe_lateness(late_ms)
        if in_time:
            self._counters.probed("fired_in_time")

    def _end(self) -> None:
        """The last turn: write the last results down, and close the clients."""
        if self._consumer is not None:
            with suppress(BufferError, KafkaException):
                self._note_accepted()
                self._rows.write(self._producer, self._now_ms())
            self._producer.flush(1)
            self._consumer.close()
