"""An output topic is deleted, or may not be written to: its tenant waits, and all of it comes out.

These tenants have events of their own, due when the fault has struck: what a deleted topic held is
gone for everybody, an auditor too.  That nobody else waits longer is for the other tenants' tests.
"""

from __future__ import annotations

import json
from typing import Any, Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.acceptance.harness.site import now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.chaos.scene import Scene

EVENTS: Final = 20
ANSWER_S: Final = 20.0
LATE_S: Final = 90.0


def deleted(scene: Scene) -> str:
    """The topic goes before its events are due; belfry makes it anew."""
    scene.gather()
    tenant, topic = _tenant(scene, "doomed")
    scene.site.fired_topics([tenant])
    _schedule(scene, tenant)
    admin = _admin(scene)
    before = _identity(admin, topic)
    admin.delete_topics([topic])[topic].result(ANSWER_S)
    _wait_all(scene, tenant)
    after = _identity(admin, topic)
    assert before != after
    return f"topic {before} went, {after} took its place with all {EVENTS}"


def unauthorised(scene: Scene) -> str:
    """Nobody may write to the topic; then everybody may again."""
    scene.gather()
    tenant, topic = _tenant(scene, "blocked")
    scene.site.fired_topics([tenant])
    admin = _admin(scene)
    begins = {worker: scene.log_size(worker) for worker in scene.site.workers}
    for answer in admin.create_acls(_rules(topic)).values():
        answer.result(ANSWER_S)
    try:
        _schedule(scene, tenant)
        wait_for("the tenant to be held", lambda: tenant in _held(scene, begins), 60)
        # It is tried again and again; nobody else is to be held for that.
        scene.wait_fires(300)
        assert not scene.site.fired(tenant)
        assert _held(scene, begins) == {tenant}
    finally:
        anybody: Any = None
        everything = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, anybody, anybody,
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        for answer in admin.delete_acls([everything]).values():
            answer.result(ANSWER_S)
    _wait_all(scene, tenant)
    return f"{tenant} was held, and all {EVENTS} came out"


def _tenant(scene: Scene, stem: str) -> tuple[str, str]:
    tenant = f"{stem}-{len(scene.strikes)}"
    scene.others.append(tenant)
    return tenant, scene.site.topic(f"fired.{tenant}")


def _schedule(scene: Scene, tenant: str) -> None:
    first_ms = now_ms() + 3_000
    for number in range(EVENTS):
        scene.site.ask(tenant, f"e{number}", at=first_ms + 50 * number, payload=b"%d" % number)


def _wait_all(scene: Scene, tenant: str) -> None:
    fired = scene.site.wait_fired(tenant, EVENTS, LATE_S)
    assert sorted(int(record.value or b"-1") for record in fired) == list(range(EVENTS))


def _admin(scene: Scene) -> AdminClient:
    return AdminClient({"bootstrap.servers": scene.site.bootstrap})


def _identity(admin: AdminClient, topic: str) -> str:
    described: Any = admin.describe_topics(TopicCollection([topic]))[topic].result(ANSWER_S)
    return str(described.topic_id)


def _held(scene: Scene, begins: dict[Worker, int]) -> set[str]:
    """Whom the workers' logs say to be held, from these places on."""
    text = "".join(scene.said(worker, at) for worker, at in begins.items())
    held = [line for line in text.splitlines() if '"tenant held' in line]
    return {str(json.loads(line)["tenant"]) for line in held}


def _rules(topic: str) -> list[AclBinding]:
    """Everything is allowed, but to write."""
    pairs = (
        (AclOperation.ALL, AclPermissionType.ALLOW),
        (AclOperation.WRITE, AclPermissionType.DENY),
    )
    return [
        AclBinding(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", *pair
        )
        for pair in pairs
    ]
