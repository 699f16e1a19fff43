"""Where a side that takes over reads requests on is found, or is not known: never guessed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.host import machine
from belfry.mirror import fencing
from belfry.mirror.carried import CARRIED_FROM
from belfry.mirror.marks import GOES_ON, Activated, MirrorMark
from belfry.store.layout.manifests import Manifest
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
    assert fencing._position(fake_side("b", cluster), 0, 9, 0) == 2
    assert fencing._position(fake_side("b", cluster), 0, 10, 0) == 3


def test_requests_of_a_source_that_was_followed_before_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # This side followed a source that was made anew since, and its requests are kept for a week.
    former, first = (100, 101, 102, 103, 104, 105, 106), 7
    cluster = carried(monkeypatch, *former, 0, 1, 2, 3)
    assert fencing._position(fake_side("b", cluster), 0, 2, first) == first + 2
    assert fencing._position(fake_side("b", cluster), 0, 4, first) == first + 4
    assert fencing._position(fake_side("b", cluster), 0, 0, first) == first


def test_a_take_over_reads_requests_on_where_this_source_had_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = carried(monkeypatch, 100, 101, 102, 0, 1, 2)
    followed = Manifest(60, 2, 2, 900, 1, 4, bytes(16))
    writer: Any = SimpleNamespace(
        begin=lambda *_: None, row=lambda *_: None, beside=lambda *_: None, commit=lambda: None
    )
    mark = MirrorMark(
        "a", "log-a", "log-b", 1, {}, carried=((0, GOES_ON),), requests_from=3
    )  # fmt: skip
    side = fake_side("b", cluster, mark, last_manifest=lambda _: followed)
    said = fencing.activate(writer, side, 0, mark, Activated(9, True, {}), {})
    assert said.endswith("from offset 5")


def test_an_error_is_no_end_of_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = carried(monkeypatch, 7, 8, 9)
    cluster.errors = [FakeMessage(None, 0, code=KafkaError._TRANSPORT)]
    with pytest.raises(ConnectionError, match="kafka: "):
        fencing._position(fake_side("b", cluster), 0, 9, 0)


def test_what_does_not_come_in_time_is_no_end_either(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = carried(monkeypatch, 7, 8, 9)
    cluster.cut_off = True
    side = fake_side("b", cluster)
    clock = iter(range(100))
    monkeypatch.setattr(machine, "monotonic", lambda: float(next(clock)))
    with pytest.raises(ConnectionError, match="not read within"):
        fencing._position(side, 0, 9, 0)
