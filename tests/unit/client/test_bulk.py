"""What the client makes of the options of a bulk job, and of the answers that show one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from belfry.api.json.jobs import merged, part
from belfry.client.bulk import BulkJob, signed_ms, spec_of
from belfry.client.requests import problem, request
from belfry.schedules.bulk import BULK, read_bulk
from belfry.store.layout.jobs import DONE, JobRow


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("5m", 300_000),
        ("-5m", -300_000),
        (-7, -7),
        (timedelta(hours=1), 3_600_000),
        (timedelta(seconds=-1), -1_000),
    ],
)
def test_a_move_goes_both_ways(given: Any, expected: int) -> None:
    assert signed_ms(given) == expected


def test_options_become_what_a_request_holds() -> None:
    options = {
        "prefix": "a/",
        "group": "g",
        "event_type": "t",
        "state": "PAUSED",
        "due_from": datetime(2030, 1, 1, tzinfo=UTC),
        "due_until": "2030-01-02T00:00:00Z",
        "move": "-1h",
        "per_second": 7,
        "reason": "of the request",
    }
    spec = spec_of("move", options)
    assert read_bulk(spec.text()) == spec
    assert (spec.action, spec.move_ms, spec.per_second) == ("MOVE", -3_600_000, 7)
    assert (spec.due_from, spec.due_until) == (1_893_456_000_000, 1_893_542_400_000)


def test_what_any_worker_would_refuse_is_refused_before_it_is_written() -> None:
    spec = spec_of("move", {})
    fields = request("demo", "job", BULK, {"bulk": spec.text()})
    assert (found := problem(fields, 0))
    assert found.code == "bad_bulk"
    assert problem(request("demo", "job", BULK, {"bulk": '{"action": "PAUSE"}'}), 0) is None


def test_a_job_reads_back() -> None:
    row = JobRow('{"action": "PAUSE"}', 1, 1_000_000_000_000, (0, 1), done=3, unchanged=1)
    running = BulkJob.from_json(merged("demo", [part("j", row)], 1_000_000_000_000))
    assert (running.running, running.action, running.matched, running.done) == (
        *(True, "PAUSE", 4, 3),
    )
    ended = row._replace(state=DONE, ended_ms=1_000_000_000_500)
    done = BulkJob.from_json(merged("demo", [part("j", ended)], 1_000_000_001_000))
    assert (done.running, done.ended_ms) == (False, 1_000_000_000_500)
