"""`belfry bulk`: it counts first, asks, begins, and shows the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any, Final

import pytest

from belfry.api.json.jobs import merged, part
from belfry.cli import bulk, jobs
from belfry.cli.entry import main
from belfry.store.layout.jobs import DONE, JobRow

NOW: Final = 1_800_000_000_000


class Worker:
    """Answers as a worker does; remembers what it was asked."""

    def __init__(self, matched: int = 2, **row: Any) -> None:
        self.matched = matched
        self.asked: list[tuple[str, str, Any]] = []
        self.rows = [
            JobRow('{"action": "CANCEL"}', 1, NOW, (0, 1)),
            JobRow('{"action": "CANCEL"}', 1, NOW, (0, 1), state=DONE, ended_ms=NOW, **row),
        ]

    def ask(self, method: str, path: str, body: Any = None, _headers: Any = None) -> Any:
        self.asked.append((method, path, body))
        if "dry=true" in path:
            last = "cursor=" in path
            sample = ["a", "b"][: self.matched]
            return {"matched": self.matched, "sample": sample, "cursor": None if last else "more"}
        if method == "DELETE":
            return {"outcome": "CANCELLED"}
        return {"outcome": "ACCEPTED", "schedule_id": "j/1"}

    def get(self, path: str, **_query: Any) -> Any:
        self.asked.append(("GET", path, None))
        row = self.rows.pop(0) if len(self.rows) > 1 else self.rows[0]
        job = merged("demo", [part("j/1", row)], NOW)
        return {"jobs": [job]} if path.endswith("/jobs") else job

    def paths(self, method: str) -> list[str]:
        return [path for each, path, _ in self.asked if each == method]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    worker = Worker(done=4, examined=9)
    monkeypatch.setattr(bulk, "Remote", lambda _session: worker)
    monkeypatch.setattr(jobs, "sleep", lambda _s: None)
    return worker


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: its exit code, and what it printed to stdout and stderr."""

    def ran(*given: str) -> tuple[int, str, str]:
        code = main(["bulk", *given])
        return code, *capsys.readouterr()

    return ran


def test_a_job_is_counted_begun_and_followed_to_its_end(worker: Worker, run: Run) -> None:
    until = ("--due-until", "2030-01-01T00:00:00Z")
    code, told, noted = run("cancel", "demo", "--prefix", "a/", *until, "--yes")
    assert code == 0
    assert "4 schedules of demo match: a, b, a, b" in noted
    assert told.startswith("DONE")
    assert "4 done, 0 unchanged, 0 refused" in told
    (begun,) = [body for method, path, body in worker.asked if path == "/v1/tenants/demo/jobs"]
    assert begun == {
        "action": "CANCEL",
        "prefix": "a/",
        "due_until": 1_893_456_000_000,
        "per_second": 500,
    }
    assert worker.paths("GET") == ["/v1/tenants/demo/jobs/j%2F1"] * 2


def test_nothing_begins_where_nobody_can_be_asked(worker: Worker, run: Run) -> None:
    assert run("pause", "demo")[0] == 2
    assert all("dry=true" in path for path in worker.paths("POST"))


def test_where_nothing_matches_no_job_begins(
    worker: Worker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = Worker(0)
    monkeypatch.setattr(bulk, "Remote", lambda _session: none)
    assert run("pause", "demo") == (0, "0 schedules of demo match\n", "")
    assert run("pause", "demo", "--yes")[0] == 0
    assert all("dry=true" in path for path in none.paths("POST"))


def test_a_dry_run_tells_the_count(worker: Worker, run: Run) -> None:
    _, told, _ = run("trigger", "demo", "--dry", "-o", "json")
    assert json.loads(told) == {"matched": 4, "sample": ["a", "b", "a", "b"]}
    assert len(worker.asked) == 2


def test_all_pages_and_the_job_mean_the_key_that_the_first_page_names(
    worker: Worker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = worker.ask

    def ask(method: str, path: str, body: Any = None, _headers: Any = None) -> Any:
        given = told(method, path, None if body is None else dict(body))
        return {**given, "key": "00ff" * 4} if "dry=true" in path else given

    monkeypatch.setattr(worker, "ask", ask)
    assert run("rekey", "demo", "--yes", "--no-wait")[0] == 0
    bodies = [body for method, _, body in worker.asked if method == "POST"]
    assert [each["action"] for each in bodies] == ["REKEY"] * 3
    assert [each.get("key") for each in bodies] == [None, "00ff" * 4, "00ff" * 4]


def test_what_no_job_reaches_is_told_of_with_the_count(
    worker: Worker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = worker.ask

    def ask(method: str, path: str, body: Any = None, headers: Any = None) -> Any:
        given = told(method, path, body, headers)
        return {**given, "key": "00ff" * 4, "sealed_elsewhere": 2}

    monkeypatch.setattr(worker, "ask", ask)
    _, told_json, _ = run("rekey", "demo", "--dry", "-o", "json")
    assert json.loads(told_json)["sealed_elsewhere"] == 4
    _, text, _ = run("rekey", "demo", "--dry")
    assert "4 besides have payloads elsewhere, which keep the key they have" in text


@pytest.mark.parametrize(("by", "move_ms"), [("--by=1h", 3_600_000), ("--by=-5m", -300_000)])
def test_a_move_goes_both_ways(worker: Worker, run: Run, by: str, move_ms: int) -> None:
    assert run("move", "demo", by, "--yes", "--no-wait")[0] == 0
    assert worker.asked[-1][2]["move_ms"] == move_ms
    assert not worker.paths("GET")


def test_what_was_refused_is_told_and_shows_in_the_exit_code(
    worker: Worker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Worker(refused=2, refusals={"not_movable": 2})
    monkeypatch.setattr(bulk, "Remote", lambda _session: refused)
    code, told, _ = run("move", "demo", "--by", "1h", "-y")
    assert code == 1
    assert "2 refused (not_movable: 2)" in told


def test_jobs_are_listed_shown_and_stopped(worker: Worker, run: Run) -> None:
    assert "RUNNING CANCEL  j/1  all" in run("list", "demo")[1]
    assert "DONE    CANCEL  j/1" in run("get", "demo", "j/1")[1]
    assert run("stop", "demo", "j/1", "--reason", "no more")[1] == "CANCELLED j/1\n"
    assert worker.paths("DELETE") == ["/v1/tenants/demo/jobs/j%2F1?reason=no+more"]


def test_a_state_that_no_job_knows_is_wrong_use(worker: Worker, run: Run) -> None:
    assert run("cancel", "demo", "--state", "fired", "--yes")[0] == 2
    assert not worker.asked


@pytest.mark.parametrize(("says", "begins"), [("y\n", 1), ("n\n", 0), ("\n", 0)])
def test_somebody_is_asked(
    worker: Worker, run: Run, monkeypatch: pytest.MonkeyPatch, says: str, begins: int
) -> None:
    stdin = StringIO(says)
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", stdin)
    code, _, noted = run("cancel", "demo")
    assert "CANCEL 4 schedules of demo?" in noted
    assert code == (0 if begins else 1)
    assert worker.paths("POST").count("/v1/tenants/demo/jobs") == begins
