"""Days off that a file of `belfry apply` names: a country's, and those of a file beside it."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from belfry.cli.declared_files import STDIN_NAME, days_named, texts
from belfry.declared.declaration import declaration

ICS = "\r\n".join(
    (
        *("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:test", "BEGIN:VEVENT"),
        *("DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=YEARLY", "END:VEVENT", "END:VCALENDAR", ""),
    )
)
NAMES = "set: s\nkept_in: t\ntenants: {t: {calendars: {own: {ics: days/own.ics, years: 2026}}}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "own.ics").write_text(ICS)
    (tmp_path / "set.yaml").write_text(NAMES)
    return tmp_path


def test_an_ics_is_read_from_the_folder_of_the_file_that_names_it(folder: Path) -> None:
    found = declaration(texts([folder]), days_named).calendars["t", "own"]
    assert (found.days, found.source) == (["2026-12-24"], "own.ics, 2026")


def test_from_standard_input_it_is_read_from_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "days")
    days, _ = days_named(STDIN_NAME, "ics", "own.ics", (2026, 2027))
    assert days == ["2026-12-24", "2027-12-24"]


def test_a_file_that_is_not_there_is_told(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"has the ics 'gone\.ics', which cannot be read: "):
        days_named(str(folder / "set.yaml"), "ics", "gone.ics", (2026, 2026))


def test_a_country_and_its_subdivision_are_asked_of_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str | None, list[int]]] = []

    def country_holidays(country: str, subdiv: str | None, years: range) -> set[date]:
        asked.append((country, subdiv, list(years)))
        return {date(2026, 1, 6)}

    library = SimpleNamespace(__version__="0.109", country_holidays=country_holidays)
    monkeypatch.setitem(sys.modules, "holidays", library)
    found = days_named("set.yaml", "country", "de-BY", (2026, 2027))
    assert found == (["2026-01-06"], "holidays 0.109 DE-BY 2026-2027")
    days_named("set.yaml", "country", "FR", (2026, 2026))
    assert asked == [("DE", "BY", [2026, 2027]), ("FR", None, [2026])]
