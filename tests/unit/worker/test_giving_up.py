"""A producer that is given up ends, with its threads, whatever it had not sent."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from confluent_kafka import Producer

from belfry.worker.giving_up import give_up


class Owner:
    """Holds a producer, and has told it whom to tell of a message."""

    def __init__(self) -> None:
        # Nobody listens there: the message is never sent.
        self.producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
        self.told: list[Any] = []
        self.producer.produce("topic", b"value", on_delivery=self._hear)

    def _hear(self, error: Any, _message: Any) -> None:
        self.told.append(error)


def test_nothing_of_it_stays_behind() -> None:
    owner = Owner()
    told, left = owner.told, weakref.ref(owner)
    give_up(owner.producer)
    assert len(told) == 1
    del owner
    gc.collect()
    assert left() is None
