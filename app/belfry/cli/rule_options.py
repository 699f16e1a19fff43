"""Options of a schedule's rule: bounds, spread, and what becomes of late occurrences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.options import ASKING
from belfry.schedules.instants import parse_duration, parse_instant
from belfry.schedules.rule import OVERLAPS, POLICIES, RECURRING
from belfry.schedules.triggers.registry import listed
from belfry.schedules.triggers.rule import ON_HOLIDAY

RULE: Final = "How it recurs, and what becomes of what is late"


def _one_of(name: str, allowed: tuple[str, ...], text: str) -> str:
    found = text.upper().replace("-", "_")
    if found not in allowed:
        names = ", ".join(allowed)
        raise typer.BadParameter(f"{text!r} is no {name}: give one of {names}.")
    return found


def _misfire(text: str) -> str:
    return _one_of("misfire policy", POLICIES[1:], text)


def _overlap(text: str) -> str:
    return _one_of("overlap policy", OVERLAPS[1:], text)


def _on_holiday(text: str) -> str:
    return _one_of("way on a day off", ON_HOLIDAY[1:], text)


StartAt = Annotated[
    int | None,
    typer.Option(
        "--start-at",
        parser=parse_instant,
        metavar="INSTANT",
        help="No occurrence before it; --every counts from it.",
        rich_help_panel=RULE,
    ),
]
EndAt = Annotated[
    int | None,
    typer.Option(
        "--end-at",
        parser=parse_instant,
        metavar="INSTANT",
        help="No occurrence after it.",
        rich_help_panel=RULE,
    ),
]
ExceptCron = Annotated[
    str | None,
    typer.Option(
        "--except-cron",
        metavar="EXPRESSION",
        help='No occurrence in the minutes of this cron expression, such as "* 0-5 * * *" for the'
        " night; read in --tz.",
        rich_help_panel=RULE,
    ),
]
CalendarName = Annotated[
    str | None,
    typer.Option(
        "--calendar",
        metavar="CALENDAR",
        help="Calendar of the tenant (`belfry calendar list`), whose days off it heeds; read in"
        " --tz.",
        rich_help_panel=RULE,
    ),
]
OnHoliday = Annotated[
    str | None,
    typer.Option(
        "--on-holiday",
        parser=_on_holiday,
        metavar="WAY",
        help="On a day off of --calendar: SKIP, NEXT_BUSINESS_DAY or PREVIOUS_BUSINESS_DAY."
        "  [default: SKIP]",
        rich_help_panel=RULE,
    ),
]
MaxFires = Annotated[
    int | None,
    typer.Option(
        "--max-fires",
        min=1,
        metavar="N",
        help="Complete after so many fires.",
        rich_help_panel=RULE,
    ),
]
Jitter = Annotated[
    int | None,
    typer.Option(
        "--jitter",
        parser=parse_duration,
        metavar="DURATION",
        help="Each occurrence up to this much later, by a share of its own.",
        rich_help_panel=RULE,
    ),
]
MaxWait = Annotated[
    int | None,
    typer.Option(
        "--max-wait",
        parser=parse_duration,
        metavar="DURATION",
        help="Debounce: each further request slides --in, at the latest to so long after the first"
        " one.",
        rich_help_panel=RULE,
    ),
]
Misfire = Annotated[
    str | None,
    typer.Option(
        "--misfire",
        parser=_misfire,
        metavar="POLICY",
        help="What is later than --max-lateness: FIRE_ONCE (the latest of them), FIRE_ALL or"
        " SKIP.  [default: the tenant's, else FIRE_ONCE]",
        rich_help_panel=RULE,
    ),
]
MaxLateness = Annotated[
    int | None,
    typer.Option(
        "--max-lateness",
        parser=parse_duration,
        metavar="DURATION",
        help="How late an occurrence still is in time.  [default: 1m for recurring schedules, no"
        " limit for others]",
        rich_help_panel=RULE,
    ),
]
Overlap = Annotated[
    str | None,
    typer.Option(
        "--overlap",
        parser=_overlap,
        metavar="POLICY",
        help=f"While the last occurrence is not acknowledged: {listed(OVERLAPS[1:], 'or')}.",
        rich_help_panel=RULE,
    ),
]
Serial = Annotated[
    bool,
    typer.Option(
        "--serial",
        help="The event's group waits until it is acknowledged.",
        rich_help_panel=RULE,
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        min=1,
        max=255,
        metavar="N",
        help="The group waits while N of its fires are to be acknowledged; --serial is 1.",
        rich_help_panel=RULE,
    ),
]
AckTimeout = Annotated[
    int | None,
    typer.Option(
        "--ack-timeout",
        parser=parse_duration,
        metavar="DURATION",
        help="How long an acknowledgement is waited for.  [default: 5m]",
        rich_help_panel=RULE,
    ),
]

Throttle = Annotated[
    int | None,
    typer.Option(
        "--throttle",
        parser=parse_duration,
        metavar="DURATION",
        help="Change nothing while the schedule waits, nor within so long after its last fire.",
        rich_help_panel=ASKING,
    ),
]


@dataclass(frozen=True, slots=True)
class BoundOptions:
    """Where a rule begins and ends, and how its occurrences are spread."""

    start_at: StartAt = None
    end_at: EndAt = None
    max_fires: MaxFires = None
    except_cron: ExceptCron = None
    calendar: CalendarName = None
    on_holiday: OnHoliday = None
    jitter: Jitter = None
    max_wait: MaxWait = None


@dataclass(frozen=True, slots=True)
class RuleOptions(BoundOptions):
    """All options of a rule."""

    misfire: Misfire = None
    max_lateness: MaxLateness = None
    overlap: Overlap = None
    serial: Serial = False
    concurrency: Concurrency = None
    ack_timeout: AckTimeout = None
    throttle: Throttle = None


ONLY_RECURRING: Final = (
    *("start_at", "end_at", "max_fires", "except_cron", "calendar", "on_holiday", "overlap"),
)


def check_recurring(rule: BoundOptions, recurs: bool) -> None:
    """Refuse options that say how a schedule recurs which does not."""
    for name in ONLY_RECURRING:
        if not recurs and getattr(rule, name, None) is not None:
            option = f"--{name.replace('_', '-')}"
            flags = listed((kind.field.flag for kind in RECURRING.values()), "and")
            raise WrongUse(f"{option} belongs to {flags}; what fires once has none.")
