"""The rules of the engine's state machine, through the shell's clients and a real broker."""

from __future__ import annotations

import time
import uuid
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

from belfry.host.clock import SystemClock
from belfry.tenants.effective import Level
from tests.model.log_driver import Cluster, LogDriver
from tests.property.test_engine_model import TENANTS, Partition

# The model lives in another year: the broker has to take the users' stamps as they are.
STAMPS = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(2**62),
    "message.timestamp.before.max.ms": str(2**62),
}


def real(bootstrap: str) -> Cluster:
    """Topics of their own on a real broker."""
    properties: dict[str, Any] = {"bootstrap.servers": bootstrap}
    admin, producer = AdminClient(properties), Producer({**properties, "linger.ms": 0})

    def append(topic: str, record: Any, timestamp_ms: int) -> None:
        """As a user who stamps the records."""
        key, value, headers = record
        producer.produce(
            topic, value, key, partition=0, timestamp=timestamp_ms, headers=headers or []
        )
        assert producer.flush(20) == 0

    def create(topics: list[str]) -> None:
        """Of one partition each, and wait until they are there."""
        new = [NewTopic(topic, 1, 1, config=STAMPS) for topic in topics]
        for future in admin.create_topics(new, operation_timeout=20).values():
            future.result()
        deadline = time.monotonic() + 20
        while not topics_there(admin, topics) and time.monotonic() < deadline:
            time.sleep(0.02)

    return Cluster(properties, SystemClock(), append, create, f"rules-{uuid.uuid4().hex[:12]}.")


def topics_there(admin: AdminClient, topics: list[str]) -> bool:
    """Whether all of them have a leader."""
    known = admin.list_topics(timeout=10).topics
    return all(
        topic in known and all(each.leader >= 0 for each in known[topic].partitions.values())
        for topic in topics
    )


@pytest.mark.timeout(300)
def test_the_rules_hold_on_a_real_broker(kafka: str) -> None:
    class OnBroker(Partition):
        """The same rules; every step is a transaction of a real broker."""

        @initialize(level=st.sampled_from(Level))
        def claim(self, level: Level) -> None:
            self.driver = self.logs = LogDriver(real(kafka), level, TENANTS)
            self.driver.engine.claim(b'{"partitions": 1}')
            self.driver.end(self.now_ms)

        def teardown(self) -> None:
            try:
                super().teardown()
                self.logs.compare()
            finally:
                self.logs.close()

    run_state_machine_as_test(
        OnBroker,
        settings=settings(
            max_examples=6,
            stateful_step_count=12,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
