"""`belfry verify` after a kill, and with forged records; the commands of docs/verify.md."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer

from belfry.devstack.ports import free_port
from tests.acceptance.harness.site import Site, now_ms
from tests.acceptance.harness.verifying import assert_verified, verified, verifying

pytestmark = pytest.mark.slow

TENANTS = ("alpha", "beta")


def load(site: Site, first: int, number: int, soon_ms: int) -> None:
    """One-shots of two tenants, of which some are cancelled, and a few that recur."""
    for each in range(first, first + number):
        tenant = TENANTS[each % 2]
        at = now_ms() + soon_ms + 5 * each
        site.ask_soon(tenant, f"one-{each}", at=at, payload=b"x" * 50)
        if each % 10 == 0:
            site.ask_soon(tenant, f"one-{each}", action="CANCEL")
        if each % 50 == 0:
            site.ask_soon(tenant, f"each-{each}", kind="EVERY", interval_ms=200)
        if each % 25 == 0:
            site.ask_soon(tenant, f"later-{each}", at=at + 3_600_000, payload=b"later")
            site.ask_soon(tenant, f"later-{each}", action="TRIGGER")
    site.producer.flush(20)


@pytest.mark.timeout(120)
def test_a_kill_leaves_nothing_wrong_and_forged_records_are_found(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("verified"), tmp_path, LIFECYCLE="ALL") as site:
        worker = site.worker().start().wait_ready()
        load(site, 0, 600, 500)
        site.wait_fired("alpha", 50)
        worker.kill()
        load(site, 600, 200, 100)
        worker.start().wait_ready()
        site.wait_fired("beta", 350)
        # While it fires on: what is on its way is no finding.
        state = tmp_path / "verified.db"
        run = verified(site, state=state)
        assert run.code == 0, run.report
        assert run.report["counts"]["fires"] > 300
        assert worker.stop() == 0
        whole = assert_verified(site)
        counts = whole.report["counts"]
        assert counts["checked"] > 20
        assert not counts["compacted"], "a kill leaves a hole in the offsets, and removes nothing"
        assert counts["digests"] > 0.9 * counts["checked"]
        forge(site)
        began = time.monotonic()
        found = verified(site, "--grace", "1s", state=state)
        assert found.code == 4
        assert sorted(found.kinds) == ["doubled", "stranger", "unasked"]
        # From where it was, it reads only what is new.
        assert found.report["counts"]["outputs"] < counts["outputs"]
        assert time.monotonic() - began < 20
        assert verified(site, state=state).code == 0, "each finding is told once"
        passes = verified_again_and_again(site, state)
        assert [each["findings"] for each in passes] == [[], []]
        # The page says what ends with which code.
        assert verify_code(site, "--bootstrap-servers", "127.0.0.1:1") == 1
        assert verify_code(site, CLUSTER__TOPIC_PREFIX="nobody.") == 3


def verified_again_and_again(site: Site, state: Path) -> list[dict[str, Any]]:
    """The first two passes of `belfry verify --every 1s --state FILE -o jsonl`: a line for each.

    Prometheus would be shown both.
    """
    place = f"127.0.0.1:{free_port()}"
    given = ("--every", "1s", "--state", str(state), "-o", "jsonl", "--metrics", place)
    with verifying(site, *given) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline() for _ in range(2)]
        with urlopen(f"http://{place}/metrics", timeout=10) as answer:
            shown = answer.read().decode()
        assert 'belfry_verify_passes_total{outcome="complete"} 2.0' in shown
        assert 'belfry_verify_findings_total{kind="overdue"} 0.0' in shown
        assert "belfry_verify_behind_records 0.0" in shown
        run.send_signal(signal.SIGINT)
        run.wait(20)
    return [json.loads(line) for line in lines]


def verify_code(site: Site, *options: str, **settings: str) -> int:
    """How a run ends that cannot verify anything."""
    with verifying(site, *options, **settings) as run:
        _, error = run.communicate(timeout=60)
    assert error.startswith("belfry: "), error
    return run.returncode


def forge(site: Site) -> None:
    """What a stranger could do who may write to all topics."""
    [one] = site.fired("alpha")[:1]
    producer = Producer({"bootstrap.servers": site.bootstrap})
    doubled: Any = one.headers
    unasked: Any = [(k, b"0" * 32 if k == "belfry-fire-id" else v) for k, v in one.headers]
    for headers in (doubled, unasked):
        producer.produce(one.topic, one.value, one.key, partition=0, headers=headers)
    producer.produce(site.topic("changelog"), b"\1\x63", b"alpha/theirs", partition=0)
    assert producer.flush(20) == 0
