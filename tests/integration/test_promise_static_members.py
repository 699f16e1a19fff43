"""A static member that is back within the session has its share again, and nobody rebalances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.failover import divided, owned
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.integration.test_promise_standbys import all_warm, cluster

pytestmark = pytest.mark.slow

TENANTS = tuple(f"t{number}" for number in range(16))


def assignments(worker: Worker) -> int:
    """How often the group has given this worker partitions."""
    return worker.log.read_text("utf-8").count('"event":"assigned"')


def test_a_static_member_restarts_without_a_rebalance(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("static"), tmp_path, SESSION_TIMEOUT_MS="30000") as site:
        site.fired_topics(TENANTS)
        stays = site.worker(GROUP_INSTANCE_ID="stays").start()
        goes = site.worker(GROUP_INSTANCE_ID="goes").start()
        wait_for("everybody to have a share", lambda: divided([stays, goes]), 60)
        wait_for("warm standbys", lambda: all_warm(stays) and all_warm(goes), 30)
        share, before = owned(goes), assignments(stays)
        assert before > 0
        for number, tenant in enumerate(TENANTS):
            site.ask(tenant, "x", at=now_ms() + 3_000, payload=b"%d" % number)
        assert goes.stop() == 0
        # Its standby does not wait for the session.
        wait_for("the standby to own all", lambda: owned(stays) == set(range(4)), 20)
        goes.start()
        wait_for("its share to be back", lambda: divided([stays, goes]), 20)
        wait_for("all to have fired", lambda: len(site.fired(*TENANTS)) == len(TENANTS), 20)
        assert owned(goes) == share
        assert assignments(stays) == before
        # Its entry is its own again, so that it stands by for the other as before.
        wait_for("warm standbys", lambda: all_warm(stays) and all_warm(goes), 30)
        assert {each["worker_id"] for each in cluster(goes)["members"]} == {"stays", "goes"}
        assert goes.stop() == 0
        assert stays.stop() == 0
