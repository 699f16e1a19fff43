"""Topics that are lost, made anew or cut off: partitions stop, and recovered, fire each event once.

Part of ``make chaos``; ``FAULTS='topic lost'`` chooses.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from belfry.cli.entry import main
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.chaos.broker import Brokers
from tests.chaos.faults.topics import TOPIC_FAULTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS: Final = int(os.environ.get("SEEDS", "0"))
ONLY: Final = os.environ.get("FAULTS", "")
TENANTS: Final = tuple(f"t{number}" for number in range(8))
EACH: Final = 80
OVERDUE_MS: Final = 15_000
LATER_MS: Final = 120_000


def ask(site: Site, stem: str, in_ms: int) -> Counter[str]:
    """Events of all tenants, in several steps of the worker; what is to come out."""
    at_ms, names = now_ms() + in_ms, [f"{stem}-{number}" for number in range(EACH)]
    for number, name in enumerate(names):
        tenant = TENANTS[number % len(TENANTS)]
        value = request(tenant, name, at=at_ms + 25 * number, payload=name.encode())
        site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
    site.producer.flush()
    return Counter(names)


def fired(site: Site) -> Counter[str]:
    return Counter((record.value or b"").decode() for record in site.fired(*TENANTS))


def recover(site: Site, *options: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELFRY_BOOTSTRAP_SERVERS", site.bootstrap)
        patch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.prefix)
        patch.setenv("BELFRY_CLUSTER__APP_ID", site.name)
        return main(["recover", *options, "--apply"])


def stopped(worker: Worker, code: str) -> bool:
    status, page = worker.get("/healthz/ready")
    return status == 503 and page.count(code) == 4


if SEEDS:

    @pytest.mark.parametrize("name", [name for name in TOPIC_FAULTS if re.search(ONLY, name)])
    def test_each_event_fires_once_when_somebody_has_recovered(
        lone_broker: Brokers, tmp_path: Path, unique: Callable[[str], str], name: str
    ) -> None:
        strike, code, choice = TOPIC_FAULTS[name]
        with Site(lone_broker.servers, unique("topics"), tmp_path) as site:
            site.fired_topics(TENANTS)
            worker = site.worker().start().wait_ready()
            wanted = ask(site, "now", 0) + ask(site, "overdue", OVERDUE_MS)
            wanted += ask(site, "later", LATER_MS)
            wait_for("what is due", lambda: sum(fired(site).values()) >= EACH, 30)
            before = fired(site)
            assert worker.stop() == 0
            strike(lone_broker, site)
            worker.start()
            wait_for("a loud stop", lambda: stopped(worker, code), 60)
            assert fired(site) - before <= wanted - before
            assert worker.stop() == 0
            given = ["--data-dir", str(worker.data_dir)] if "local" in choice else []
            assert recover(site, *choice, *given) == 0
            worker.start().wait_ready()
            wanted += ask(site, "then", 0)
            wait_for("all of it", lambda: sum(fired(site).values()) >= sum(wanted.values()), 180)
            assert fired(site) == wanted
