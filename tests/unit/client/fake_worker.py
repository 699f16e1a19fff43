"""A stand-in for a worker, so that client and commands are tested without one.

It keeps the smallest possible truth about schedules (present or fired), answers each request on
``lifecycle``, and writes what is due at once on ``fired.<tenant>``.
"""

from __future__ import annotations

from threading import Event, Thread
from time import time
from types import TracebackType
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from belfry.kafka import topics
from belfry.kafka.wanted_topics import output_topic_spec
from belfry.schedules.instants import format_instant
from belfry.settings import ClusterSettings, Settings
from belfry.wire import catalogue, framing
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

EMPTY_EVENT: dict[str, Any] = {
    field["name"]: field.get("default") for field in catalogue.schema("LifecycleEvent")["fields"]
}


def settings_for(bootstrap_servers: str, prefix: str) -> Settings:
    """Settings of a belfry that shares a broker with others."""
    cluster = ClusterSettings(topic_prefix=prefix, partitions=2)
    return Settings(bootstrap_servers=bootstrap_servers, cluster=cluster)


class FakeWorker:
    """Answers requests from a thread; `seen` are the requests as they were decoded."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.seen: list[dict[str, Any]] = []
        self.frames: list[framing.FrameKind] = []
        self.records: list[SourceRecord] = []
        self.silent = False
        self._reader = RequestReader()
        self._known: dict[str, str] = {}
        self._stop = Event()
        self._admin = AdminClient(settings.kafka_properties())
        self._producer = Producer(settings.kafka_properties())
        self._thread = Thread(target=self._run, name="fake-worker")

    def __enter__(self) -> Self:
        topics.create(self._admin, self.settings)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def learn(self, schema_id: int, schema: dict[str, Any]) -> None:
        """Know a schema of the registry."""
        self._reader.learn(schema_id, schema)

    def ready_for(self, tenant: str) -> str:
        """Create a tenant's topic; its name."""
        spec = output_topic_spec(self.settings.cluster, self.settings.topic(f"fired.{tenant}"), 1)
        topics.create_topics(self._admin, [spec])
        return spec.name

    def _run(self) -> None:
        consumer = Consumer({**self.settings.kafka_properties(), "group.id": "fake"})
        topic = self.settings.topic("schedules")
        partitions = range(self.settings.cluster.partitions)
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        while not self._stop.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                self._take(message)
        consumer.close()

    def _take(self, message: Any) -> None:
        value, headers = message.value(), message.headers()
        record = (message.offset(), message.timestamp()[1], message.key(), value, headers)
        self.records.append(record)
        self.frames.append(framing.read_frame(value, headers).kind)
        request: Any = self._reader.read(record)
        assert isinstance(request, dict), request
        self.seen.append(request)
        if not self.silent:
            self._answer(request, record, message.partition())

    def _answer(self, request: dict[str, Any], record: SourceRecord, partition: int) -> None:
        event = {**EMPTY_EVENT, "at": int(time() * 1000), "version": 1, **self._judged(request)}
        for name in ("tenant", "schedule_id", "request_id"):
            event[name] = request[name]
        event["source_topic"] = self.settings.topic("schedules")
        event["source_partition"], event["source_offset"] = partition, record[0]
        if event["outcome"] in ("ACCEPTED", "UPDATED"):
            event["due_at"] = request["at"] or record[1] + (request["delay_ms"] or 0)
        self._producer.produce(
            self.settings.topic("lifecycle"),
            key=f"{request['tenant']}/{request['schedule_id']}",
            value=framing.single_object("LifecycleEvent")
            + catalogue.encode("LifecycleEvent", event),
        )
        self._producer.flush(10)

    def _judged(self, request: dict[str, Any]) -> dict[str, Any]:
        name = f"{request['tenant']}/{request['schedule_id']}"
        state = self._known.get(name)
        if request["kind"] in ("EVERY", "CRON"):
            reason = f"Kind {request['kind']} is not carried out: use AT or AFTER."
            return {"outcome": "REJECTED", "code": "kind_not_supported", "reason": reason}
        if request["action"] in ("UPSERT", "CREATE"):
            if request["action"] == "CREATE" and state:
                return {"outcome": "CONFLICT", "reason": "It exists in version 1."}
            self._known[name] = "pending"
            return {"outcome": "UPDATED" if state else "ACCEPTED"}
        if state is None:
            return {"outcome": "NOT_FOUND", "version": None}
        if request["action"] == "CANCEL" and state == "fired":
            return {"outcome": "TOO_LATE"}
        if request["action"] == "CANCEL":
            del self._known[name]
        return {
            "outcome": {
                "CANCEL": "CANCELLED",
                "TRIGGER": "TRIGGERED",
                "PAUSE": "PAUSED",
                "RESUME": "RESUMED",
                "ACK": "UPDATED",
            }[request["action"]]
        }

    def fire(self, tenant: str, schedule_id: str, value: bytes | None, occurrence: int = 0) -> None:
        """Write a fired event, and remember that it fired."""
        self._known[f"{tenant}/{schedule_id}"] = "fired"
        self._producer.produce(
            self.ready_for(tenant),
            key=schedule_id,
            value=value,
            headers=[
                ("color", b"green"),
                ("belfry-fire-id", f"{occurrence:032x}".encode()),
                ("belfry-schedule-id", schedule_id.encode()),
                ("belfry-scheduled-at", format_instant(1_796_115_600_000).encode()),
                ("belfry-occurrence", str(occurrence).encode()),
            ],
        )
        self._producer.flush(10)
