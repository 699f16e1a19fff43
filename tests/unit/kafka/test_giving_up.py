"""What is given up ends: a producer with its threads, a store with its lock."""

from __future__ import annotations

import gc
import weakref
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from confluent_kafka import Producer

from belfry.host.rocks import RocksMap
from belfry.kafka.giving_up import close_all, give_up
from belfry.partitions.term import Owned


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


def test_one_that_does_not_close_keeps_no_other_open() -> None:
    closed: list[str] = []

    def refuses() -> None:
        raise SystemError("returned a result with an exception set")

    close_all(lambda: closed.append("tenant_inputs"), refuses, lambda: closed.append("rows"))
    assert closed == ["tenant_inputs", "rows"]


def test_an_owner_lets_go_of_its_store_whatever_its_connections_say(tmp_path: Path) -> None:
    everything: Any = {each.name: MagicMock() for each in fields(Owned)}
    for name in ("tenant_inputs", "source", "resolver", "producer"):
        everything[name].close.side_effect = SystemError("an exception set")
    everything["source"].stop.side_effect = SystemError("an exception set")
    everything["rows"] = RocksMap(tmp_path / "partition-0")
    Owned(**everything).close()
    RocksMap(tmp_path / "partition-0").close()
