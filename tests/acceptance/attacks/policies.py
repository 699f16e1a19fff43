"""Attacks by whoever may set a policy, from its tenant's administrator to the operator."""

from __future__ import annotations

from time import sleep
from typing import Any, Final

from tests.acceptance.attacks.attack import Attack, Refusals, flushed, send, sender
from tests.acceptance.harness.hardened import MALLORY, VICTIM, Hardened, policy_of, signed_request
from tests.acceptance.harness.requests import policy
from tests.acceptance.harness.site import now_ms

HELD: Final = "held"
RESERVED: Final = (
    "tenants", "deliveries", "changelog", "schedules", "lifecycle", "rejected", f"fired.{VICTIM}",
)  # fmt: skip
STRANGE_PLACES: Final = (
    "file:/dev/zero", "file:/dev/stdin", "file:/etc/passwd", "file:../../../etc/passwd",
    "file:/proc/self/environ", "env:BELFRY_HTTP_WORKER_SECRET", "env:PATH",
)  # fmt: skip


def reserved_topics(hardened: Hardened) -> None:
    """No policy has events written into a topic of belfry's, Kafka's or another tenant's."""
    place = f"/v1/tenants/{MALLORY}"
    topics = [hardened.site.topic(name) for name in RESERVED]
    for topic in (*topics, "__consumer_offsets", "__transaction_state"):
        asked = {**policy_of(MALLORY), "output_topic": topic}
        assert hardened.ask("PUT", place, asked, who=MALLORY)[0] == 403, topic
        assert hardened.ask("PUT", place, asked)[0] == 422, topic
    # An operator's record, past all that asks: its tenant's events wait, and nothing is written.
    tenants = hardened.site.topic("tenants")
    written = policy(HELD, output_topic=tenants, **policy_of(MALLORY))
    before = {(each.partition, each.offset) for each in hardened.site.read(tenants)}
    _write(hardened, HELD, written)
    asked = {"schedule_id": "a", "at": now_ms() + 500}
    status, told = hardened.ask("POST", f"/v1/tenants/{HELD}/schedules", asked)
    assert status < 500, told
    sleep(2)
    found = [
        each.key
        for each in hardened.site.read(tenants)
        if (each.partition, each.offset) not in before
    ]
    assert found == [HELD.encode()], found


def secrets_elsewhere(hardened: Hardened) -> None:
    """A secret lies in its folder: no device, no pipe, no other file, no other variable."""
    for reference in STRANGE_PLACES:
        asked = {"signing_secret_ref": reference}
        assert hardened.ask("PUT", f"/v1/tenants/{MALLORY}", asked, who=MALLORY)[0] == 403
        status, told = hardened.ask("PUT", f"/v1/tenants/{MALLORY}", asked)
        assert status == 422, (reference, told)
    # The same as an operator's record: the worker reads what it may, and refuses the tenant.
    _write(hardened, MALLORY, policy(MALLORY, signing_secret_ref="file:/dev/zero"))
    sleep(3)
    try:
        refusals, producer = Refusals(hardened), sender(hardened)
        for number in range(50):
            key, value, headers = signed_request(MALLORY, f"z{number}", at=now_ms() + 3_600_000)
            send(hardened, producer, value, key=key, headers=headers)
        flushed(producer)
        assert set(refusals.wait(50)) <= {"bad_signature", "unsigned"}
    finally:
        _write(hardened, MALLORY, policy(MALLORY, **policy_of(MALLORY)))
        sleep(3)


def policies_on_and_off(hardened: Hardened) -> None:
    """Its own policy, changed as fast as it can be."""
    for number in range(100):
        asked: dict[str, Any] = {"paused": number % 2 == 0, "lifecycle": "ALL"}
        status, told = hardened.ask("PUT", f"/v1/tenants/{MALLORY}", asked, who=MALLORY)
        assert status in (200, 429), told
    status, told = hardened.ask("PUT", f"/v1/tenants/{MALLORY}", policy_of(MALLORY))
    assert status == 200, told


def _write(hardened: Hardened, tenant: str, value: bytes) -> None:
    """A record of the topic of policies, as an operator with its rights may write it."""
    producer = hardened.site.producer
    producer.produce(hardened.site.topic("tenants"), value, tenant.encode())
    assert producer.flush(20) == 0


WORST: Final = (Attack("secrets that are devices", secrets_elsewhere),)
MORE: Final = (
    Attack("policies that name reserved topics", reserved_topics),
    Attack("policies on and off", policies_on_and_off),
)
