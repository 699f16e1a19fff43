"""`belfry backfill`: it counts occurrences first, asks, begins, and shows the end."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from belfry.api.json.jobs import merged, part
from belfry.cli import backfill, jobs
from belfry.cli.entry import main
from belfry.schedules.backfill import MOST_OCCURRENCES
from belfry.store.layout.jobs import DONE, JobRow

NOW: Final = 1_800_000_000_000
SPEC: Final = '{"action": "BACKFILL", "range_from": 1796083200000, "range_until": 1796169600000}'
RANGE: Final = ("--from", "2026-12-01T00:00:00Z", "--until", "2026-12-02T00:00:00Z")


class Worker:
    """Answers as a worker does; remembers what it was asked."""

    def __init__(self, occurrences: int = 24, matched: int = 1, **row: Any) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.page = {"matched": matched, "sample": [], "occurrences": occurrences}
        self.page |= {"first": "2026-12-01T00:00:00.000Z", "last": "2026-12-01T23:00:00.000Z"}
        self.row = JobRow(SPEC, 1, NOW, (0, 1), state=DONE, ended_ms=NOW, **row)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append((method, path, body))
        if "dry=true" not in path:
            return {"outcome": "ACCEPTED", "schedule_id": "j/1"}
        last = "cursor=" in path
        later = {"first": None, "last": "2026-12-01T23:30:00.000Z", "occurrences": 0}
        return {**self.page, **(later if last else {}), "cursor": None if last else "more"}

    def get(self, _path: str, **_query: Any) -> Any:
        return merged("demo", [part("j/1", self.row)], NOW)

    @property
    def begun(self) -> list[Any]:
        return [body for _, path, body in self.asked if path == "/v1/tenants/demo/jobs"]


def use(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> Worker:
    monkeypatch.setattr(backfill, "Remote", lambda _session: worker)
    monkeypatch.setattr(jobs, "sleep", lambda _s: None)
    return worker


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    return use(monkeypatch, Worker(done=1, fired=24))


def test_it_is_counted_begun_and_followed_to_its_end(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backfill", "demo", "report", *RANGE, "--yes", "--reason", "lost"]) == 0
    told, noted = capsys.readouterr()
    first, last = "2026-12-01T00:00:00.000Z", "2026-12-01T23:30:00.000Z"
    assert f"24 occurrences of 2 schedules, from {first} to {last}" in noted
    assert "DONE    BACKFILL j/1" in told
    assert "1 done, 0 unchanged, 0 refused, 24 fired" in told
    assert worker.begun == [
        {
            "action": "BACKFILL",
            "schedule_id": "report",
            "range_from": 1_796_083_200_000,
            "range_until": 1_796_169_600_000,
            "per_second": 100,
            "reason": "lost",
        }
    ]


def test_a_dry_run_tells_the_count(worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backfill", "demo", "--prefix", "", *RANGE, "--dry-run", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["occurrences"] == 24
    assert not worker.begun


@pytest.mark.parametrize("given", [(), ("report", "--group", "eu")])
def test_it_has_to_be_said_whose_occurrences(worker: Worker, given: tuple[str, ...]) -> None:
    assert main(["backfill", "demo", *given, *RANGE, "--yes"]) == 2
    assert not worker.asked


def test_nothing_begins_where_nobody_can_be_asked(worker: Worker) -> None:
    assert main(["backfill", "demo", "report", *RANGE]) == 2
    assert not worker.begun


@pytest.mark.parametrize(
    ("found", "code"), [(Worker(MOST_OCCURRENCES + 1), 1), (Worker(0, 0), 3), (Worker(0), 0)]
)
def test_too_many_and_none_begin_nothing(
    monkeypatch: pytest.MonkeyPatch, found: Worker, code: int
) -> None:
    use(monkeypatch, found)
    assert main(["backfill", "demo", "report", *RANGE, "--yes"]) == code
    assert not found.begun


def test_a_range_that_ends_before_it_begins_is_wrong_use(
    worker: Worker, capsys: pytest.CaptureFixture[str]
) -> None:
    back = ("--from", RANGE[3], "--until", RANGE[1])
    assert main(["backfill", "demo", "report", *back, "--yes"]) == 2
    wrong = "--from 2026-12-02T00:00:00.000Z is not before --until 2026-12-01T00:00:00.000Z"
    assert f"{wrong}: exchange them." in capsys.readouterr().err
    assert not worker.asked


def test_what_was_refused_shows_in_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Worker(refused=1, refusals={"not_recurring": 1}))
    assert main(["backfill", "demo", "once", *RANGE, "-y"]) == 1
