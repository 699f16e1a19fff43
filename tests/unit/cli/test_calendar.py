"""`belfry calendar set --file`: a line that is no date is named, before any worker is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from belfry.cli import calendar
from belfry.cli.entry import main


class Worker:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.days: list[list[str]] = []

    def ask(self, _method: str, _path: str, body: Any) -> Any:
        self.days.append(body["days"])
        return {"outcome": "ACCEPTED"}


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    worker = Worker()
    monkeypatch.setattr(calendar, "Remote", lambda _session: worker)
    return worker


def test_dates_are_read_and_remarks_are_not(worker: Worker, tmp_path: Path) -> None:
    file = tmp_path / "days.txt"
    file.write_bytes("\ufeff2026-12-25 # Noël\r\n\n# none\n2026-12-26".encode())
    assert main(["calendar", "set", "demo", "de", "--file", str(file), "--day", "2027-01-01"]) == 0
    assert worker.days == [["2027-01-01", "2026-12-25", "2026-12-26"]]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (b"foo", "'foo' is no date: give one such as 2026-12-25."),
        (b"2026-12-26 # No\xebl", r"b'\xeb' is no UTF-8: save the file as UTF-8."),
    ],
)
def test_a_line_that_is_no_date_is_named(
    worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes, wrong: str
) -> None:
    file = tmp_path / "days.txt"
    file.write_bytes(b"2026-12-25\n" + line)
    assert main(["calendar", "set", "demo", "de", "--file", str(file)]) == 2
    assert f"{file}, line 2: {wrong}" in capsys.readouterr().err
    assert not worker.days
