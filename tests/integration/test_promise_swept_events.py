"""docs/payloads.md: a sweep sees what is claimed by an event that no row has ever stood for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from belfry.cli import payloads
from belfry.cli.entry import main
from belfry.client import ClaimCheck
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.outputs.stored_payloads import PayloadFolder
from belfry.tenants.policy import TenantPolicy
from belfry.wire.claim_check import digest_of, object_name
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

OVER: Final = 10_000
CONTENT: Final = b"again" * 40_000


def test_a_payload_that_an_event_alone_claims_comes_back(
    kafka: str,
    tmp_path: Path,
    unique: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Between the sweep's last look and its removal a schedule with the same content is asked for,
    triggered and cancelled: one step does all of it, so the changelog never claims its payload.
    """
    store = tmp_path / "payloads"
    store.mkdir()
    path = store / "shop" / object_name(digest_of(CONTENT))
    settings = {"PAYLOAD_STORE": f"file://{store}"}
    with Site(kafka, unique("swept-events"), tmp_path, **settings) as site:
        site.schedules_topic()
        site.create_topics([site.topic("tenants")], {"cleanup.policy": "compact"})
        # A TRIGGER is refused as long as its tenant's topic is being made.
        site.create_topics([site.topic("fired.shop")], {})
        policy = TenantPolicy("shop", claim_check_over_bytes=OVER)
        TenantPolicies(Cluster(site.bootstrap), site.prefix).put(policy)
        worker = site.worker().start().wait_ready()
        assert worker.stop() == 0
        ClaimCheck(f"file://{store}/shop", OVER).deposit(CONTENT)
        os.utime(path, (1e9, 1e9))
        removed, fired = PayloadFolder.remove, list[Any]()

        def remove(folder: PayloadFolder, tenant: str, digest: str) -> None:
            if not fired:
                site.ask("shop", "brief", at=now_ms() + 86_400_000, payload=CONTENT)
                site.ask("shop", "brief", action="TRIGGER")
                site.ask("shop", "brief", action="CANCEL", request_id="over")
                worker.start().wait_ready()
                assert site.outcome("over")["outcome"] == "CANCELLED"
                fired.extend(site.wait_fired("shop", 1))
            removed(folder, tenant, digest)

        monkeypatch.setattr(PayloadFolder, "remove", remove)
        monkeypatch.setattr(payloads, "STORED_S", 1.0)
        for name, value in {
            "BOOTSTRAP_SERVERS": site.bootstrap,
            "CLUSTER__TOPIC_PREFIX": site.prefix,
            "TRANSACTION_TIMEOUT_MS": "1000",
            **settings,
        }.items():
            monkeypatch.setenv(f"BELFRY_{name}", value)
        capsys.readouterr()
        code = main(["payloads", "sweep", "--output", "json", "--apply"])
        shown = capsys.readouterr()
        assert code == 0, shown.err
        told = orjson.loads(shown.out)
        rows = [each.value or b"" for each in site.read(site.topic("changelog"))]
        assert not [each for each in rows if digest_of(CONTENT).encode() in each]
        assert (told["put_aside"], told["put_back"]) == (1, 1)
        assert path.read_bytes() == CONTENT
        assert worker.stop() == 0
