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


ICS = b"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:test
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20261224
RRULE:FREQ=YEARLY
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTART:20270105T090000Z
END:VEVENT
END:VCALENDAR
"""


def test_the_days_of_a_file_are_imported_with_its_name(
    worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "work.ics"
    file.write_bytes(ICS)
    years = ["--from-year", "2026", "--until-year", "2027"]
    assert main(["calendar", "import", "demo", "de", "--ics", str(file), *years]) == 0
    assert worker.days == [["2026-12-24", "2027-12-24"]]
    told = capsys.readouterr()
    assert "2 days from work.ics, 2026-2027" in told.out
    assert "passed over, for they have a time of day: 1 events" in told.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "either --ics or --country"),
        (["--ics", "FILE", "--country", "DE"], "either --ics or --country"),
        (["--ics", "FILE", "--from-year", "2020", "--until-year", "2019"], "is before --from-year"),
        (["--ics", "FILE", "--from-year", "1990", "--until-year", "1991"], "no days off in"),
    ],
)
def test_an_import_says_what_is_wrong(
    worker: Worker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    why: str,
) -> None:
    file = tmp_path / "work.ics"
    file.write_bytes(ICS)
    given = [str(file) if each == "FILE" else each for each in options]
    assert main(["calendar", "import", "demo", "de", *given]) == 2
    assert why in capsys.readouterr().err
    assert not worker.days
