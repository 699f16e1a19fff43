"""A worker that stops stops well, and what happened meanwhile counts.

sent ───────── due            never fires: the cancel was in the log before the worker was back
      stop ─── cancel ─── start
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belfry.devstack import free_port
from tests.acceptance.harness.requests import request, request_body
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

STOP_S = 8.0


@pytest.fixture
def site(kafka: str, tmp_path: Path, unique: Callable[[str], str]) -> Site:
    """A belfry without workers."""
    return Site(kafka, unique("stop"), tmp_path)


def test_sigterm_ends_with_code_0_and_the_next_start_takes_up(site: Site) -> None:
    with site:
        worker = site.worker().start().wait_ready()
        due_ms = now_ms() + 6_000
        site.ask("t", "cancelled", at=due_ms, payload=b"no", request_id="1")
        site.ask("t", "replaced", at=due_ms, payload=b"old", request_id="2")
        site.ask("t", "overdue", at=due_ms, payload=b"yes", request_id="3")
        for number in "123":
            assert site.outcome(number)["outcome"] == "ACCEPTED"
        asked = time.monotonic()
        assert worker.stop() == 0
        assert time.monotonic() - asked < STOP_S
        site.ask("t", "cancelled", action="CANCEL", request_id="4")
        site.ask("t", "replaced", at=due_ms + 1_500, payload=b"new", request_id="5")
        time.sleep(max(0.0, (due_ms - now_ms()) / 1000))
        worker.start().wait_ready()
        assert [record.value for record in site.wait_fired("t", 2)] == [b"yes", b"new"]
        assert site.outcome("4")["outcome"] == "CANCELLED"
        assert site.outcome("5")["outcome"] == "UPDATED"


def test_a_stop_before_a_broker_answers_is_graceful(site: Site) -> None:
    with site:
        nobody = f"127.0.0.1:{free_port()}"
        worker = site.worker(BOOTSTRAP_SERVERS=nobody).start()
        wait_for("the worker to try", lambda: "no Kafka broker answers" in worker.said())
        said = f"the worker starts: no Kafka broker answers yet at {nobody}: "
        wait_for("readiness to say so", lambda: said in worker.get("/healthz/ready")[1])
        assert not worker.ready
        assert worker.stop(STOP_S) == 0
        assert "Traceback" not in worker.said()


def test_a_stop_while_the_registry_is_away_is_graceful(site: Site) -> None:
    with site:
        url = f"http://127.0.0.1:{free_port()}"
        worker = site.worker(SCHEMA_REGISTRY_URL=url).start().wait_ready()
        site.send(b"\0\0\0\0\1" + request_body("t", "x", at=now_ms()), key=b"t")
        time.sleep(2.0)
        asked = time.monotonic()
        assert worker.stop() == 0
        assert time.monotonic() - asked < STOP_S


def test_a_stop_amid_fires_loses_none(site: Site) -> None:
    with site:
        worker = site.worker().start().wait_ready()
        due_ms = now_ms() + 1_500
        for number in range(1_000):
            site.producer.produce(
                site.topic("schedules"),
                request("t", f"s{number}", at=due_ms + number, payload=b"%d" % number),
                key=b"t",
            )
        site.producer.flush()
        time.sleep(max(0.0, (due_ms + 500 - now_ms()) / 1000))
        assert worker.stop() == 0
        worker.start().wait_ready()
        found = [record.value for record in site.wait_fired("t", 1_000)]
        assert len(found) == 1_000
        assert set(found) == {b"%d" % number for number in range(1_000)}
        assert len(re.findall("stopping", worker.log.read_text("utf-8"))) == 1
