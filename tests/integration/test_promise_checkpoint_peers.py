"""A worker without a disk takes its state from another one over HTTP, and from the log else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from belfry.schedules.identity import partition_of
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker
from tests.integration.test_promise_checkpoints import SECRET, cold, pending, taken_over, told

pytestmark = pytest.mark.slow

SCHEDULES: Final = int(os.environ.get("SCHEDULES", "52000"))
SOON: Final = 40
LATER_MS: Final = 6 * 3_600_000
GIVEN: Final = {
    "CHECKPOINT_PEERS": "always",
    "CHECKPOINT_INTERVAL_S": "2",
    "HTTP_WORKER_SECRET": SECRET,
}
RESTORED: Final = "state is restored from a checkpoint"


def load(site: Site, tenant: str = "shop") -> None:
    """Schedules that wait for hours."""
    at = now_ms() + LATER_MS
    for number in range(SCHEDULES):
        site.ask_soon(tenant, f"order/{number}", at=at + number, payload=b"%d" % number)
    site.producer.flush(60)


def ask_for_some(site: Site, tenant: str = "shop") -> None:
    """Schedules that come due one after the other from now on."""
    for number in range(SOON):
        site.ask_soon(tenant, f"soon/{number}", at=now_ms() + 100 * number, payload=b"soon")
    site.producer.flush(20)


def keeps_all(worker: Worker, partition: int = 0) -> None:
    """Wait until a worker keeps a checkpoint with all schedules, as others are told."""

    def kept() -> bool:
        made = [each for each in told(worker, "a checkpoint was made") if each["kept"]]
        return any(each["partition"] == partition and each["pending"] >= SCHEDULES for each in made)

    wait_for("a checkpoint of all", kept, 120)


@pytest.mark.timeout(300)
def test_a_cold_standby_takes_its_state_from_the_owner_and_follows_the_log(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("peers"), tmp_path, CLUSTER__PARTITIONS="1", **GIVEN) as site:
        owner = site.worker().start().wait_ready()
        load(site)
        keeps_all(owner)
        second = site.worker().start()
        (restored,) = wait_for("its state", lambda: told(second, RESTORED), 60)
        assert restored["source"] == "peer"
        assert restored["checkpoint"] == f"http://127.0.0.1:{owner.http_port}"
        assert restored["pending"] >= SCHEDULES
        # Some of what comes later fires before the kill, and some after it.
        ask_for_some(site)
        wait_for("first events", lambda: site.fired("shop"))
        owner.kill()
        wait_for("the others", lambda: len(site.fired("shop")) >= SOON, 60)
        assert [each.value for each in site.fired("shop")] == [b"soon"] * SOON
        # It was warm, so there was next to nothing to read.
        assert taken_over(second)[1] < SCHEDULES / 4
        assert second.stop() == 0
        copied = pending(second)
        assert len(copied) == SCHEDULES

        # Nobody is there to be asked, so the log is read, and says the same.
        by_log = cold(second)
        assert by_log[1] >= SCHEDULES
        assert second.stop() == 0
        assert pending(second) == copied


@pytest.mark.timeout(300)
def test_an_owner_that_is_killed_amid_the_fetch_leaves_the_log(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("peers"), tmp_path, CLUSTER__PARTITIONS="1", **GIVEN) as site:
        owner = site.worker().start("C3:kill:3").wait_ready()
        load(site)
        keeps_all(owner)
        second = site.worker().start()
        assert owner.wait_end(60) != 0
        ask_for_some(site)
        wait_for("events", lambda: len(site.fired("shop")) >= SOON, 90)
        assert [each.value for each in site.fired("shop")] == [b"soon"] * SOON
        assert told(second, RESTORED) == []
        (refused,) = told(second, "a checkpoint is not used")
        assert refused["checkpoint"] == f"http://127.0.0.1:{owner.http_port}"
        assert second.stop() == 0
        assert len(pending(second)) == SCHEDULES


@pytest.mark.timeout(300)
def test_a_new_owner_takes_its_state_from_the_one_before_who_goes_on_firing(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    tenants = [
        next(name for name in map("tenant-{}".format, range(99))
             if partition_of(name.encode(), 2) == home)
        for home in (0, 1)
    ]  # fmt: skip
    given = {"CLUSTER__PARTITIONS": "2", "STANDBYS": "0", **GIVEN}
    with Site(kafka, unique("peers"), tmp_path, **given) as site:
        first = site.worker().start().wait_ready()
        for tenant in tenants:
            load(site, tenant)
        for home in (0, 1):
            keeps_all(first, home)
        for tenant in tenants:
            ask_for_some(site, tenant)
        second = site.worker().start()
        (restored,) = wait_for("its state", lambda: told(second, RESTORED), 60)
        assert restored["source"] == "peer"
        for tenant in tenants:
            wait_for("events", lambda name=tenant: len(site.fired(name)) >= SOON, 60)  # type: ignore[misc]
            assert [each.value for each in site.fired(tenant)] == [b"soon"] * SOON
        wait_for("the move", lambda: told(second, "partition taken over"))
        assert taken_over(second)[1] < SCHEDULES / 4
