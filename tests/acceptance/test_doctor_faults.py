"""`belfry doctor` finds the faults of docs/doctor.md: each is planted, and asked for.

Many are planted at once in one belfry of its own, and doctor is asked once before and once after:
what it says of a fault has to be missing before and there after.  Faults that need a world of their
own are planted by the tests that `ELSEWHERE` names.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from os import environ
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from belfry.cli.doctor_quotas import throttled
from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.quotas import limit_requests
from tests.acceptance.harness.requests import policy
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NOWHERE: Final = "http://127.0.0.1:1"
MIB: Final = 1024 * 1024
BAD: Final = ("problem", "risk")
FULL: Final = 'belfry_rejected_total{code="too_many_pending"} 1.0'
UNKNOWN_SCHEMA: Final = b"\x00\x00\x00\x27\x0f" + b"no known schema"
ALTERED: Final = {
    "schedules": {
        "retention.ms": "600000",
        "message.timestamp.type": "CreateTime",
        "unclean.leader.election.enable": "true",
    },
    "changelog": {
        "cleanup.policy": "delete",
        "max.message.bytes": "1000000",
        "delete.retention.ms": "60000",
    },
    "tenants": {"cleanup.policy": "delete"},
    "lifecycle": {"retention.ms": "1000"},
    "deliveries": {"retention.bytes": "1000"},
    "undelivered": {"max.message.bytes": "1000"},
    "rejected": {"min.insync.replicas": "2"},
    "fired.fine": {"cleanup.policy": "compact"},
}
# What doctor says of each fault, as `check: detail`; names are those of docs/doctor.md.
PLANTED: Final = {
    "a topic is missing": r"topics: Missing: .*audit",
    "requests are kept too briefly": r"topics: .*schedules: retention.ms is 600000",
    "requests are not stamped by the broker": r"topics: .*message.timestamp.type is CreateTime",
    "an unclean leader may be elected": r"topics: .*unclean.leader.election.enable is true",
    "the changelog is not compacted": r"topics: .*changelog: cleanup.policy is delete",
    "the changelog takes too small records": r"topics: .*changelog: max.message.bytes is 1000000",
    "tombstones are kept too briefly": r"topics: .*delete.retention.ms is 60000",
    "policies are not compacted": r"topics: .*tenants: cleanup.policy is delete",
    "outcomes are kept too briefly": r"topics: .*lifecycle: retention.ms is 1000",
    "a topic is cut by its size": r"topics: .*deliveries: retention.bytes is 1000",
    "dead letters do not fit": r"topics: .*undelivered: max.message.bytes is 1000",
    "fewer replicas than writers ask for": r"topics: .*min.insync.replicas is 2, with 1 replicas",
    "fired events are compacted": r"topics: .*fired.fine: cleanup.policy is compact",
    "a transaction hangs": r"transactions: No request behind it is taken in",
    "requests were refused": r"refused: up to \d+ requests were refused within the last hour",
    "deliveries were given up": r"refused: up to \d+ deliveries were given up within the last hour",
    "a tenant has no topic": r"tenants: homeless waits \(output_topic\)",
    "a tenant is paused": r"tenants: resting waits \(paused\)",
    "an acknowledgement is missing": r"tenants: acking waits \(ack_lock\)",
    "a tenant floods": r"tenants: flooding waits \(rate\)",
    "a disk is nearly full": r"workers: .*the disk of .* MiB left",
    "brokers hold belfry back": r"quotas: A quota of the brokers has held .*: .*writer for",
    "a tenant's quota is used up": r"quotas: full has used up its quota: 1 of .* max_pending is 1",
    "a host of webhooks is silent": r"workers: .*webhook hosts do not answer: 127.0.0.1:1",
    "a worker reaches no registry": r"workers: .*the schema registry does not answer",
}
# Asked with settings of another belfry, at a worker of the first one.
STRANGE: Final = {
    "the worker is another belfry's": r"workers: The worker belongs to the belfry",
    "another number of partitions": r"topics: .*changelog has 4 partitions, and .* is 8",
    "fewer partitions of input than of state": r"topics: .*schedules: 2 partitions, but",
    "the registry does not answer": r"registry: .*127.0.0.1:1",
}
# Asked with a registry that knows nothing of this belfry, and with its address for a worker's.
UNREGISTERED: Final = {
    "schemas are not registered": r"registry: .*belfry schema register",
    "no worker of belfry answers there": r"worker: What answers at .* is no worker of belfry",
}
ALWAYS: Final = {"there is one worker": r"group: There is one worker"}
ELSEWHERE: Final = {
    "a key group does not arrive": "tests/unit/cli/test_doctor_moves.py",
    "some workers alone let key groups move": "tests/unit/cli/test_doctor_moves.py",
    "a mirror stands still": "tests/unit/cli/test_doctor_mirror.py",
    "a take-over was interrupted": "tests/unit/cli/test_doctor_mirror.py",
    "no broker answers": "tests/acceptance/test_cli_doctor.py",
    "no worker answers": "tests/acceptance/test_cli_doctor.py",
    "a worker is not ready": "tests/acceptance/test_cli_doctor.py",
    "a clock is off": "tests/acceptance/test_cli_doctor.py",
    "a right is missing": "tests/integration/test_promise_each_right.py",
    "topics were made anew": "tests/integration/test_promise_identity.py",
    "workers' settings differ": "tests/integration/test_promise_shared_settings.py",
    "rows are not signed": "tests/integration/test_promise_signed_changelog.py",
    "an API key ends soon": "tests/unit/api/test_key_uses.py",
    "strangers write to belfry's topics": "tests/unit/cli/test_doctor_worker.py",
    "a worker hangs": "tests/unit/cli/test_doctor_cluster.py",
    "a thread of a worker stands still": "tests/unit/cli/test_doctor_cluster.py",
    "workers are of several releases": "tests/unit/cli/test_doctor_cluster.py",
    "nobody stands by": "tests/unit/cli/test_doctor_cluster.py",
    "a partition does not fire": "tests/unit/cli/test_doctor_cluster.py",
    "an event is overdue": "tests/unit/cli/test_doctor_cluster.py",
    "requests come too fast": "tests/unit/cli/test_doctor_cluster.py",
    "the worker uses another Kafka": "tests/unit/cli/test_doctor_cluster.py",
    "a partition has no owner": "tests/unit/cli/test_doctor_group.py",
    "an owner does not commit": "tests/unit/cli/test_doctor_group.py",
    "two belfrys have one app id": "tests/unit/cli/test_doctor_group.py",
    "nobody leads a partition": "tests/unit/cli/test_doctor_replicas.py",
    "replicas are not in sync": "tests/unit/cli/test_doctor_replicas.py",
    "one broker alone acknowledges": "tests/unit/kafka/test_topic_rules.py",
    "brokers do not verify transactions": "tests/unit/kafka/test_topic_rules.py",
    "nobody delivers": "tests/integration/test_promise_webhooks.py",
    "deliveries were removed unread": "tests/unit/cli/test_doctor_deliveries.py",
    "a schedule is stale": "tests/unit/process/test_view.py",
    "workers have several versions of zone data": "tests/unit/cli/test_doctor_versions.py",
    "zone data is old": "tests/unit/cli/test_doctor_versions.py",
    "events wait for a later release": "tests/unit/cli/test_doctor_tenants.py",
    "events wait for their payloads": "tests/unit/cli/test_doctor_tenants.py",
}


class Reports(NamedTuple):
    """What doctor said: lines ``check: detail`` of problems and risks."""

    before: list[str]
    after: list[str]
    strange: list[str]
    unregistered: list[str]
    mended: list[str]


def ask(site: Site, url: str, **more: str) -> list[str]:
    """The problems and risks that doctor finds with these settings."""
    kept = {key: value for key, value in environ.items() if not key.startswith("BELFRY_")}
    given = {
        "BELFRY_BOOTSTRAP_SERVERS": site.bootstrap,
        "BELFRY_CLUSTER__TOPIC_PREFIX": site.prefix,
        "BELFRY_CLUSTER__APP_ID": site.name,
        "BELFRY_CONFIG_FILE": "none.toml",
        "BELFRY_HTTP_URL": url,
        **more,
    }
    command = [*belfry(), "doctor", "--output", "jsonl"]
    ran = subprocess.run(
        command, env=kept | given, capture_output=True, text=True, check=False, timeout=60
    )
    assert not ran.stderr, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == any(each["status"] == "problem" for each in found)
    assert [each for each in found if each["status"] in BAD and "  " in each["detail"]] == []
    return [f"{each['check']}: {each['detail']}" for each in found if each["status"] in BAD]


@pytest.fixture(scope="module")
def reports(
    kafka: str, schema_registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reports]:
    """A belfry that is well, the same with all faults, and what doctor says of each."""
    home = tmp_path_factory.mktemp("faults")
    free_mb = disk_usage(home).free // MIB
    settings = {
        "CREATE_TOPICS": "false",
        "WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8"]',
        "SCHEMA_REGISTRY_URL": NOWHERE,
        "REGISTRY_AUTO_REGISTER": "false",
        "REGISTRY_WAIT_MS": "60000",
    }
    name = f"faults-{uuid4().hex[:8]}"
    settings["KAFKA"] = json.dumps({"client_id": name})
    with Site(kafka, name, home, **settings) as site:
        admin = AdminClient({"bootstrap.servers": kafka})
        _topics(site)
        site.fired_topics(["fine", "resting", "acking", "flooding", "hooked"])
        worker = site.worker().start().wait_ready()
        url = f"http://127.0.0.1:{worker.http_port}"
        before = ask(site, url)
        worker.stop()
        worker.settings["BELFRY_DISK_RESERVE_MB"] = str(int(free_mb * 0.7))
        worker.start().wait_ready()
        _plant_requests(site)
        hanging = _plant_in_kafka(site, admin)
        wait_for("what goes wrong at the worker", lambda: _gone_wrong(worker.get("/metrics")[1]))
        wait_for("its policy", lambda: '"max_pending":1' in worker.get("/v1/tenants/full")[1])
        for number in range(2):
            site.ask("full", f"q/{number}", at=now_ms() + 3_600_000, payload=b"x")
        wait_for("a full quota", lambda: FULL in worker.get("/metrics")[1], 60)
        limit_requests(kafka, name, 0.01)
        wait_for("a worker held back", lambda: throttled(worker.get("/metrics")[1])["writer"] > 1)
        limit_requests(kafka, name, None)
        after = ask(site, url)
        hanging.abort_transaction(10)
        strange = _strange(site, admin, url)
        unregistered = ask(site, schema_registry, BELFRY_SCHEMA_REGISTRY_URL=schema_registry)
        _mend(site, admin)
        yield Reports(before, after, strange, unregistered, ask(site, url))


def _topics(site: Site) -> None:
    kept = {key: value for key, value in environ.items() if not key.startswith("BELFRY_")}
    given = {"BELFRY_CLUSTER__TOPIC_PREFIX": site.prefix}
    command = [*belfry(), "topics", "create"]
    command += ["--bootstrap-servers", site.bootstrap]
    subprocess.run(command, env=kept | given, capture_output=True, check=True, timeout=60)


def _plant_requests(site: Site) -> None:
    """What tenants do, and what happens to them."""
    policies: dict[str, dict[str, Any]] = {
        "resting": {"paused": True},
        "flooding": {"max_fires_per_second": 1},
        "full": {"max_pending": 1},
    }
    for tenant, fields in policies.items():
        site.producer.produce(site.topic("tenants"), policy(tenant, **fields), tenant.encode())
    site.producer.flush(10)
    due: dict[str, Any] = {"at": now_ms(), "payload": b"x"}
    site.ask("homeless", "one", **due)
    site.ask("resting", "one", **due)
    lock: dict[str, Any] = {"group": "g", "serial": True}
    site.ask("acking", "first", **due, **lock)
    site.ask("acking", "second", **due, **lock)
    target = {"url": f"{NOWHERE}/hook", "timeout_ms": 1_000, "max_attempts": 100}
    for number in range(100):
        site.ask_soon("flooding", f"f/{number}", **due)
        if number < 8:
            site.ask_soon("hooked", f"h/{number}", **due, http_targets=[target])
    site.ask("fine", "", **due)
    for _ in range(4):
        site.send(UNKNOWN_SCHEMA, key=b"fine")


def _plant_in_kafka(site: Site, admin: AdminClient) -> Producer:
    """What operators and strangers do; the producer holds a transaction open."""
    site.producer.produce(site.topic("undelivered"), b"given up", b"key")
    site.producer.flush(10)
    admin.delete_topics([site.topic("audit")])[site.topic("audit")].result(10)
    _alter(site, admin, AlterConfigOpType.SET)
    hanging = Producer({"bootstrap.servers": site.bootstrap, "transactional.id": site.name})
    hanging.init_transactions(10)
    hanging.begin_transaction()
    hanging.produce(site.topic("schedules"), b"held", b"key", partition=3)
    hanging.flush(10)
    return hanging


def _alter(site: Site, admin: AdminClient, how: AlterConfigOpType) -> None:
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            site.topic(name),
            incremental_configs=[
                ConfigEntry(key, value, incremental_operation=how) for key, value in config.items()
            ],
        )
        for name, config in ALTERED.items()
    ]
    for future in admin.incremental_alter_configs(resources).values():
        future.result(10)


def _gone_wrong(metrics: str) -> bool:
    """Whether the worker has met the host and the registry that do not answer."""
    unanswered = re.search(r'lookups_total{outcome="unanswered"} ([\d.]+)', metrics)
    silent = re.search(r"^belfry_webhook_hosts_silent ([\d.]+)", metrics, re.MULTILINE)
    return all(each and float(each[1]) >= least for each, least in ((unanswered, 3), (silent, 1)))


def _strange(site: Site, admin: AdminClient, url: str) -> list[str]:
    """What doctor says with the settings of another belfry, whose topics somebody made by hand."""
    prefix = f"{site.name}-other."
    new = [NewTopic(f"{prefix}schedules", 2, 1), NewTopic(f"{prefix}changelog", 4, 1)]
    for future in admin.create_topics(new).values():
        future.result(20)
    other = {
        "BELFRY_CLUSTER__TOPIC_PREFIX": prefix,
        "BELFRY_CLUSTER__APP_ID": f"{site.name}-other",
        "BELFRY_CLUSTER__PARTITIONS": "8",
        "BELFRY_SCHEMA_REGISTRY_URL": NOWHERE,
    }
    return ask(site, url, **other)


def _mend(site: Site, admin: AdminClient) -> None:
    """Topics as they were; what tenants did stays."""
    _topics(site)
    wanted = {
        "schedules": {"message.timestamp.type": "LogAppendTime", "retention.ms": "604800000"},
        "changelog": {"cleanup.policy": "compact", "max.message.bytes": str(2 * MIB)},
        "tenants": {"cleanup.policy": "compact"},
    }
    _alter(site, admin, AlterConfigOpType.DELETE)
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            site.topic(name),
            incremental_configs=[
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
                for key, value in config.items()
            ],
        )
        for name, config in wanted.items()
    ]
    for future in admin.incremental_alter_configs(resources).values():
        future.result(10)


def said(report: list[str], pattern: str) -> bool:
    """Whether a line of a report has this pattern."""
    return any(re.match(pattern, line) for line in report)


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(reports: Reports, fault: str) -> None:
    assert said(reports.after, PLANTED[fault]), "\n".join(reports.after)
    assert not said(reports.before, PLANTED[fault]), "\n".join(reports.before)


@pytest.mark.parametrize("fault", STRANGE)
def test_settings_of_another_belfry_are_found_out(reports: Reports, fault: str) -> None:
    assert said(reports.strange, STRANGE[fault]), "\n".join(reports.strange)
    assert not said(reports.after, STRANGE[fault])


@pytest.mark.parametrize("fault", UNREGISTERED)
def test_wrong_addresses_are_found_out(reports: Reports, fault: str) -> None:
    assert said(reports.unregistered, UNREGISTERED[fault]), "\n".join(reports.unregistered)
    assert not said(reports.before, UNREGISTERED[fault])


def test_a_worker_alone_is_always_told(reports: Reports) -> None:
    (pattern,) = ALWAYS.values()
    assert said(reports.before, pattern)


def test_what_was_mended_is_told_no_more(reports: Reports) -> None:
    names = ["a topic is missing", "the changelog is not compacted", "a transaction hangs"]
    assert not [name for name in names if said(reports.mended, PLANTED[name])]


def test_the_page_lists_what_is_planted_and_nothing_else() -> None:
    text = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    listed = re.findall(r"^\| ([^|]+?) \| `", text, re.MULTILINE)
    tested: Mapping[str, Any] = {**PLANTED, **STRANGE, **UNREGISTERED, **ALWAYS, **ELSEWHERE}
    assert sorted(listed) == sorted(tested)
    assert len(listed) >= 30
    assert [path for path in ELSEWHERE.values() if not Path(ROOT / path).is_file()] == []
