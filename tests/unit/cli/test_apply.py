"""`belfry apply` and `diff` at the terminal: exit codes, questions, the table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from belfry.cli import apply, differences
from belfry.cli.entry import main
from belfry.cli.failures import CommandError, WrongUse
from belfry.declared.declaration import declaration
from belfry.declared.difference import Alteration, Altered, Found, alterations

GOOD = (
    'set: s\nkept_in: t\ntenants:\n  t:\n    schedules: {a: {every: 1m, payload: "\\u001b[2J"}}\n'
)
AWAY = ["--http-url", "http://127.0.0.1:1"]
GONE = [Altered("t", "a", Alteration.REMOVE), Altered("t", None, Alteration.REMOVE)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "set.yaml"
    path.write_text(GOOD, "utf-8")
    return path


def test_an_error_is_no_difference(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(file), *AWAY]) == 1
    assert "No worker answers" in capsys.readouterr().err
    assert main(["diff", str(file.with_name("none.yaml")), *AWAY]) == 2
    assert main(["apply", str(file), *AWAY]) == 1


@pytest.mark.parametrize("command", ["apply", "diff"])
def test_all_that_is_wrong_is_told_line_by_line(
    command: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(GOOD.replace("every", "evry").replace("kept_in", "kept_inn"), "utf-8")
    assert main([command, str(file), *AWAY, "--output", "json"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    lines = error.splitlines()
    assert [line.partition(": ")[0].rpartition("/")[2] for line in lines[:3]] == [
        *("set.yaml:2", "set.yaml:1", "set.yaml:5"),
    ]
    assert "Did you mean every?" in lines[2]
    assert "3 things are wrong" in lines[3]


def test_a_folder_is_all_of_its_files(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.with_name("a-later.yml").write_text("set: r\nkept_in: t\n", "utf-8")
    assert main(["diff", str(file.parent), *AWAY]) == 2
    assert "set.yaml:1: set: is 's', and was 'r' before" in capsys.readouterr().err


def test_removing_is_asked_for_with_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(text: str, **_: object) -> bool:
        asked.append(text)
        return len(asked) == 1

    monkeypatch.setattr("typer.confirm", answer)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    apply._confirm("s", GONE)
    assert asked == ["Remove 1 schedule and 1 policy that set s has made?"]
    with pytest.raises(CommandError, match="Nothing was changed"):
        apply._confirm("s", GONE)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(WrongUse, match="--yes"):
        apply._confirm("s", GONE)
    assert len(asked) == 2


def test_a_table_shows_fields_and_commands_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = Found({}, {})
    differences.table([*alterations(declaration([("a.yaml", GOOD)]), found), *GONE])
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.strip()]
    assert rows[0] == ["object", "field", "is", "becomes"]
    assert ["+", "schedule", "t/a", "interval_ms", "-", "60000"] in rows
    assert ["payload", "-", "\\x1b[2J"] in rows
    assert ["-", "policy", "t"] in rows
    assert "\x1b" not in out
