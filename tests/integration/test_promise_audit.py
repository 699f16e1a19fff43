"""The audit log of a real cluster: each change and refusal once, with who asked for it.

Two workers with keys; changes over HTTP, refusals, a policy that an operator writes to Kafka, and a
worker that is killed.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AdminClient,
    ConfigResource,
    ResourceType,
)

from belfry.api.auth.keys import digest
from belfry.audit.reading import AuditFilter, AuditReader
from belfry.client.decoding import Decoder
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from belfry.wire.audit import AuditEvent
from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.http import Http, place, schedules
from tests.acceptance.harness.site import Site, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FAR = "2060-01-01T00:00:00Z"
PLATFORM, ORDERS = "belfry_platform-key", "belfry_orders-key"
KEYS = [
    {"name": "platform", "sha256": digest(PLATFORM), "tenants": ["*"], "role": "operate"},
    {"name": "orders", "sha256": digest(ORDERS), "tenants": ["orders"], "role": "schedule"},
]
DAYS_90_MS = 90 * 86_400_000


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    name = f"audit-{time.monotonic_ns():x}"
    settings = {
        "HTTP_API_KEYS": json.dumps(KEYS),
        "HTTP_WORKER_SECRET": "0123456789abcdef-of-workers",
    }
    with Site(kafka, name, tmp_path_factory.mktemp("audit"), **settings) as site:
        for _ in range(2):
            site.worker().start()
        for worker in site.workers:
            worker.wait_ready()
        yield site


@pytest.fixture(scope="module")
def reader(site: Site) -> AuditReader:
    decoder = Decoder("AuditEvent", None, only=True)
    return AuditReader(Cluster(site.bootstrap), site.topic("audit"), decoder)


def bearing(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def waited(reader: AuditReader, **wanted: Any) -> list[AuditEvent]:
    return wait_for(f"events of {wanted}", lambda: reader.listed(AuditFilter(**wanted)))


def test_a_change_is_in_the_log_under_the_name_of_its_key(site: Site, reader: AuditReader) -> None:
    before_ms = int(time.time() * 1000)
    http = Http(site.workers[0])
    body = {"schedule_id": "a", "at": FAR, "request_id": "r-1"}
    assert http("POST", schedules("orders"), body, **bearing(ORDERS))[0] == 201
    assert http("DELETE", place("orders", "a"), **bearing(ORDERS))[0] == 200

    def both() -> list[AuditEvent]:
        found = reader.listed(AuditFilter(tenant="orders", caller="orders", since_ms=before_ms))
        return found if len(found) > 1 else []

    created, cancelled = wait_for("both events", both)
    assert (created.action, created.object, created.outcome) == ("schedule.create", "a", "ACCEPTED")
    assert (created.request_id, created.status, created.role) == ("r-1", 201, "schedule")
    assert created.source_address == "127.0.0.1"
    assert created.worker
    assert (cancelled.action, cancelled.outcome) == ("schedule.cancel", "CANCELLED")


def test_a_flood_of_refusals_is_a_few_events_and_a_sum(site: Site, reader: AuditReader) -> None:
    http = Http(site.workers[0])
    for _ in range(8):
        status, told, _ = http("DELETE", place("victim", "b"), **bearing(ORDERS))
        assert (status, told["code"]) == (403, "forbidden")
    (first, *others) = waited(reader, tenant="victim", result="REFUSED")
    assert (first.caller, first.code, first.object) == ("orders", "forbidden", "b")
    assert len(others) < 3


def test_a_policy_is_in_the_log_with_who_set_it_and_with_what_came_of_it(
    site: Site, reader: AuditReader
) -> None:
    target = {
        "url": "https://a.example.com/?token=s3cret-1",
        "headers": [["authorization", "Bearer s3cret-2"]],
    }
    http = Http(site.workers[1])
    body = {"max_pending": 7, "http_targets": [target]}
    path = "/v1/tenants/set-over-http?reason=month+end"
    assert http("PUT", path, body, **bearing(PLATFORM))[0] == 200
    events = wait_for(
        "both events",
        lambda: found if len(found := reader.listed(AuditFilter("set-over-http"))) > 1 else [],
    )
    by_way = {each.via: each for each in events}
    assert by_way.keys() == {"http", "topic"}
    assert (by_way["http"].caller, by_way["http"].action) == ("platform", "policy.set")
    for each in events:
        assert {change.field: change.after for change in each.changes}["max_pending"] == "7"
        assert "s3cret" not in str(each)
        assert each.reason == "month end"


def test_a_policy_that_an_operator_writes_to_kafka_is_noted_once(
    site: Site, reader: AuditReader
) -> None:
    policies = TenantPolicies(Cluster(site.bootstrap), site.prefix)
    for paused in (True, False):
        policies.put(TenantPolicy("by-topic", max_pending=3, paused=paused))
    policies.remove("by-topic")

    def three() -> list[AuditEvent]:
        found = reader.listed(AuditFilter("by-topic"))
        return found if len(found) >= 3 else []

    set_, changed, removed = wait_for("three events", three)
    assert [each.action for each in (set_, changed, removed)] == [
        "policy.written",
        "policy.written",
        "policy.removed",
    ]
    assert [(c.field, c.before, c.after) for c in changed.changes] == [("paused", "true", "false")]
    assert set_.source_topic == site.topic("tenants")
    time.sleep(1)
    offsets = Counter((each.source_partition, each.source_offset) for each in three())
    assert set(offsets.values()) == {1}


def test_no_change_of_a_policy_is_missed_when_a_worker_is_killed(
    site: Site, reader: AuditReader
) -> None:
    """At least once: a position moves only when its event has been confirmed."""
    policies = TenantPolicies(Cluster(site.bootstrap), site.prefix)
    names = [f"amid-{number}" for number in range(40)]
    for place_, name in enumerate(names):
        policies.put(TenantPolicy(name, max_pending=place_))
        if place_ == 10:
            site.workers[0].kill()

    def missing() -> set[str]:
        noted = {each.tenant for each in reader.listed(AuditFilter()) if each.via == "topic"}
        return set(names) - noted

    wait_for("all of them", lambda: not missing(), 90)


def shown(site: Site, *words: str) -> list[dict[str, Any]]:
    """What `belfry audit list` prints."""
    env = {"BELFRY_BOOTSTRAP_SERVERS": site.bootstrap, "BELFRY_CLUSTER__TOPIC_PREFIX": site.prefix}
    command = [*belfry(), "audit", "list", *words, "-o", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_commands_of_its_page_show_it(site: Site) -> None:
    """Those of docs/audit.md."""
    found = shown(site, "--tenant", "by-topic", "--since", "7d")
    assert [each["action"] for each in found] == ["policy.written"] * 2 + ["policy.removed"]
    assert found[1]["changes"] == [{"field": "paused", "before": "true", "after": "false"}]
    assert {each["result"] for each in shown(site, "--refused", "--since", "1h")} == {"REFUSED"}


def test_the_topic_keeps_it_for_ninety_days(site: Site) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, site.topic("audit"))
    config = admin.describe_configs([resource])[resource].result(10)
    assert config["cleanup.policy"].value == "delete"
    assert int(config["retention.ms"].value) == DAYS_90_MS
