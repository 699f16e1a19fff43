"""A tenant whose topic belfry may not write to waits alone, on a broker that asks for rights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from belfry.devstack import Kafka
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.integration.test_promise_tenants_apart import (
    fire_each,
    lateness_ms,
    neighbours,
)

pytestmark = pytest.mark.slow

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin",
}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """A broker of its own with an authorizer; who is not named in a rule may do everything."""
    broker = Kafka(tmp_path / "kafka", properties=AUTHORIZER)
    broker.start()
    try:
        broker.wait_ready(180)
        yield broker.bootstrap_servers
    finally:
        broker.stop()


def rules(topic: str) -> list[AclBinding]:
    """Everything is allowed on a topic, but to write."""
    pairs = (
        (AclOperation.ALL, AclPermissionType.ALLOW),
        (AclOperation.WRITE, AclPermissionType.DENY),
    )
    literal, anybody = ResourcePatternType.LITERAL, "User:ANONYMOUS"
    return [AclBinding(ResourceType.TOPIC, topic, literal, anybody, "*", *pair) for pair in pairs]


def test_a_topic_without_the_right_to_write_holds_its_tenant_alone(
    guarded: str, tmp_path: Path
) -> None:
    with Site(guarded, "rights", tmp_path) as site:
        site.schedules_topic()
        good = next(neighbours(site, "barred"))
        site.fired_topics(["barred", good])
        worker = site.worker().start().wait_ready()
        first_ms = now_ms() + 3_000
        fire_each(site, "barred", 5, first_ms, 100)
        fire_each(site, good, 20, first_ms, 150)
        admin, topic = AdminClient({"bootstrap.servers": guarded}), site.topic("fired.barred")
        denied = rules(topic)
        for answer in admin.create_acls(denied).values():
            answer.result(20)
        # While the other one has no right, and may wait for as long as it likes.
        fired = site.wait_fired(good, 20)
        print("late by at most", max(lateness_ms(fired)), "ms")  # noqa: T201  # a figure to be read
        assert min(lateness_ms(fired)) >= 0
        assert len(fired) == 20
        wait_for("the log to say who waits", lambda: "tenant held" in worker.log.read_text())
        assert not site.fired("barred")
        held = [line for line in worker.log.read_text().splitlines() if "tenant held" in line]
        assert all('"barred"' in line and "WRITE" in line for line in held)
        for answer in admin.delete_acls([_filter(each) for each in denied]).values():
            answer.result(20)
        found = site.wait_fired("barred", 5, timeout_s=60)
        assert len({record.value for record in found}) == len(found) == 5


def _filter(rule: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        rule.restype, rule.name, rule.resource_pattern_type, rule.principal, rule.host,
        rule.operation, rule.permission_type,
    )  # fmt: skip
