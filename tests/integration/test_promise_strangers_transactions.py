"""Transactions of strangers in belfry's topics: what they hold up is waited for and named.

belfry.changelog/p   ── committed ──┬ stranger's, open ┬── committed by the owner, hidden ──┐
                             last stable offset                                      log end

Whoever takes the partition over reads up to the last stable offset.  An end before the log's end
is proof that something is hidden: nothing may fire before it can be read.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest
from confluent_kafka import Producer

from belfry.cli.entry import main
from tests.acceptance.harness.java_tools import tool
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.stranger import Stranger
from tests.acceptance.harness.worker import Worker

pytestmark = pytest.mark.slow

EVENTS = 5
LIMIT_S = 60.0


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("stranger"), tmp_path)


def unready(worker: Worker, *words: str) -> str:
    """What `/healthz/ready` says once it says all of these words."""

    def told() -> str:
        status, body = worker.get("/healthz/ready")
        return body if status == 503 and all(word in body for word in words) else ""

    return wait_for(f"{words} at /healthz/ready", told)


def fired(site: Site) -> Counter[bytes | None]:
    """How often each event came out."""
    return Counter(record.value for record in site.fired("t"))


def abort_command(said: str) -> list[str]:
    """The command that is given with what `/healthz/ready` says."""
    found = re.search(r"`(kafka-transactions\.sh [^`]* abort [^`]*)`", said)
    assert found, said
    return shlex.split(found[1])


def run(command: list[str], temp_dir: Path) -> None:
    """Run one of Kafka's own tools."""
    begin, *rest = command
    done = subprocess.run(
        [*tool(begin, temp_dir), *rest], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done


def test_nothing_fires_while_a_strangers_transaction_hides_what_the_owner_did(
    site: Site, tmp_path: Path
) -> None:
    with site:
        worker = site.worker().start().wait_ready()
        home = site.ask("t", "first", at=now_ms(), payload=b"first", request_id="0").partition()
        site.wait_fired("t", 1)
        stranger = Stranger(site, "changelog", home)
        for number in range(EVENTS):
            site.ask("t", f"s{number}", at=now_ms(), payload=b"%d" % number)
        assert len(site.wait_fired("t", 1 + EVENTS)) == 1 + EVENTS

        assert worker.stop() == 0
        worker.start()
        unready(worker, "hides what was committed", stranger.name)
        worker.kill()
        rmtree(worker.data_dir)
        worker.start()
        said = unready(worker, stranger.name, "kafka-transactions.sh", "--start-offset")
        assert f"--partition {home}" in said
        assert set(fired(site).values()) == {1}

        run(abort_command(said), tmp_path)
        worker.wait_ready()
        stranger.end()
        site.ask("t", "last", at=now_ms(), payload=b"last")
        site.wait_fired("t", 2 + EVENTS)
        assert set(fired(site).values()) == {1}
        said = worker.log.read_text("utf-8")
        assert "another topic" not in said
        assert "HoleInChangelog" not in said
        assert stranger.name in said


def test_a_take_over_does_not_wait_for_what_nobody_can_read(site: Site) -> None:
    with site:
        # Waiting out the limit would fail the test.
        worker = site.worker(CATCH_UP_LIMIT_MS="300000").start().wait_ready()
        sent = site.ask("t", "due", at=now_ms() + 1_500, payload=b"yes", request_id="1")
        assert site.outcome("1")["outcome"] == "ACCEPTED"
        worker.kill()
        stranger = Stranger(site, "schedules", sent.partition())
        worker.start()
        site.wait_fired("t", 1, LIMIT_S)
        wait_for("the holder in the log", lambda: stranger.name in worker.log.read_text("utf-8"))
        wait_for(
            "the metric",
            lambda: (
                f'partition="{sent.partition()}",topic="schedules"' in worker.get("/metrics")[1]
            ),
        )
        # What comes behind the transaction is taken in when that is over, and not lost.
        site.ask("t", "behind", at=now_ms(), payload=b"behind")
        stranger.end()
        assert [each.value for each in site.wait_fired("t", 2)] == [b"yes", b"behind"]


def test_a_worker_starts_with_the_policies_that_can_be_read(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with site:
        worker = site.worker().start().wait_ready()
        worker.kill()
        stranger = Stranger(site, "tenants", 0)
        worker.start().wait_ready()
        site.ask("t", "x", at=now_ms(), payload=b"yes")
        site.wait_fired("t", 1)
        wait_for("the holder in the log", lambda: stranger.name in worker.log.read_text("utf-8"))

        for name, value in (("TOPIC_PREFIX", site.prefix), ("APP_ID", site.name)):
            monkeypatch.setenv(f"BELFRY_CLUSTER__{name}", value)
        main(["doctor", "--bootstrap-servers", site.bootstrap])
        said = capsys.readouterr().out
        assert f"counts before it ends: a stranger: transactional id '{stranger.name}'" in said
        assert f"abort --topic {site.topic('tenants')} --partition 0 --start-offset 0" in said
        stranger.end()
        main(["doctor", "--bootstrap-servers", site.bootstrap])
        assert "transactions None holds" in capsys.readouterr().out
        assert main(["tenant", "list", "--bootstrap-servers", site.bootstrap]) == 0


def test_what_a_worker_of_belfry_left_open_is_waited_for(site: Site) -> None:
    """A cancel may lie behind a stray of another partition's owner, who died with it open."""
    with site:
        worker = site.worker().start().wait_ready()
        sent = site.ask("t", "x", at=now_ms() + 2_500, payload=b"no", request_id="1")
        assert site.outcome("1")["outcome"] == "ACCEPTED"
        worker.kill()
        # A transactional id of belfry's own, of a partition that nobody takes over.
        other = {"bootstrap.servers": site.bootstrap, "transactional.id": f"{site.name}.99"}
        slow = Producer(other)
        slow.init_transactions()
        slow.begin_transaction()
        value = request("t", "y", at=now_ms(), payload=b"y")
        slow.produce(site.topic("schedules"), value, partition=sent.partition())
        slow.flush()
        site.ask("t", "x", action="CANCEL", request_id="2")
        time.sleep(2.5)
        worker.start()
        time.sleep(4.0)
        slow.commit_transaction()
        assert [record.value for record in site.wait_fired("t", 1)] == [b"y"]
        assert site.outcome("2")["outcome"] == "CANCELLED"
