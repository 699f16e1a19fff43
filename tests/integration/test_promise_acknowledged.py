"""The next event of a serial group leaves when the last one was acknowledged, across owners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

EVENTS = 4


def test_a_serial_group_waits_for_each_acknowledgement(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """The worker is killed while the group waits; the next one has to know what is awaited."""
    with Site(kafka, unique("serial"), tmp_path) as site:
        worker = site.worker().start().wait_ready()
        due_ms = now_ms() + 200
        for number in range(EVENTS):
            site.ask("t", f"s{number}", at=due_ms + number, group="g", serial=True)
        for number in range(EVENTS):
            record = fired(site, f"s{number}")
            if number == EVENTS // 2:
                worker.kill()
                worker = site.worker().start().wait_ready()
            # Somebody else's event is due later than all of the group, and waits for nobody.
            site.ask("t", f"free{number}", at=due_ms + EVENTS)
            fired(site, f"free{number}")
            assert len(site.fired("t")) == 2 * (number + 1)
            fire_id = (record.header("belfry-fire-id") or b"").decode()
            ask = {"action": "ACK", "fire_id": fire_id, "request_id": f"ack {number}"}
            site.ask("t", f"s{number}", **ask)
            assert site.outcome(f"ack {number}")["outcome"] == "UPDATED"
        assert len(site.fired("t")) == 2 * EVENTS


def fired(site: Site, schedule_id: str) -> Record:
    """The event of a schedule, once it is there."""

    def found() -> list[Record]:
        name = schedule_id.encode()
        return [each for each in site.fired("t") if each.header("belfry-schedule-id") == name]

    (record,) = wait_for(f"the event of {schedule_id}", found)
    return record
