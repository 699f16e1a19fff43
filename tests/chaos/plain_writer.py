"""A plain transactional client beside belfry: how long its transactions take while brokers restart.

Five times a second, or as soon as the last one is committed, it begins a transaction of a record
for each partition of a topic, by librdkafka with its defaults.  `came` tells from when until when
one took, to the answer to its commit; one that fails is aborted and sent again.
"""

from __future__ import annotations

import time
from threading import Event, Thread
from typing import Final

from confluent_kafka import KafkaException, Producer

from tests.acceptance.harness.failover import PARTITIONS
from tests.acceptance.harness.site import Site, now_ms

EVERY_MS: Final = 200
TIMEOUT_S: Final = 60.0


class PlainWriter:
    """`came` holds when each transaction began and when its commit was answered, epoch ms."""

    def __init__(self, site: Site, topic: str) -> None:
        self.came: list[tuple[int, int]] = []
        self._topic = site.topic(topic)
        site.create_topics([self._topic], {})
        self._producer = Producer(
            {"bootstrap.servers": site.bootstrap, "transactional.id": self._topic, "log_level": 0}
        )
        self._producer.init_transactions(TIMEOUT_S)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="plain-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            began_ms = now_ms()
            while not self._sent():
                pass
            self.came.append((began_ms, now_ms()))
            time.sleep(max(0, began_ms + EVERY_MS - now_ms()) / 1000)

    def _sent(self) -> bool:
        """Whether one transaction is committed; False where it was aborted."""
        self._producer.begin_transaction()
        for partition in range(PARTITIONS):
            self._producer.produce(self._topic, b"x", partition=partition)
        while True:
            try:
                self._producer.commit_transaction(TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].retriable():
                    continue
                if not error.args[0].txn_requires_abort():
                    raise
                self._producer.abort_transaction(TIMEOUT_S)
                return False
            return True

    def close(self) -> None:
        """Write no more."""
        self._stopping.set()
        self._thread.join()
