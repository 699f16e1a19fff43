"""A redrive from begin to end, on a log in memory: what it reads, when it begins, when it ends."""

from __future__ import annotations

from belfry.client.redrive import Redrive
from belfry.client.refired import FiredSource, RefireRange
from tests.unit.client.redriven_log import NAMES, TOPIC, RedrivenLog, event

FAST = 1_000_000


def redrive(log: RedrivenLog, most_read: int | None = None, name: str = "redrive") -> Redrive:
    return Redrive(log, NAMES, FiredSource(TOPIC, RefireRange(0, 9, name=name)), most_read)


def test_each_event_is_sent_once_in_transactions_of_a_hundred() -> None:
    log = RedrivenLog([event(f"{n}") for n in range(250)])
    assert len(redrive(log).send(per_second=FAST).places) == 250
    assert log.transactions == [100, 100, 50]
    assert not redrive(log).send(per_second=FAST).places
    assert redrive(log).count().redriven == 250
