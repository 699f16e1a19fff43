"""The next event of a serial group leaves when the last one was acknowledged, across owners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.http import Http, place, schedules
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
            if number == 0:
                check_what_waits(Http(worker), record, due_ms + EVENTS)
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


def check_what_waits(http: Http, record: Record, until_ms: int) -> None:
    """The others are in lists and counts, with the reason, and the fire to acknowledge is told."""

    def waiting() -> list[tuple[str, str | None]]:
        page = http("GET", f"{schedules('t')}?due_until={until_ms}")[1]["schedules"]
        return [(each["schedule_id"], each.get("waiting_for")) for each in page]

    behind = [(f"s{number}", "ack_lock") for number in range(1, EVENTS)]
    wait_for("all that wait behind the lock", lambda: waiting() == behind)
    counts = http("GET", f"/v1/tenants/t/counts?due_until={until_ms}")[1]["counts"]
    assert sum(each["pending"] for each in counts) == len(behind)
    (lock,) = http("GET", "/v1/tenants/t/locks")[1]["locks"]
    assert lock["fire_id"] == (record.header("belfry-fire-id") or b"").decode()
    assert (lock["schedule_id"], lock["group"], lock["locks"]) == ("s0", "g", ["group"])
    assert "'g'" in http("GET", place("t", "s1"))[1]["waiting_reason"]

    def reasons() -> set[str | None]:
        return {each["waiting_for"] for each in http("GET", "/healthz/ready")[1]["partitions"]}

    wait_for("the oldest due event to be one of them", lambda: "ack_lock" in reasons())


def fired(site: Site, schedule_id: str) -> Record:
    """The event of a schedule, once it is there."""

    def found() -> list[Record]:
        name = schedule_id.encode()
        return [each for each in site.fired("t") if each.header("belfry-schedule-id") == name]

    (record,) = wait_for(f"the event of {schedule_id}", found)
    return record
