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
How days off are read from options and files is told in `belfry.cli.day_options`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from belfry.cli.day_options import (
    LATER_YEARS,
    Country,
    Day,
    File,
    FromYear,
    Ics,
    UntilYear,
    Weekend,
    day_off,
    days_in,
    imported,
    weekdays,
)
from belfry.cli.failures import WrongUse
from belfry.cli.help import Program
from belfry.cli.options import Reason, Tenant
from belfry.cli.remote import Remote, calendar_path, tenant_path
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain
from belfry.schedules.calendars import MOST_SOURCE

# Above the lines of a list.
CALENDARS: Final = "calendar, days off, weekend, and where the days are from"

# A worker checks the name; here it is only quoted in the address.
Name = Annotated[
    str,
    typer.Argument(
        metavar="CALENDAR",
        help="Name of the calendar: 1 to 100 of A-Z a-z 0-9 _ . -",
        show_default=False,
    ),
]
Source = Annotated[
    str | None,
    typer.Option("--source", metavar="TEXT", help="Where the days are from, for people."),
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
    """Set the days off of a calendar; they replace its present ones.

    Pending instants of the schedules that have it follow within seconds. Example:

    belfry calendar set demo de --weekend SAT,SUN --day 2026-12-25
    """
    body: dict[str, Any] = {
        "days": [*(day_off(each) for each in day or ()), *days_in(file)],
        "weekend": weekdays(weekend),
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
    found = imported(ics, country, years)
    body: dict[str, Any] = {
        "days": found.days,
        "weekend": weekdays(weekend),
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


def show(session: Session, tenant: Tenant, calendar: Name) -> None:
    """Show a calendar with all of its days; exit code 3 when there is none."""
    found = Remote(session).get(_path(tenant, calendar))
    session.printer.one(found, "\n".join([_text(found), *found["days"]]))


def list_(session: Session, tenant: Tenant) -> None:
    """List the calendars of a tenant, by name."""
    found = Remote(session).get(_path(tenant))["calendars"]
    none = f"{tenant} has no calendars; belfry calendar import makes one."
    session.printer.listed(((each, _text(each)) for each in found), CALENDARS, none)


def remove(session: Session, tenant: Tenant, calendar: Name) -> None:
    """Forget a calendar; schedules that have it keep the days that it had."""
    verdict = Remote(session).ask("DELETE", _path(tenant, calendar))
    session.printer.one(verdict, f"{verdict['outcome']} {plain(calendar)}")


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
