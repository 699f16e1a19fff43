"""Tenants that share an output: moved there and back amid kills, each event once and in its order.

One of them remembers no ends, so what has fired of it leaves no row.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from belfry.cli.entry import main
from belfry.client import Client
from belfry.client.errors import NotFound, TooLate
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.verifying import assert_verified

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TENANTS = ("shop", "mail")
COUNT = 150
APART_MS = 20


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Iterator[Site]:
    with Site(kafka, unique("shared"), tmp_path) as site:
        yield site


def came(site: Site, tenant: str) -> dict[str, list[Any]]:
    """A tenant's events by topic, those of the shared one by the tenant before their keys."""
    topics = site.topic("fired"), site.topic(f"fired.{tenant}")
    records = {topic: site.read(topic) for topic in topics}
    shared, own = records.values()
    mine = [each for each in shared if (each.key or b"").startswith(f"{tenant}/".encode())]
    for each in mine:
        assert each.header("belfry-schedule-tenant") == tenant.encode()
    return {"shared": mine, "own": own}


@pytest.fixture
def typed(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[dict[str, Any]]]:
    """Types a command, and gives what it prints as JSON lines."""
    given = {
        "BOOTSTRAP_SERVERS": site.bootstrap,
        "CLUSTER__TOPIC_PREFIX": site.prefix,
        "CLUSTER__APP_ID": site.name,
    }
    for name, value in given.items():
        monkeypatch.setenv(f"BELFRY_{name}", value)

    def run(*command: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        code = main([*command, "--output", "jsonl"])
        out, error = capsys.readouterr()
        assert code == 0, error
        return [json.loads(line) for line in out.splitlines()]

    return run


def numbers(records: list[Any]) -> dict[bytes, list[int]]:
    """The numbers of events in the order in which they came out, by group."""
    found = defaultdict(list)
    for each in records:
        found[each.header("belfry-schedule-group")].append(int(each.value))
    return found


def test_a_move_there_and_back_under_load_and_a_kill_loses_nothing_and_keeps_the_order(
    site: Site, typed: Callable[..., list[dict[str, Any]]]
) -> None:
    policies = TenantPolicies(Cluster(site.bootstrap), site.prefix)
    worker = site.worker().start().wait_ready()
    policies.put(TenantPolicy("mail", output="SHARED", remember_ms=0))
    begin_ms = now_ms() + 2_000
    for number in range(COUNT):
        for tenant in TENANTS:
            site.ask_soon(
                tenant, f"{number}", at=begin_ms + APART_MS * number,
                group=f"g{number % 3}", payload=b"%d" % number,
            )  # fmt: skip
    site.producer.flush(20)

    wait_for("events on its own topic", lambda: len(came(site, "shop")["own"]) > COUNT // 10)
    policies.put(TenantPolicy("shop", output="SHARED"))
    wait_for("events on the shared one", lambda: len(came(site, "shop")["shared"]) > COUNT // 5)
    worker.kill()
    worker.start().wait_ready()
    policies.put(TenantPolicy("shop"))
    wait_for(
        "all events",
        lambda: all(sum(map(len, came(site, each).values())) >= COUNT for each in TENANTS),
    )

    shop, mail = came(site, "shop"), came(site, "mail")
    assert mail["own"] == []
    for each in (shop, mail):
        both = [int(record.value) for record in each["shared"] + each["own"]]
        assert sorted(both) == list(range(COUNT))
        for records in each.values():
            for group in numbers(records).values():
                assert group == sorted(group)
    shared = sorted(int(record.value) for record in shop["shared"])
    assert len(shared) > COUNT // 5
    # The two moves cut what is due in three: before, between and after, without a gap.
    assert shared == list(range(shared[0], shared[-1] + 1))
    assert_verified(site)

    shown = typed(
        "events", "tail", "shop", "--shared", "--from-beginning",
        "-n", str(len(shared)), "--timeout", "20",
    )  # fmt: skip
    assert sorted(int(each["payload_text"]) for each in shown) == shared
    again = typed(
        "redrive", "fires", "mail", "--from", "2026-01-01T00:00:00Z", "--id", "7",
        "--yes", "--per-second", "1000",
    )  # fmt: skip
    assert len(again) == 1
    copies = [each for each in came(site, "mail")["shared"] if each.header("belfry-redriven")]
    assert [(each.key, each.value) for each in copies] == [(b"mail/g1", b"7")]
    with Client(site.bootstrap, topic_prefix=site.prefix) as client:
        with pytest.raises(TooLate):
            client.cancel("shop", "7")
        with pytest.raises(NotFound):
            client.cancel("mail", "7")
