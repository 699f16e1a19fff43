"""Progress is a bar at a terminal, a note now and then elsewhere, and nothing for programs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from belfry.bench import runs
from belfry.bench.plan import BenchPlan, Tell
from belfry.bench.result import Result
from belfry.cli.entry import main
from belfry.cli.progress import progress_of
from belfry.cli.session import Session
from belfry.cli.shown import PROGRESS_S, Output, Printer

PEOPLE = Printer(Output.TEXT)


class Clock:
    """Seconds that go on when they are told to."""

    def __init__(self) -> None:
        self.at_s = 50.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal of 100 columns: what captures the output claims to be one."""
    assert capsys is not None
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100"), ("LINES", "40")):
        monkeypatch.setenv(name, value)


def test_a_file_gets_a_note_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with progress_of(PEOPLE, clock) as tell:
        for done in range(0, 12_000, 1_000):
            tell("things done", done, 12_000)
            clock.at_s += PROGRESS_S / 5
    told = capsys.readouterr()
    assert told.err == "5,000 of 12,000 things done …\n10,000 of 12,000 things done …\n"
    assert told.out == ""


@pytest.mark.parametrize("output", [Output.JSON, Output.JSONL])
def test_programs_are_told_nothing(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with progress_of(Printer(output), clock) as tell:
        clock.at_s += 100 * PROGRESS_S
        tell("things done", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with progress_of(PEOPLE, clock) as tell:
        tell("things done", 1_000, 4_000)
        assert "things done" in (first := capsys.readouterr().err)
        assert "1,000/4,000" in first
        # Not drawn again within a tenth of a second …
        tell("things done", 2_000, 4_000)
        assert capsys.readouterr().err == ""
        # … but for another thing, and for the end.
        tell("others done", 0, 7)
        assert "0/7" in (other := capsys.readouterr().err)
        assert "things" not in other
        tell("others done", 7, 7)
        assert "7/7" in capsys.readouterr().err
        clock.at_s += 1
        # More than there should be is no bar beyond its end.
        tell("others done", 9, 7)
        assert "9/9" in capsys.readouterr().err
    end = capsys.readouterr()
    # The line is cleared, and the cursor is shown again.
    assert end.err.endswith("\x1b[2K")
    assert end.out == ""


def bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark of two runs that tells of its way at once."""

    def measured(_settings: Any, plan: BenchPlan, tell: Tell) -> Result:
        tell("requests taken in", 500, plan.events)
        return Result.of(plan, plan.events, 2.0)

    monkeypatch.setattr(runs, "measured", measured)
    monkeypatch.setattr(Session, "admin", lambda _: None)
    assert main(["bench", "ingest", "--events", "1000", "--runs", "2"]) == 0


@pytest.mark.usefixtures("terminal")
def test_a_benchmark_shows_how_far_it_is_and_prints_its_figures_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench(monkeypatch)
    told = capsys.readouterr()
    # A bar hides the cursor when it begins.
    bars = told.err.split("\x1b[?25l")[1:]
    assert len(bars) == 2
    assert all("requests taken in" in bar and "500/1,000" in bar for bar in bars)
    assert "requests taken in" not in told.out
    assert "\x1b" not in told.out
    assert "ingest" in told.out


def test_a_benchmark_in_a_log_is_quiet_where_it_is_quick(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench(monkeypatch)
    assert capsys.readouterr().err == ""
