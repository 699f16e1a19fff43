"""Days off as people give them: dates, days of the week, a file, an iCalendar file, a country.

`belfry calendar set` takes days that somebody has written down, and `import` days from a published
source:

    --day 2026-12-25                 a date, as ISO 8601 writes it
    --file de.txt                    a date a line; what follows # is a remark
    --weekend SAT,SUN                days that are off in each week
    --ics de.ics                     events of whole days; those with a time of day are passed over
    --country DE-BY                  public holidays of these years, of the library `holidays`

Each is read here into what a worker takes: dates in the order that they were given, and names of
days in capitals. A mistake is told before anything is sent, with the option, or with the file and
its line.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.schedules.days_off import DAY_NAMES

if TYPE_CHECKING:
    from belfry.client.imported_days import ImportedDays


# So many years behind the first are imported unless told.
LATER_YEARS: Final = 4
Day = Annotated[
    list[str] | None,
    typer.Option("--day", metavar="DATE", help="A day off, such as 2026-12-25; repeatable."),
]
# Typer sees to it that it is a file that can be read; `days_in` reads it.
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        readable=True,
        help="Days off, one date a line; what follows # is a remark.",
    ),
]
Weekend = Annotated[
    str | None,
    typer.Option(
        "--weekend", metavar="DAYS", help="Days that are off in each week, such as SAT,SUN."
    ),
]
Ics = Annotated[
    Path | None,
    typer.Option(
        "--ics",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        readable=True,
        help="An iCalendar file, whose whole days are off; needs the extra ical.",
    ),
]
Country = Annotated[
    str | None,
    typer.Option(
        "--country",
        metavar="CODE",
        help="A country such as DE, or DE-BY, whose public holidays are off; needs the extra"
        " holidays.",
    ),
]
FromYear = Annotated[
    int | None,
    typer.Option(
        "--from-year",
        min=1970,
        metavar="YEAR",
        help="First year whose days are imported.  [default: this year]",
    ),
]
UntilYear = Annotated[
    int | None,
    typer.Option(
        "--until-year",
        max=2200,
        metavar="YEAR",
        help="Last of these years.  [default: four years after --from-year]",
    ),
]


def imported(ics: Path | None, country: str | None, years: tuple[int, int]) -> ImportedDays:
    """The days of the one source that is given."""
    from belfry.client.imported_days import NoDays, days_of_country, days_of_ics

    try:
        if ics is not None and country is None:
            return days_of_ics(ics.read_bytes(), ics.name, years)
        if country is not None and ics is None:
            code, _, subdivision = country.partition("-")
            return days_of_country(code.upper(), subdivision or None, years)
    except NoDays as error:
        raise WrongUse(str(error)) from None
    raise WrongUse("Say where the days are from: either --ics or --country.")


def days_in(file: Path | None) -> list[str]:
    """The dates in a file; `WrongUse` names file and line of a text that is not a date.

    A byte-order mark at the begin, as some editors write it, is let pass. Lines that are empty or
    hold a remark alone are skipped.
    """
    if file is None:
        return []
    found: list[str] = []
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        place = f"{file}, line {number}: "
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            wrong = line[error.start : error.end]
            raise WrongUse(f"{place}{wrong!r} is no UTF-8: save the file as UTF-8.") from None
        if given := text.partition("#")[0].strip():
            found.append(day_off(given, place))
    return found


def day_off(given: str, place: str = "") -> str:
    """A date in the form of ISO 8601, such as 2026-12-25; `place` goes before the complaint."""
    try:
        return date.fromisoformat(given).isoformat()
    except ValueError:
        raise WrongUse(f"{place}{given[:60]!r} is no date: give one such as 2026-12-25.") from None


def weekdays(given: str | None) -> list[str]:
    """Names of days, in capitals; `WrongUse` for any other word."""
    found = [each.strip().upper() for each in (given or "").split(",") if each.strip()]
    for each in found:
        if each not in DAY_NAMES:
            raise WrongUse(
                f"--weekend {each[:20]!r} is no day: give some of {','.join(DAY_NAMES)}."
            )
    return found
