"""A belfry of its own on a shared broker: own topic prefix, own group, own workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.acceptance.harness.reading import Reader, Record, lifecycle_of, read_all
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.worker import Worker

WAIT_S = 20.0
T = TypeVar("T")


def now_ms() -> int:
    """Epoch milliseconds; the broker runs on the same clock."""
    return time.time_ns() // 1_000_000


def wait_for(what: str, found: Callable[[], T], timeout_s: float = WAIT_S) -> T:
    """The first truthy answer of `found`."""
    deadline = time.monotonic() + timeout_s
    while not (answer := found()):
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain for {what}"
        time.sleep(0.05)
    return answer


class Site:
    """Names, topics and workers of one belfry; leaving it kills its workers."""

    def __init__(self, bootstrap: str, name: str, home: Path, **settings: str) -> None:
        """`settings` are given to every worker: ``REGISTRY_WAIT_MS="5000"``."""
        self.bootstrap = bootstrap
        self.name = name
        self.home = home
        self.replicas = 1
        self.kind: type[Worker] = Worker
        self.prefix = f"{name}."
        self.workers: list[Worker] = []
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 1,
                # Where a leader goes away, what is sent again must not be a second request.
                "enable.idempotence": True,
                "log_level": 0,
                "partitioner": "murmur2_random",
                "message.max.bytes": 4_000_000,
            }
        )
        self._settings = {
            "BOOTSTRAP_SERVERS": bootstrap,
            "CLUSTER__TOPIC_PREFIX": self.prefix,
            "CLUSTER__APP_ID": name,
            "SESSION_TIMEOUT_MS": "1500",
            "HEARTBEAT_INTERVAL_MS": "300",
            # ``WRITER=librdkafka pytest …`` runs any test of workers with the other writer.
            **({"TRANSACTION_WRITER": os.environ["WRITER"]} if "WRITER" in os.environ else {}),
            **settings,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for worker in self.workers:
            if error is not None:
                print(f"--- {worker.log}\n{worker.tail()}")  # noqa: T201  # shown where a test fails
            worker.kill()

    def worker(self, **settings: str) -> Worker:
        """One more worker, not started."""
        given = {f"BELFRY_{k}": v for k, v in {**self._settings, **settings}.items()}
        worker = self.kind(self.home / f"worker-{len(self.workers)}", given)
        self.workers.append(worker)
        return worker

    def topic(self, name: str) -> str:
        """Full name of a topic."""
        return self.prefix + name

    def fired_topics(self, tenants: Iterable[str], **config: str) -> None:
        """Create tenants' output topics, stamped by the broker's clock."""
        stamped = {"message.timestamp.type": "LogAppendTime", **config}
        self.create_topics([self.topic(f"fired.{tenant}") for tenant in tenants], stamped)

    def create_topics(self, names: list[str], config: dict[str, str], partitions: int = 4) -> None:
        """Create topics of so many partitions; those that are there stay as they are."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        new = [NewTopic(n, partitions, self.replicas, config=config) for n in names]
        for future in admin.create_topics(new).values():
            error = future.exception(WAIT_S)
            assert error is None or "exists" in str(error), error
        wait_for("new topics", lambda: set(names) <= admin.list_topics(timeout=5).topics.keys())

    def schedules_topic(self, partitions: int = 4) -> None:
        """Create the request topic before the first worker does, and that of the verdicts.

        The broker's clock stamps both, so that an audit can compare them.
        """
        self.create_topics(
            [self.topic("schedules"), self.topic("lifecycle")],
            {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"},
            partitions,
        )

    def send(self, value: bytes | None, **more: Any) -> Any:
        """Produce to the request topic and wait for the broker: the delivered message."""
        told: list[Any] = []
        self.producer.produce(
            self.topic("schedules"), value, on_delivery=lambda e, m: told.append(e or m), **more
        )
        self.producer.flush(WAIT_S)
        assert hasattr(told[0], "offset"), told
        return told[0]

    def ask(self, tenant: str, schedule_id: str, **fields: Any) -> Any:
        """Send a request in Avro, with key = tenant."""
        return self.send(request(tenant, schedule_id, **fields), key=tenant.encode())

    def ask_soon(self, tenant: str, schedule_id: str, **fields: Any) -> None:
        """Like `ask`, without waiting: `producer.flush` does for many of them."""
        value = request(tenant, schedule_id, **fields)
        self.producer.produce(self.topic("schedules"), value, tenant.encode())
        self.producer.poll(0)

    def fired(self, *tenants: str, isolation: str = "read_committed") -> list[Record]:
        """What came out for these tenants, in the order of each partition."""
        topics = [self.topic(f"fired.{tenant}") for tenant in tenants]
        return read_all(self.bootstrap, *topics, isolation=isolation)

    def read(self, topic: str) -> list[Record]:
        """All committed records of a topic."""
        return read_all(self.bootstrap, topic)

    def wait_fired(self, tenant: str, count: int, timeout_s: float = WAIT_S) -> list[Record]:
        """A tenant's fired records, once there are so many."""
        return self.wait_read(
            f"{count} fired of {tenant}",
            f"fired.{tenant}",
            lambda found: found if len(found) >= count else [],
            timeout_s,
        )

    def wait_read(
        self,
        what: str,
        topic: str,
        enough: Callable[[list[Record]], T],
        timeout_s: float = WAIT_S,
    ) -> T:
        """The first truthy answer of `enough` to all committed records of one of its topics.

        One reader asks again and again what was added: a new one for each question takes a core.
        """
        read: list[Record] = []
        with Reader(self.bootstrap) as reader:

            def found() -> T:
                read.extend(reader.read([self.topic(topic)]))
                return enough(read)

            return wait_for(what, found, timeout_s)

    def rejected(self) -> list[Record]:
        """What was refused."""
        return read_all(self.bootstrap, self.topic("rejected"))

    def outcomes(self) -> dict[str, list[dict[str, Any]]]:
        """Lifecycle events by request id."""
        return by_request(self.read(self.topic("lifecycle")))

    def outcome(self, request_id: str, timeout_s: float = WAIT_S) -> dict[str, Any]:
        """The one lifecycle event of a request, once it is there."""
        events = self.wait_read(
            f"an outcome of {request_id}",
            "lifecycle",
            lambda found: by_request(found).get(request_id, []),
            timeout_s,
        )
        assert len(events) == 1, events
        return events[0]


def by_request(records: Iterable[Record]) -> dict[str, list[dict[str, Any]]]:
    """Lifecycle events by request id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for event in map(lifecycle_of, records):
        found.setdefault(event["request_id"] or "", []).append(event)
    return found
