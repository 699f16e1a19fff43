"""Where a side that takes over reads requests on is found, or is not known: never guessed."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from belfry.host import machine
from belfry.mirror import fencing
from belfry.mirror.carried import CARRIED_FROM
from tests.unit.mirror.stand_ins import REQUESTS_TOPIC, FakeLogs, FakeMessage, fake_side


def carried(monkeypatch: pytest.MonkeyPatch, *offsets: int) -> FakeLogs:
    """A side to which the requests at these offsets of the source were carried."""
    cluster = FakeLogs()
    cluster.readable(monkeypatch)
    for each in offsets:
        cluster.add(REQUESTS_TOPIC, headers=[(CARRIED_FROM, b"%d" % each)])
    return cluster


def test_requests_are_read_on_where_the_source_was(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = carried(monkeypatch, 7, 8, 9)
    assert fencing._position(fake_side("b", cluster), 0, 9) == 2
    assert fencing._position(fake_side("b", cluster), 0, 10) == 3


def test_an_error_is_no_end_of_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = carried(monkeypatch, 7, 8, 9)
    cluster.errors = [FakeMessage(None, 0, code=KafkaError._TRANSPORT)]
    with pytest.raises(ConnectionError, match="kafka: "):
        fencing._position(fake_side("b", cluster), 0, 9)


def test_what_does_not_come_in_time_is_no_end_either(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = carried(monkeypatch, 7, 8, 9)
    cluster.cut_off = True
    side = fake_side("b", cluster)
    clock = iter(range(100))
    monkeypatch.setattr(machine, "monotonic", lambda: float(next(clock)))
    with pytest.raises(ConnectionError, match="not read within"):
        fencing._position(side, 0, 9)
