"""`belfry replay` after a kill, with a forged row, and under another policy; docs/replay.md."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tzdata
from confluent_kafka import Producer

from belfry.schedules.instants import format_instant
from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.requests import policy
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

TENANTS = ("alpha", "beta")


def replayed(site: Site, *options: str) -> tuple[int, Any]:
    """Run the command on a site's topics; its exit code, and what it printed as JSON."""
    given = {"BOOTSTRAP_SERVERS": site.bootstrap, "CLUSTER__TOPIC_PREFIX": site.prefix}
    run = subprocess.run(
        [*belfry(), "replay", "-o", "json", *options],
        env={**os.environ, **{f"BELFRY_{name}": value for name, value in given.items()}},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.stdout or run.returncode not in (0, 4), run.stderr
    return run.returncode, json.loads(run.stdout) if run.stdout else run.stderr


def same_bytes(site: Site) -> list[dict[str, Any]]:
    """All partitions of a site, each of which has to come out to the byte."""
    code, found = replayed(site)
    assert code == 0, json.dumps([each["difference"] for each in found], indent=1)
    return [each for each in found if each["requests"]]


# So many requests are sent in rounds with a kill in each, where somebody asks for it.
MANY = int(os.environ.get("REPLAYED", "0"))
ROUNDS = 10


def load(site: Site, first: int, number: int, soon_ms: int) -> None:
    """One-shots of two tenants, some cancelled, triggered or paused; rules and groups."""
    for each in range(first, first + number):
        tenant = TENANTS[each % 2]
        at = now_ms() + soon_ms + 5 * (each % 1_000)
        site.ask_soon(tenant, f"one-{each}", at=at, payload=b"x" * 50, request_id=f"r-{each}")
        if each % 10 == 0:
            site.ask_soon(tenant, f"one-{each}", action="CANCEL")
        if each % 50 == 0:
            site.ask_soon(
                tenant, f"each-{each}", kind="EVERY", interval_ms=300, max_fires=30, jitter_ms=50
            )
            site.ask_soon(tenant, f"cron-{each}", kind="CRON", cron="* * * * * *", max_fires=5)
            site.ask_soon(tenant, f"each-{each - 50}", action="PAUSE")
        if each % 25 == 0:
            site.ask_soon(tenant, f"later-{each}", at=at + 3_600_000, payload=b"later")
            site.ask_soon(tenant, f"later-{each}", action="TRIGGER")
        if each % 7 == 0:
            more = {"group": f"g{each % 3}", "serial": True, "ack_timeout_ms": 400}
            site.ask_soon(tenant, f"grouped-{each}", at=at, **more)
    site.producer.flush(20)


def apply(site: Site, tenant: str, **fields: Any) -> None:
    """Write a tenant's policy, as `belfry tenant set` does."""
    site.producer.produce(site.topic("tenants"), policy(tenant, **fields), tenant.encode())
    site.producer.flush(20)


@pytest.mark.timeout(240)
def test_what_workers_wrote_comes_out_again_and_a_forged_row_does_not(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("replayed"), tmp_path, LIFECYCLE="ALL") as site:
        worker = site.worker().start().wait_ready()
        site.ask(
            "alpha", "daily", kind="CRON", cron="0 12 * * *", timezone="Africa/Lagos", max_fires=2
        )
        load(site, 0, 200, 500)
        site.wait_fired("alpha", 50)
        worker.kill()
        load(site, 200, 50, 100)
        apply(site, "beta", max_fires_per_second=200, max_pending=150, lifecycle="ALL")
        worker.start().wait_ready()
        load(site, 250, 150, 200)
        site.wait_fired("alpha", 150)
        site.wait_fired("beta", 100)
        # While it fires on: what comes behind the end of a changelog is left for the next time.
        found = same_bytes(site)
        assert sum(each["requests"] for each in found) > 450
        assert sum(each["fires"] for each in found) > 250
        assert all(each["events_compared"] == each["fires"] for each in found)
        assert max(each["owners"] for each in found) == 2
        halved(site)
        slower(site, tmp_path)
        other_zones(site, tmp_path)
        forged(site)
        assert worker.stop() == 0


def halved(site: Site) -> None:
    """Up to an instant, fewer transactions are played."""
    code, found = replayed(site, "--partition", "0", "--until", "2020-01-01T00:00:00Z")
    assert (code, [each["transactions"] for each in found]) == (0, [0])


def slower(site: Site, folder: Path) -> None:
    """With a lower rate events would have come later; other tenants' would not."""
    file = folder / "slower.json"
    file.write_text(json.dumps({"tenant": "alpha", "max_fires_per_second": 5}))
    began = time.monotonic()
    code, found = replayed(site, "--with", str(file))
    assert code == 0, found
    assert time.monotonic() - began < 30
    tenants = {each["tenant"]: each for each in found["tenants"]}
    alpha, beta = tenants["alpha"], tenants["beta"]
    assert alpha["later"] + alpha["missing"] > 80
    assert alpha["earlier"] == 0
    assert alpha["examples"][0]["would_fire_at"] > alpha["examples"][0]["fired_at"]
    assert beta["fires"] == beta["would_fire"]
    assert (beta["later"], beta["earlier"], beta["missing"], beta["new"]) == (0, 0, 0, 0)


def other_zones(site: Site, folder: Path) -> None:
    """Under data in which a zone is an hour off, its schedules would have fired at other times."""
    place = Path(tzdata.__file__).parent
    there = folder / "zones" / "tzdata"
    shutil.copytree(place, there)
    zones = there / "zoneinfo"
    (zones / "Africa" / "Lagos").write_bytes((zones / "Africa" / "Cairo").read_bytes())
    until = format_instant(now_ms() + 2 * 86_400_000)
    options = ("--zone-data", str(there.parent), "--until", until)
    code, found = replayed(site, *options)
    assert code == 0, found
    alpha = next(each for each in found["tenants"] if each["tenant"] == "alpha")
    assert alpha["fires"] == alpha["would_fire"]
    assert (alpha["earlier"] + alpha["later"], alpha["missing"], alpha["new"]) == (2, 0, 0)
    assert {each["schedule_id"] for each in alpha["examples"]} == {"daily"}


def forged(site: Site) -> None:
    """A copy of a row under another name, which only a reader of all requests can tell."""
    theirs = next(
        each for each in site.read(site.topic("changelog")) if each.key == b"alpha/later-0"
    )
    producer = Producer({"bootstrap.servers": site.bootstrap})
    name = b"alpha/later-9"
    producer.produce(theirs.topic, theirs.value, name, partition=theirs.partition)
    assert producer.flush(20) == 0
    # A transaction behind it, to which it seems to belong.
    fired = len(site.fired("alpha"))
    site.ask("alpha", "after", at=now_ms())
    site.wait_fired("alpha", fired + 1)
    code, found = replayed(site, "--partition", str(theirs.partition))
    assert code == 4
    difference = found[0]["difference"]
    assert (difference["what"], difference["name"]) == ("row", name.decode())


if MANY:

    @pytest.mark.timeout(1_800)
    def test_many_requests_of_a_chaotic_run_come_out_again(
        kafka: str, tmp_path: Path, unique: Callable[[str], str]
    ) -> None:
        with Site(kafka, unique("replayed"), tmp_path, LIFECYCLE="ALL") as site:
            steady = site.worker().start().wait_ready()
            victim = site.worker().start().wait_ready()
            began = time.monotonic()
            each = MANY * 5 // 7 // ROUNDS
            for number in range(ROUNDS):
                load(site, number * each, each, 1_000)
                apply(site, "beta", max_fires_per_second=1_000 + 100 * number, lifecycle="ALL")
                victim.kill()
                time.sleep(4)
                victim.start().wait_ready()
            time.sleep(20)
            assert (steady.stop(), victim.stop()) == (0, 0)
            ran_s, began = time.monotonic() - began, time.monotonic()
            found = same_bytes(site)
            sums = {
                name: sum(each[name] for each in found)
                for name in ("transactions", "requests", "fires", "rows", "owners")
            }
            print(sums, f"ran {ran_s:.0f} s, played in {time.monotonic() - began:.0f} s")  # noqa: T201
            assert sums["requests"] >= MANY * 0.9
