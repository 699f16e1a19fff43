"""One tenant's events out of the topic that many share: which are whose, and under which key."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Message

from belfry.client.decoding import Decoder
from belfry.client.fired_record import FiredRecord
from belfry.client.handlers import Handlers
from belfry.client.kafka import Cluster
from belfry.client.refired import FiredSource, RefireRange
from belfry.client.subscriber import Subscriber
from belfry.client.tail import Events, Start, fired_record
from belfry.wire import framing
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.headers import FIRE_ID, TENANT
from belfry.wire.record import Headers

SHARED = "belfry.fired"


def record(tenant: bytes | None, offset: int = 0, value: bytes = b"v") -> Message:
    """A record of the shared topic."""
    mine: Headers = [(TENANT, tenant)] if tenant is not None else []
    return Message(
        topic=SHARED, partition=0, offset=offset, key=(tenant or b"") + b"/k", value=value,
        headers=[(FIRE_ID, b"%032d" % offset), *mine], timestamp=(1, 0),
    )  # fmt: skip


def fired(topic: str, key: bytes | None, *headers: tuple[str, bytes | None]) -> FiredRecord:
    return FiredRecord(topic, 0, 0, None, key, b"v", list(headers))


def test_no_payload_says_that_it_is_anothers_event() -> None:
    """It may be an envelope of another tenant, byte for byte, in a record of the user's own."""
    fields = FiredEvent(
        tenant="mail", schedule_id="a", fire_id="f", version=1, occurrence=0,
        scheduled_at=0, due_at=0, fired_at=0,
    )  # fmt: skip
    faked = framing.single_object("FiredEvent") + encode_fired(fields)
    event = fired_record(record(b"shop", value=faked), Decoder("FiredEvent", only=False))
    assert event.event is not None
    assert event.tenant == "shop"


@pytest.mark.parametrize(
    ("event", "tenant", "key"),
    [
        (fired(SHARED, b"shop/k/1", (TENANT, b"shop")), "shop", b"k/1"),
        (fired(SHARED, b"shop/", (TENANT, b"shop")), "shop", b""),
        (fired(SHARED, b"shop/shop/k", (TENANT, b"shop")), "shop", b"shop/k"),
        (fired(f"{SHARED}.shop", b"shop/k", (TENANT, b"shop")), "shop", b"shop/k"),
        (fired(f"{SHARED}.misfired", b"misfired/k"), "misfired", b"misfired/k"),
        (fired("messages", b"shop/k", (TENANT, b"shop")), "shop", b"shop/k"),
        (fired("messages", None), None, None),
    ],
)
def test_whose_it_is_and_the_key_that_was_asked_for(
    event: FiredRecord, tenant: str | None, key: bytes | None
) -> None:
    assert (event.tenant, event.own_key) == (tenant, key)


def test_a_redrive_of_one_tenant_takes_none_of_the_others() -> None:
    asked = RefireRange(5, 9, tenant="shop")
    event: Headers = [(FIRE_ID, b"f"), ("belfry-schedule-id", b"order/1")]
    source = FiredSource(SHARED, asked)
    assert source.wanted(8, [*event, (TENANT, b"shop")]) == ("order/1", None)
    assert source.wanted(8, [*event, (TENANT, b"mail")]) is None
    assert source.wanted(8, event) is None


class Consuming:
    """A consumer that has these records to give, and notes what counts as read."""

    def __init__(self, records: list[Message]) -> None:
        self.records = records
        self.topics: list[str] = []
        self.read: list[int] = []

    def subscribe(self, topics: list[str], **_: Any) -> None:
        self.topics = topics

    def poll(self, _timeout: float) -> Message | None:
        return self.records.pop(0) if self.records else None

    def store_offsets(self, message: Message) -> None:
        self.read.append(message.offset() or 0)

    def close(self) -> None:
        """Nothing is open."""


def test_a_subscriber_handles_its_tenants_and_passes_by_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is passed by counts as read, so the group does not meet it again."""
    names = [b"shop", b"mail", b"calm", b"shop", None, b"shopping"]
    consumer = Consuming([record(name, number) for number, name in enumerate(names)])
    monkeypatch.setattr(Cluster, "consumer", lambda *_, **__: consumer)
    handlers, seen = Handlers(), list[str | None]()
    handlers.on("*")(lambda event: seen.append(event.tenant))
    with Subscriber("nowhere:1", ["shop", "calm"], "group", handlers, shared=True) as subscriber:
        subscriber.run(idle_s=0.01)
    assert consumer.topics == [SHARED]
    assert seen == ["shop", "calm", "shop"]
    assert consumer.read == [0, 1, 2, 3, 4, 5]


def test_a_tail_of_one_tenant_shows_its_events_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a group, those of others count as read before the next is asked for."""
    consumer = Consuming([record(b"mail"), record(b"shop", 1), record(b"mail", 2)])
    cluster = Cluster("nowhere:1", {})
    monkeypatch.setattr(Cluster, "consumer", lambda *_, **__: consumer)
    monkeypatch.setattr(Cluster, "partitions", lambda *_: [0])
    start = Start(group="shop.tail", only="shop")
    with Events(cluster, SHARED, start, "", Decoder("FiredEvent", only=False)) as events:
        first = events.next_within(1)
        assert first is not None
        assert (first.offset, consumer.read) == (1, [0])
        assert events.next_within(0) is None
        assert events.next_within(0) is None
    assert consumer.read == [0, 1, 2]
