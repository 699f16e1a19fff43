"""`belfry top`: a table where somebody looks, lines where nobody does, and nothing cut off."""

from __future__ import annotations

import re
import sys
from typing import Any

import orjson
import pytest

from belfry.cli import tenant_top, top
from belfry.cli.entry import main

PARTITION = {
    "partition": 3,
    "state": "firing",
    "pending": 1204,
    "ingest_lag_records": 7,
    "oldest_due_at": "2026-12-01T09:00:00.000Z",
}
WORKER = {
    "worker_id": "w1",
    "version": "1.0",
    "ready": True,
    "problems": [],
    "pending": 1204,
    "fired": 1000,
    "partitions": [PARTITION],
}
CLUSTER = {"app_id": "belfry", "workers": [WORKER], "silent": ["w2"]}


class Worker:
    """A worker that has fired so many events at each look."""

    def __init__(self, *fired: int, **changed: Any) -> None:
        self._fired, self._changed = iter(fired), changed

    def get(self, path: str) -> dict[str, Any]:
        assert path == "/v1/cluster"
        return {**CLUSTER, "workers": [{**WORKER, "fired": next(self._fired), **self._changed}]}


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by the pauses alone."""
    now = [100.0]

    def sleep(pause: float) -> None:
        now[0] += pause

    monkeypatch.setattr(top, "monotonic", lambda: now[0])
    monkeypatch.setattr(top, "sleep", sleep)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal of 100 columns: what captures the output claims to be one."""
    assert capsys is not None
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100"), ("LINES", "40")):
        monkeypatch.setenv(name, value)


def run(monkeypatch: pytest.MonkeyPatch, worker: Worker, *arguments: str) -> None:
    monkeypatch.setattr(top, "Remote", lambda _session: worker)
    assert main(["top", *arguments]) == 0


@pytest.mark.usefixtures("seconds")
def test_a_pipe_gets_lines_with_fires_a_second_of_two_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, Worker(1000, 1400, 50), "--count", "3")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    rates = [line for line in out.splitlines() if line.startswith("w1")]
    assert [line.rsplit("  ", 1)[1] for line in rates] == ["0 fires/s", "200 fires/s", "0 fires/s"]
    assert out.count("belfry: 1 worker, 1,204 pending") == 3
    assert out.count("w2  does not answer") == 3
    assert "   3  firing" in out
    assert "7 to take in  next 2026-12-01T09:00:00.000Z" in out


@pytest.mark.usefixtures("seconds", "terminal")
def test_a_terminal_gets_one_table_that_is_drawn_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, Worker(1000, 1400), "--count", "2")
    out = capsys.readouterr().out
    # The second look goes up to the beginning of the first, so that both are in one place.
    first, second = out.split("\x1b[1A")[0], out.rsplit("\x1b[1A", 1)[1]
    for told in ("w1", "firing", "1,204", "w2", "does not"):
        assert told in first
        assert told in second
    assert "200" in second
    assert "200" not in first


@pytest.mark.usefixtures("seconds", "terminal")
def test_no_id_is_cut_however_narrow_the_terminal_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "worker-of-the-payments-department-in-frankfurt-am-main-4711"
    monkeypatch.setenv("COLUMNS", "50")
    run(monkeypatch, Worker(0, worker_id=name), "--count", "1")
    out = capsys.readouterr().out
    assert "…" not in out
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out).splitlines()
    heading = next(line for line in lines if "state" in line)
    width = heading.index("state") - 1
    column = "".join(line[:width].strip() for line in lines[lines.index(heading) + 1 :])
    assert name in column


@pytest.mark.usefixtures("seconds", "terminal")
def test_others_words_command_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Wide enough for all columns, whatever terminal these tests run in.
    monkeypatch.setenv("COLUMNS", "200")
    worker = Worker(0, ready=False, problems=["[red]\x1b[2J"])
    run(monkeypatch, worker, "--count", "1")
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert "[red]\\x1b[2J" in out


@pytest.mark.usefixtures("seconds", "terminal")
def test_a_key_of_some_tenants_is_told_no_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = {**PARTITION, "pending": None, "ingest_lag_records": None, "oldest_due_at": None}
    run(monkeypatch, Worker(0, pending=None, partitions=[bare]), "--count", "1")
    out = capsys.readouterr().out
    assert "belfry: 1 worker" in out
    assert "None" not in out


@pytest.mark.usefixtures("seconds", "terminal")
def test_programs_get_the_answer_on_a_terminal_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, Worker(5), "--count", "1", "-o", "jsonl")
    assert '"worker_id":"w1"' in capsys.readouterr().out


@pytest.mark.usefixtures("seconds")
def test_several_looks_are_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, Worker(5, 6), "--count", "2", "-o", "json")
    looks = orjson.loads(capsys.readouterr().out)
    assert [each["workers"][0]["fired"] for each in looks] == [5, 6]
    run(monkeypatch, Worker(7), "--count", "1", "-o", "json")
    assert orjson.loads(capsys.readouterr().out)["workers"][0]["fired"] == 7


def tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = {
        "waiting": 2,
        "cause": "rate",
        "since": "2026-12-01T09:00:00.000Z",
        "reason": "its policy allows 5 a second",
        "oldest_due_at": None,
    }
    figure = {"tenant": "shop", "pending": 14, "fired": 100, "rejected": 8, "late_seconds": 30.0}
    found = {
        "silent": ["w2"],
        "figures": [{**figure, "wait": wait}, {**figure, "tenant": "x\x1b[2J", "wait": None}],
    }

    class Tenants:
        def get(self, _path: str, **_query: Any) -> dict[str, Any]:
            return found

    monkeypatch.setattr(tenant_top, "Remote", lambda _session: Tenants())
    assert main(["tenant", "top"]) == 0


def test_tenants_are_lines_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tenants(monkeypatch)
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert [line.split()[0] for line in lines] == ["shop", "2", "x\\x1b[2J"]
    assert lines[0].endswith("300 ms late")
    assert lines[1].endswith("(rate) since 2026-12-01T09:00:00.000Z: its policy allows 5 a second")
    assert "w2 does not answer" in told.err


@pytest.mark.usefixtures("terminal")
def test_tenants_are_a_table_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    tenants(monkeypatch)
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    for told in ("tenant", "ms late", "shop", "300", "its policy allows 5 a second", "x\\x1b[2J"):
        assert told in out


@pytest.mark.parametrize("arguments", [[], ["--interval", "1"]])
def test_ctrl_c_is_its_usual_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(top, "sleep", interrupted)
    run(monkeypatch, Worker(1000), *arguments)
    assert "w1" in capsys.readouterr().out
