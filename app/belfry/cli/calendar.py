"""``belfry calendar``: days off of a tenant, which its schedules heed.

A calendar is a name with dates and days of the week. A schedule that names it skips these days, or
moves to a business day before or behind, as docs/schedules.md says. `set` replaces all days at
once, so a file of holidays can be sent again each year:

    $ cat de.txt
    2026-12-25    # Christmas Day
    2026-12-26
    $ belfry calendar set demo de --weekend SAT,SUN --file de.txt
    UPDATED de

All commands ask a worker over HTTP, which writes the request and waits for its verdict. Schedules
follow a changed calendar one by one after that; `show` tells how many instants have moved so far.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.help import Program
from belfry.cli.options import Reason, Tenant
from belfry.cli.remote import Remote, calendar_path, tenant_path
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain
from belfry.schedules.calendars import MOST_SOURCE
from belfry.schedules.days_off import DAY_NAMES

if TYPE_CHECKING:
    from belfry.client.imported_days import ImportedDays

# So many years behind the first are imported unless told.
LATER_YEARS: Final = 4

# A worker checks the name; here it is only quoted in the address.
Name = Annotated[
    str,
    typer.Argument(
        metavar="CALENDAR",
        help="Name of the calendar: 1 to 100 of A-Z a-z 0-9 _ . -",
        show_default=False,
    ),
]
Day = Annotated[
    list[str] | None,
    typer.Option("--day", metavar="DATE", help="A day off, such as 2026-12-25; repeatable."),
]
# Typer sees to it that it is a file that can be read; `_days_in` reads it.
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
Source = Annotated[
    str | None,
    typer.Option("--source", metavar="TEXT", help="Where the days are from, for people."),
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
    int | None, typer.Option("--from-year", min=1970, metavar="YEAR", help="[default: this year]")
]
UntilYear = Annotated[
    int | None,
    typer.Option(
        "--until-year", max=2200, metavar="YEAR", help="[default: four years after --from-year]"
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``calendar`` with its commands to the program."""
    group = Program()
    for command in (show, remove):
        group.command(command.__name__)(with_session(command))
    group.command("set")(with_session(set_))
    group.command("import")(with_session(import_))
    group.command("list")(with_session(list_))
    app.add_typer(group, name="calendar", help="Days off, which schedules skip or move from.")


def set_(
    session: Session,
    tenant: Tenant,
    calendar: Name,
    *,
    day: Day = None,
    file: File = None,
    weekend: Weekend = None,
    source: Source = None,
    reason: Reason = None,
) -> None:
    """Set the days off of a calendar, in place of those that it has.

    Pending instants of the schedules that have it follow within seconds. Example:

    belfry calendar set demo de --weekend SAT,SUN --day 2026-12-25
    """
    body: dict[str, Any] = {
        "days": [*(_date(each) for each in day or ()), *_days_in(file)],
        "weekend": _weekdays(weekend),
        "source": source or "",
    }
    # A calendar without days off would be a mistake that nobody notices.
    if not body["days"] and not body["weekend"]:
        raise WrongUse("Say which days are off: --day, --file or --weekend.")
    if reason is not None:
        body["reason"] = reason
    verdict = Remote(session).ask("PUT", _path(tenant, calendar), body)
    session.printer.one(verdict, f"{verdict['outcome']} {plain(calendar)}")


def import_(
    session: Session,
    tenant: Tenant,
    calendar: Name,
    *,
    ics: Ics = None,
    country: Country = None,
    from_year: FromYear = None,
    until_year: UntilYear = None,
    weekend: Weekend = None,
    reason: Reason = None,
) -> None:
    """Set the days off of a calendar from an iCalendar file or a country's public holidays.

    The dates are kept, and where they are from, with the version of the library. Nothing moves
    before the next import. Example:

    belfry calendar import demo de --country DE-BY --weekend SAT,SUN
    """
    begin = datetime.now(UTC).year if from_year is None else from_year
    years = begin, begin + LATER_YEARS if until_year is None else until_year
    if years[1] < years[0]:
        raise WrongUse(f"--until-year {years[1]} is before --from-year {years[0]}.")
    found = _imported(ics, country, years)
    body: dict[str, Any] = {
        "days": found.days,
        "weekend": _weekdays(weekend),
        "source": found.source[:MOST_SOURCE],
    }
    if reason is not None:
        body["reason"] = reason
    verdict = Remote(session).ask("PUT", _path(tenant, calendar), body)
    if found.passed_over:
        session.printer.note(
            f"passed over, for they have a time of day: {found.passed_over} events"
        )
    said = (
        f"{verdict['outcome']} {plain(calendar)}, {len(found.days)} days from {plain(found.source)}"
    )
    session.printer.one({**verdict, "days": len(found.days), "source": found.source}, said)


def _imported(ics: Path | None, country: str | None, years: tuple[int, int]) -> ImportedDays:
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


def show(session: Session, tenant: Tenant, calendar: Name) -> None:
    """Show a calendar with all of its days; exit code 3 when there is none."""
    found = Remote(session).get(_path(tenant, calendar))
    session.printer.one(found, "\n".join([_text(found), *found["days"]]))


def list_(session: Session, tenant: Tenant) -> None:
    """List the calendars of a tenant, by name."""
    found = Remote(session).get(_path(tenant))["calendars"]
    session.printer.many((each, _text(each)) for each in found)


def remove(session: Session, tenant: Tenant, calendar: Name) -> None:
    """Forget a calendar; schedules that have it keep the days that it had."""
    verdict = Remote(session).ask("DELETE", _path(tenant, calendar))
    session.printer.one(verdict, f"{verdict['outcome']} {plain(calendar)}")


def _days_in(file: Path | None) -> list[str]:
    """The dates in a file; `WrongUse` names file and line of one that is none.

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
            found.append(_date(given, place))
    return found


def _date(given: str, place: str = "") -> str:
    """A date in the form of ISO 8601, such as 2026-12-25; `place` goes before the complaint."""
    try:
        return date.fromisoformat(given).isoformat()
    except ValueError:
        raise WrongUse(f"{place}{given[:60]!r} is no date: give one such as 2026-12-25.") from None


def _weekdays(given: str | None) -> list[str]:
    """Names of days, in capitals; `WrongUse` for one that is none."""
    found = [each.strip().upper() for each in (given or "").split(",") if each.strip()]
    for each in found:
        if each not in DAY_NAMES:
            raise WrongUse(
                f"--weekend {each[:20]!r} is no day: give some of {','.join(DAY_NAMES)}."
            )
    return found


def _path(tenant: str, calendar: str | None = None) -> str:
    """The path of a tenant's calendars, or of one of them; names are quoted."""
    if calendar is not None:
        return calendar_path(tenant, calendar)
    return f"{tenant_path(tenant)}/calendars"


def _text(found: dict[str, Any]) -> str:
    """A calendar in a line for people: its name, what is off, where the days are from, who
    follows.
    """
    parts = [f"{plain(found['calendar'])}  {len(found['days'])} days"]
    if found["weekend"]:
        parts.append(f"weekend {','.join(found['weekend'])}")
    if found["source"]:
        parts.append(f"from {plain(found['source'])}")
    parts.append(f"changed {found['changed_at']}")
    if found["following"]:
        parts.append(f"schedules follow, {found['moved']} moved so far")
    return ", ".join(parts)
