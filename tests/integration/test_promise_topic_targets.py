"""Fired events reach topics that are targets, with key, payload and headers; none is ever made."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import count

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from tests.acceptance.harness.reading import lifecycle_of
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    name = f"topics-{uuid.uuid4().hex[:8]}"
    with Site(kafka, name, tmp_path_factory.mktemp("topics"), LIFECYCLE="ALL") as site:
        site.worker().start().wait_ready()
        yield site


def test_topics_get_the_record_or_the_delivery_ends_with_the_reason(site: Site, kafka: str) -> None:
    mark = uuid.uuid4().hex[:8]
    good, small, gone = (f"{mark}.{name}" for name in ("good", "small", "gone"))
    admin = AdminClient({"bootstrap.servers": kafka})
    made = [NewTopic(good, 2, 1), NewTopic(small, 1, 1, config={"max.message.bytes": "1000"})]
    for future in admin.create_topics(made).values():
        future.result(20)
    listed = tuple(f"kafka:{topic}" for topic in (good, small, gone))
    policies = TenantPolicies(Cluster(site.bootstrap), site.prefix)
    policies.put(TenantPolicy("demo", allowed_hosts=listed, lifecycle="ALL"))
    tries = count()

    def taken() -> bool:
        # A policy is in effect within two seconds; until then the request is refused.
        name, later = f"p{next(tries)}", now_ms() + 86_400_000
        target = [{"url": f"kafka:{good}"}]
        site.ask("demo", "probe", at=later, http_targets=target, request_id=name)
        return bool(site.outcome(name)["outcome"] == "ACCEPTED")

    wait_for("the policy", taken)
    reserved = [{"url": "kafka:" + site.topic("tenants")}]
    site.ask("demo", "reserved", at=now_ms(), http_targets=reserved, request_id="reserved")
    assert site.outcome("reserved")["code"] == "target_not_allowed"
    for topic, payload in ((good, b"{}"), (small, b"x" * 5_000), (gone, b"{}")):
        fields = {"payload": payload, "key": b"k", "http_targets": [{"url": f"kafka:{topic}"}]}
        site.ask("demo", topic, at=now_ms() + 500, **fields)
    ends = wait_for("three ends", lambda: ends_of(site, 3), 40)
    assert ends[good] == ("DELIVERED", None)
    assert ends[small] == ("FAILED", "too_large")
    assert ends[gone] == ("FAILED", "topic_missing")
    (record,) = site.read(good)
    assert (record.key, record.value) == (b"k", b"{}")
    (fired,) = [each for each in site.read(site.topic("fired.demo")) if each.value == b"{}"][:1]
    assert dict(fired.headers).keys() <= dict(record.headers).keys()
    assert gone not in admin.list_topics(timeout=10).topics


def ends_of(site: Site, number: int) -> dict[str, tuple[str, str | None]]:
    found = [lifecycle_of(record) for record in site.read(site.topic("lifecycle"))]
    ends = {
        each["schedule_id"]: (each["outcome"], each["code"])
        for each in found
        if each["outcome"] in ("DELIVERED", "FAILED")
    }
    return ends if len(ends) >= number else {}
