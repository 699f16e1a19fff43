"""A `read_committed` reader never sees a record of a transaction that did not come to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

EVENTS = 1_500
PAYLOAD = b" " + b"x" * 3_000
ROUNDS = 3
CHUNK = 50


def test_aborted_records_are_never_seen(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """Killed before its commit again and again, the worker leaves torn transactions behind."""
    # One partition, so one thread: while it is held, nothing else fires.
    # What a transaction wrote leaves before its commit, as that of a large one does.
    settings = {"CLUSTER__PARTITIONS": "1", "FIRE_CHUNK": str(CHUNK), "KAFKA__LINGER_MS": "5"}
    with Site(kafka, unique("torn"), tmp_path, **settings) as site:
        worker = site.worker().start().wait_ready()
        due_ms = now_ms() + 2_000
        for number in range(EVENTS):
            value = request("t", f"s{number}", at=due_ms, payload=b"%d" % number + PAYLOAD)
            site.producer.produce(site.topic("schedules"), value, key=b"t")
        last = request("t", "last", at=due_ms + 600_000, request_id="last")
        site.producer.produce(site.topic("schedules"), last, key=b"t")
        site.producer.flush()
        site.outcome("last")
        worker.kill()
        for _ in range(ROUNDS):
            # The first transaction is the claim, the third one fires; held until what it wrote is
            # in the log, it is torn.
            worker.start("S5:hang:3").wait_end()
        worker.start().wait_ready()
        committed = site.wait_fired("t", EVENTS)
        everything = site.fired("t", isolation="read_uncommitted")
        assert len(everything) >= EVENTS + ROUNDS * CHUNK
        assert len(committed) == EVENTS
        assert len({record.value for record in committed}) == EVENTS
        ids = [record.header("belfry-fire-id") for record in everything]
        assert len(set(ids)) == EVENTS, "a fire has the same id at every attempt"
