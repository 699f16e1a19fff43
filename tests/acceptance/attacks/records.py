"""Attacks by whoever may write requests: what lies in Kafka is read by everybody's worker."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from time import sleep
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, Producer

from belfry.wire import catalogue, framing
from tests.acceptance.attacks.attack import Attack, Refusals, flushed, send, sender
from tests.acceptance.harness.bombs import as_one_batch, outcomes_of
from tests.acceptance.harness.hardened import MALLORY, VICTIM, Hardened, sealed, signed_request
from tests.acceptance.harness.requests import request, request_body
from tests.acceptance.harness.site import now_ms, wait_for

UNKNOWN_IDS: Final = 3_000
# How much the bombs unpack to: what a megabyte of them can.
BOMB_MB: Final = 900
GZIP_MB: Final = 45
BOMB_RECORD_BYTES: Final = 900_000
HEADERS: Final = 450_000
FLOOD: Final = 5_000


def with_unknown_id(number: int) -> bytes:
    """A value that names a schema which nobody knows."""
    return b"\0" + (1_000_000 + number).to_bytes(4, "big") + b"x"


def unsigned_unknown_ids(hardened: Hardened) -> None:
    """Ids that no registry knows, of nobody: refused without a lookup."""
    refusals, producer = Refusals(hardened), sender(hardened)
    with hardened.registry.slow(None):
        # Ids of its own: what the registry has said of one is remembered, and is an answer too.
        for number in range(UNKNOWN_IDS, 2 * UNKNOWN_IDS):
            send(hardened, producer, with_unknown_id(number))
        flushed(producer)
        found = refusals.wait(UNKNOWN_IDS)
        assert found == {"unsigned": UNKNOWN_IDS}, found


def signed_unknown_ids(hardened: Hardened, wait_s: float | None) -> None:
    """The same by a tenant that signs: its budget of lookups is used up, and the rest refused."""
    refusals, producer = Refusals(hardened), sender(hardened)
    with hardened.registry.slow(wait_s):
        for number in range(UNKNOWN_IDS):
            key, value, headers = sealed(MALLORY, with_unknown_id(number))
            send(hardened, producer, value, key=key, headers=headers)
        flushed(producer)
        found = refusals.wait(UNKNOWN_IDS)
    assert set(found) <= {"schema_unavailable", "unknown_schema_id"}, found
    assert found["schema_unavailable"] >= UNKNOWN_IDS - 100, found


def slow_registry(hardened: Hardened) -> None:
    """A registry that takes 100 ms for each no."""
    signed_unknown_ids(hardened, 0.1)


def silent_registry(hardened: Hardened) -> None:
    """A registry that says nothing."""
    signed_unknown_ids(hardened, None)


def silent_strangers_beside_a_new_schema(hardened: Hardened) -> None:
    """Ids without an answer, while the victim writes with schemas that are answered at once.

    They are registered one after the other while the unknown ids wait.  None of its requests is
    refused.
    """
    refusals, producer, own = Refusals(hardened), sender(hardened), hardened.producer(VICTIM)
    unknown, schemas = 0, 8
    with hardened.registry.slow(None):
        for number in range(schemas):
            for _ in range(20):
                unknown += 1
                key, value, headers = sealed(MALLORY, with_unknown_id(10 * UNKNOWN_IDS + unknown))
                send(hardened, producer, value, key=key, headers=headers)
            flushed(producer)
            # What tells it from others is not needed to read it.
            text = {**catalogue.schema("ScheduleRequest"), "doc": f"The victim's {number}"}
            due_ms, schedule_id = now_ms() + 3_600_000, f"new-{now_ms()}-{number}"
            body = request_body(VICTIM, schedule_id, at=due_ms)
            value = framing.prefix(hardened.registry.add(text)) + body
            key, value, headers = sealed(VICTIM, value)
            send(hardened, own, value, key=key, headers=headers)
            flushed(own)
            path = f"/v1/tenants/{VICTIM}/schedules/{schedule_id}"
            wait_for("the victim's schedule", partial(is_there, hardened, path))
            assert hardened.ask("DELETE", path)[0] in (200, 204)
        assert refusals.wait(unknown).total() == unknown


def is_there(hardened: Hardened, path: str) -> bool:
    """Whether the API finds what is at a path."""
    return hardened.ask("GET", path)[0] == 200


def bomb(
    hardened: Hardened, values: Iterator[bytes], count: int, codec: str = "gzip", **more: Any
) -> Producer:
    """Send so many values as one batch, which is a thousandth of what it unpacks to."""
    producer = sender(hardened, **as_one_batch(codec, count))
    for value in values:
        producer.produce(hardened.topic, value, partition=hardened.home, **more)
    flushed(producer)
    return producer


def zeros(hardened: Hardened, megabytes: int, codec: str) -> None:
    """A batch of zeros: each record that is read is refused, and the others as one."""
    refusals = Refusals(hardened)
    count = megabytes * 1_000_000 // BOMB_RECORD_BYTES
    bomb(hardened, (bytes(BOMB_RECORD_BYTES) for _ in range(count)), count, codec)
    wanted = outcomes_of(count, BOMB_RECORD_BYTES)
    assert refusals.wait(wanted).total() == wanted


def zstd_bomb(hardened: Hardened) -> None:
    """As much as a megabyte can hold."""
    zeros(hardened, BOMB_MB, "zstd")


def gzip_bomb(hardened: Hardened) -> None:
    """Beyond what is unpacked at once."""
    zeros(hardened, GZIP_MB, "gzip")


def large_gzip_bomb(hardened: Hardened) -> None:
    """The same, of as much as a megabyte can hold."""
    zeros(hardened, BOMB_MB, "gzip")


def many_headers(hardened: Hardened) -> None:
    """Requests of 900 kB that are headers of two bytes each, and signed: refused undecoded."""
    refusals, count = Refusals(hardened), 20
    nothing = [{"name": "", "value": None}] * HEADERS
    value = request(MALLORY, "many", at=now_ms() + 3_600_000, headers=nothing)
    key, value, headers = sealed(MALLORY, value)
    bomb(hardened, (value for _ in range(count)), count, key=key, headers=headers)
    found = refusals.wait(count)
    assert set(found) <= {"request_too_large", "bad_fields", "schema_unsafe"}, found


def made_up_tenants(hardened: Hardened) -> None:
    """Names that nobody has: each is refused, and no topic is made."""
    refusals, producer, count = Refusals(hardened), sender(hardened), 2_000
    names = [f"made-up-{number}" for number in range(count)]
    for name in names:
        value = request(name, "x", at=now_ms() + 3_600_000)
        send(hardened, producer, value, key=name.encode())
    flushed(producer)
    assert set(refusals.wait(count)) <= {"unknown_tenant", "unsigned"}
    topics = hardened.guarded.admin.list_topics(timeout=10).topics
    assert not [name for name in topics if "made-up" in name]


def forged_names(hardened: Hardened) -> None:
    """Requests in the victim's name, signed by somebody else: a cancel of all that it has."""
    refusals, producer = Refusals(hardened), sender(hardened)
    for number in range(FLOOD):
        value = request(VICTIM, f"v{number}", action="CANCEL")
        _, _, headers = sealed(MALLORY, value)
        send(hardened, producer, value, key=VICTIM.encode(), headers=headers)
    flushed(producer)
    assert refusals.wait(FLOOD) == {"bad_signature": FLOOD}


def colliding_names(hardened: Hardened) -> None:
    """A name that Kafka's metrics take for another tenant's: the other one is not shut out."""
    status, told = hardened.ask("PUT", "/v1/tenants/pay.eu", {})
    assert status == 200, told
    refusals, producer = Refusals(hardened), sender(hardened)
    for _ in range(100):
        send(hardened, producer, request("pay_eu", "x", at=now_ms() + 3_600_000), key=b"pay_eu")
    flushed(producer)
    refusals.wait(100)
    asked = {"schedule_id": "a", "at": now_ms() + 3_600_000}
    status, told = hardened.ask("POST", "/v1/tenants/pay.eu/schedules", asked)
    assert status in (200, 201), told


def unsigned_deliveries(hardened: Hardened) -> None:
    """Requests in the name under which belfry retries webhooks; belfry signs its own."""
    refusals, producer = Refusals(hardened), sender(hardened)
    for number in range(100):
        value = request("belfry-deliveries", f"{number}", at=now_ms(), payload=b"{}")
        send(hardened, producer, value, key=b"belfry-deliveries")
    flushed(producer)
    assert refusals.wait(100) == {"unsigned": 100}


def forged_origins(hardened: Hardened) -> None:
    """A limit of one request a second, and records that claim to be of long ago."""
    policy = {"signing_secret_ref": f"file:{MALLORY}.secret", "max_requests_per_second": 1.0}
    assert hardened.ask("PUT", f"/v1/tenants/{MALLORY}", policy)[0] == 200
    try:
        refusals, producer = Refusals(hardened), sender(hardened)
        for number in range(300):
            key, value, headers = signed_request(MALLORY, f"o{number}", at=now_ms() + 3_600_000)
            origin = {"topic": b"t", "partition": b"0", "offset": b"%d" % number}
            origin["timestamp"] = b"%d" % (1_600_000_000_000 + 10_000 * number)
            headers += [(f"belfry-origin-{name}", each) for name, each in origin.items()]
            send(hardened, producer, value, key=key, headers=headers)
        flushed(producer)
        assert refusals.wait(280)["too_many_requests"] >= 280
    finally:
        del policy["max_requests_per_second"]
        assert hardened.ask("PUT", f"/v1/tenants/{MALLORY}", policy)[0] == 200


def garbage(hardened: Hardened) -> None:
    """Random bytes as keys, values and headers."""
    refusals, producer, chance = Refusals(hardened), sender(hardened), random.Random(7)
    for _ in range(FLOOD):
        name = chance.choice(("belfry-id", "belfry-tenant", "belfry-signature", "x"))
        headers = [(name, chance.randbytes(chance.randrange(30)))]
        value = chance.choice((b"\xc3\x01", b"\0", b"")) + chance.randbytes(chance.randrange(100))
        send(hardened, producer, value, key=chance.randbytes(8), headers=headers)
    flushed(producer)
    # Whose tenant lives elsewhere is sent on, and refused there.
    refusals.wait(FLOOD)


def a_crowd(hardened: Hardened) -> None:
    """Thousands of events of one tenant, due at the same instant: all of them fire."""
    producer, due_ms = sender(hardened), now_ms() + 6_000
    before = len(hardened.site.fired(MALLORY))
    for number in range(FLOOD):
        key, value, headers = signed_request(MALLORY, f"c{due_ms}-{number}", at=due_ms)
        send(hardened, producer, value, key=key, headers=headers)
    flushed(producer)
    sleep(max(0, due_ms - now_ms()) / 1000)
    wait_for("the crowd", lambda: len(hardened.site.fired(MALLORY)) >= before + FLOOD, 60)


def open_transactions(hardened: Hardened) -> None:
    """A transaction that stays open would hide others' requests: there is no right to begin one."""
    producer = sender(hardened, **{"transactional.id": "mallory", "transaction.timeout.ms": 60_000})
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        producer.init_transactions(20)


def others_topics(hardened: Hardened) -> None:
    """Records written straight to where only workers and operators may write."""
    told: list[Any] = []
    for name in ("tenants", "deliveries", "changelog", "lifecycle", f"fired.{VICTIM}"):
        producer = sender(hardened)
        topic = hardened.site.topic(name)
        producer.produce(topic, b"x", VICTIM.encode(), on_delivery=lambda e, _m: told.append(e))
        producer.flush(20)
        assert "AUTHORIZATION" in str(told[-1]), (name, told)


WORST: Final = (
    Attack("signed unknown ids and a silent registry", silent_registry),
    Attack("silent ids beside a new schema of the victim", silent_strangers_beside_a_new_schema),
    Attack("a batch that unpacks to a thousand times its size", gzip_bomb),
    Attack("a batch that Kafka's client never unpacks", zstd_bomb),
    Attack("half a million headers", many_headers),
)
MORE: Final = (
    Attack("a gzip batch as large as it can be", large_gzip_bomb),
    Attack("unsigned unknown ids and a silent registry", unsigned_unknown_ids),
    Attack("signed unknown ids and a slow registry", slow_registry),
    Attack("signed unknown ids and long waits", silent_registry, {"REGISTRY_WAIT_MS": "10000"}),
    Attack("made-up tenants", made_up_tenants),
    Attack("requests in another name", forged_names),
    Attack("names that collide", colliding_names),
    Attack("unsigned deliveries", unsigned_deliveries),
    Attack("forged origins", forged_origins),
    Attack("garbage", garbage),
    Attack("a crowd at one instant", a_crowd),
    Attack("transactions left open", open_transactions),
    Attack("records in topics of others", others_topics),
)
