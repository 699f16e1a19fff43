"""`belfry schedule import`: what needs no broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from belfry.cli import main


@pytest.mark.parametrize("options", [[], ["--timeout", "5s"]])
def test_a_file_without_schedules_is_none(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.jsonl"
    file.write_text("\n\n")
    assert main(["schedule", "import", str(file), *options]) == 0
    assert capsys.readouterr().err == "0 schedules: none\n"


@pytest.mark.parametrize("line", ["{", "[]", '{"tenant": "demo"}'])
def test_a_line_that_is_no_schedule_is_named(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(f"\n{line}\n")
    assert main(["schedule", "import", str(file)]) == 2
    assert "Line 2 is no schedule" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "import", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl cannot be read" in capsys.readouterr().err
