"""Tenants' own topics side by side: one that has much, or cannot be read, holds up no other."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from belfry.engine.effects import Effects
from belfry.engine.forward import TenantInput
from belfry.engine.reports import SourcePartition
from belfry.kafka import fetcher, librdkafka
from belfry.kafka.fetch_position import Fetched, OffsetGone, Where
from belfry.partitions import tenant_reading
from belfry.partitions.tenant_dependencies import TenantInputDependencies
from belfry.partitions.tenant_input import TenantInputs
from belfry.partitions.tenant_reading import TenantInputReading
from belfry.schedules.identity import Homes
from belfry.telemetry.limited import LimitedLogger
from tests.simulation.record_batches import stored

BUSY, CALM = ("in.busy", 0), ("in.calm", 0)


class Broker:
    """What the topics hold, and what a reading commits."""

    def __init__(self) -> None:
        self.answers: list[Fetched] = []
        self.followed: dict[Where, int] = {}
        self.begins: dict[Where, int] = {}
        self.ends: dict[Where, int] = {}
        self.steps: list[list[bytes | None]] = []
        self.group = "handed"
        self.looked: Callable[[], object] = list

    # The fetcher's part.

    def follow(self, positions: Mapping[Where, int]) -> None:
        self.followed = dict(positions)

    def take(self, _wait_s: float, but: Container[Where] = ()) -> Fetched | None:
        if not self.answers:
            self.looked()
        found = next((each for each in self.answers if each.where not in but), None)
        if found is not None:
            self.answers.remove(found)
        return found

    # The consumer's: nothing is committed yet.

    def committed(self, places: list[TopicPartition], _timeout: float) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition, -1001) for each in places]

    def get_watermark_offsets(self, place: TopicPartition, *_: Any, **__: Any) -> tuple[int, int]:
        return self.begins[place.topic, place.partition], 99

    # The producer's.

    positions: dict[Where, int]

    def open(self) -> None:
        pass

    def commit(self, effects: Effects) -> None:
        self.steps.append([each.key for each in effects.rerouted])

    def close(self) -> None:
        pass


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(fetcher, "Fetcher", lambda *_: made)
    monkeypatch.setattr(librdkafka, "Consumer", lambda _: made)
    monkeypatch.setattr(tenant_reading, "SIP_S", 0.0)
    return made


@pytest.fixture
def given(broker: Broker) -> Any:
    homes = Homes(1)
    tenant_inputs = frozenset(
        TenantInput(SourcePartition(topic, 0, homes), topic.removeprefix("in."))
        for topic, _ in (BUSY, CALM)
    )
    return TenantInputDependencies(
        topics=SimpleNamespace(of=lambda _: tenant_inputs),  # type: ignore[arg-type]
        tenants=SimpleNamespace(secret_of=lambda _: b""),  # type: ignore[arg-type]
        producer=lambda: broker,  # type: ignore[arg-type,return-value]
        consumer_properties={},
        clock=SimpleNamespace(monotonic_ms=lambda: 0.0, wall_ms=lambda: 1.0),  # type: ignore[arg-type]
        metrics=SimpleNamespace(committed=lambda *_: None),  # type: ignore[arg-type]
        readable=lambda places: {each: broker.ends.get(each, 0) for each in places},
    )


@pytest.fixture
def reading(given: Any) -> TenantInputReading:
    made = TenantInputReading(0, given, LimitedLogger(SimpleNamespace()))
    made.open()
    return made


def batches(where: Where, count: int) -> Fetched:
    data = [
        stored(each, 1_000, (f"{where[0]}-{each}".encode(), b"v", None), -1)
        for each in range(count)
    ]
    return Fetched(where, 0, count, b"".join(data))


def test_a_topic_that_has_much_comes_in_turn_with_others(
    broker: Broker, reading: TenantInputReading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_reading, "READ_RECORDS", 2)
    broker.answers = [batches(BUSY, 8)]
    reading.turn(Event())
    broker.answers = [batches(CALM, 2)]
    for _ in range(2):
        reading.turn(Event())
    assert b"in.calm-0" in broker.steps[1] + broker.steps[2]
    for _ in range(3):
        reading.turn(Event())
    handed = [key for step in broker.steps for key in step]
    assert sorted(handed, key=str) == sorted(
        [f"in.busy-{each}".encode() for each in range(8)] + [b"in.calm-0", b"in.calm-1"], key=str
    )
    assert [key for key in handed if key and b"busy" in key] == [
        f"in.busy-{each}".encode() for each in range(8)
    ]


def test_a_topic_without_a_position_is_not_looked_up_before_it_is_read(
    broker: Broker, reading: TenantInputReading
) -> None:
    """A partition that has no leader would hold up all others for as long as it is asked."""
    assert broker.followed == {BUSY: 0, CALM: 0}
    assert not reading.at_ends


def test_a_topic_whose_log_begins_later_is_read_from_there(
    broker: Broker, reading: TenantInputReading
) -> None:
    broker.begins[BUSY] = 5
    broker.answers = [Fetched(BUSY, 0, 0, error=OffsetGone("0 is out of range"))]
    reading.turn(Event())
    assert broker.followed == {BUSY: 5, CALM: 0}
    broker.answers = [Fetched(BUSY, 5, 5), Fetched(CALM, 0, 0)]
    reading.turn(Event())
    assert reading.at_ends


def test_an_end_that_a_new_leader_tells_too_early_is_not_believed(
    broker: Broker, given: Any
) -> None:
    """For a moment it may not know of the last batch, in which a cancel of what is due may be."""
    stopping: list[bool] = []
    inputs = TenantInputs(0, given, lambda: stopping.append(inputs.caught_up))
    broker.ends = {BUSY: 2}
    answers = iter([[Fetched(BUSY, 0, 0), Fetched(CALM, 0, 0)], [], [batches(BUSY, 2)], []])

    def turn_over() -> None:
        broker.answers += next(answers, [])
        seen.append(inputs.caught_up)
        if len(seen) == 5:
            inputs.ask_to_stop()

    seen: list[bool] = []
    broker.looked = turn_over
    inputs._read()
    assert seen[:3] == [False, False, False]
    assert stopping == [True]
    assert broker.steps == [[b"in.busy-0", b"in.busy-1"]]
