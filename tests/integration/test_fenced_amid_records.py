"""An owner that is fenced off while its records are under way says so, and lets go of everything.

The client has the error pending then while it tells the fate of each record.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.engine.effects import Effects
from belfry.host.clock import SystemClock
from belfry.kafka.outcome import Fenced
from belfry.kafka.step_producer import ProducerSurroundings
from belfry.kafka.step_records import OutputTopics
from belfry.kafka.transactions import PartitionProducer
from tests.acceptance.harness.site import wait_for

pytestmark = pytest.mark.slow
FEW = range(3)


Make = Callable[..., PartitionProducer]


@pytest.fixture
def owner(kafka: str, unique: Callable[[str], str]) -> Make:
    """Makes one owner after the other of the same partition; `reach` hears of each step."""
    name = unique("changelog")
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    output_topics = OutputTopics(name, "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    properties = {"bootstrap.servers": kafka, "transactional.id": name, "log_level": 0}

    def make(reach: Callable[[str], Any] = str) -> PartitionProducer:
        around = ProducerSurroundings(output_topics, SystemClock(), MagicMock(reach=reach))
        producer = PartitionProducer({**properties, "linger.ms": 0}, 0, around)
        producer.open()
        return producer

    return make


def step() -> Effects:
    """A manifest behind some rows."""
    rows: dict[bytes, bytes | None] = {b"%d" % each: b"row" for each in FEW}
    return Effects(rows=rows | {b"\0": b"manifest"})


def test_a_commit_says_that_it_was_fenced_off(owner: Make) -> None:
    former = owner()
    former.commit(step())
    successor = owner()
    with pytest.raises(Fenced):
        former.commit(step())
    former.close()
    successor.commit(step())
    successor.close()


def test_so_does_one_that_is_told_while_its_records_are(owner: Make) -> None:
    successors: list[PartitionProducer] = []

    def reach(failpoint: str) -> None:
        if failpoint == "S3":
            former._record(step())
            client.flush(20)
            successors.append(owner())

    former = owner(reach)
    client: Any = former._producer
    with pytest.raises(Fenced):
        former.commit(step())
    former.close()
    successors[0].commit(step())
    successors[0].close()


def test_one_that_is_told_while_it_is_given_up_ends_quietly(owner: Make) -> None:
    former = owner()
    client: Any = former._producer
    former.commit(step())
    client.begin_transaction()
    former._record(step())
    client.flush(20)
    successor = owner()
    # The broker's answer to its first record may be there before the last one is written.
    with suppress(KafkaException):
        former._record(step())
    # What was refused waits to be told, and so does the refusal of the whole.
    wait_for("the broker's answer", lambda: _failed(client))
    former.close()
    assert len(client) == 0
    successor.commit(step())
    successor.close()


def _failed(client: Any) -> bool:
    """Whether the client knows that it is fenced off; none of its callbacks is called."""
    try:
        client.begin_transaction()
    except Exception as error:  # noqa: BLE001  # both kinds are KafkaExceptions
        return "FATAL" in repr(error)
    return False
