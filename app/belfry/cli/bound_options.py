"""Options of a rule that change which instants it has: its bounds, its days, and its spread.

A preview needs these and no others, and `belfry.cli.rule_options` adds what happens at an instant:

    … --every 1h --start-at 2026-12-01T00:00:00Z --max-fires 3 --jitter 30s
    ─► 00:00:12   01:00:03   02:00:29   and then it is complete

Values are those of the request: instants and durations in ms, names in capitals. None stands for an
option that was not given. Most of them mean nothing where a schedule fires once; `check_recurring`
refuses them there, before anything is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.when_options import WHEN
from belfry.schedules.instants import parse_duration, parse_instant
from belfry.schedules.rule import RECURRING
from belfry.schedules.triggers.registry import listed
from belfry.schedules.triggers.rule import ON_HOLIDAY

# Heading of these options on a help page.
RULE: Final = "How it recurs, and what becomes of what is late"


def one_of(name: str, allowed: tuple[str, ...], text: str) -> str:
    """The allowed name that was meant, in capitals; Typer refuses any other text.

    `name` says in words what it is a name of.
    """
    found = text.upper().replace("-", "_")
    if found not in allowed:
        names = ", ".join(allowed)
        raise typer.BadParameter(f"{text!r} is no {name}: give one of {names}.")
    return found


def _on_holiday(text: str) -> str:
    """The way on a day off that was typed."""
    return one_of("way on a day off", ON_HOLIDAY[1:], text)


# Epoch ms, as `EndAt` has it; both belong to the range.
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
# Milliseconds. The share is computed from ids, so it is the same at each worker and after a crash.
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
# Milliseconds, counted from the first request of a series.
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

# Milliseconds behind the arrival of the acknowledgement.
AckDelay = Annotated[
    int | None,
    typer.Option(
        "--ack-delay",
        parser=parse_duration,
        metavar="DURATION",
        help="So long after the acknowledgement that --after-ack or --after-group waits for.",
        rich_help_panel=WHEN,
    ),
]
LatestAt = Annotated[
    int | None,
    typer.Option(
        "--latest-at",
        parser=parse_instant,
        metavar="INSTANT",
        help="With --after-ack or --after-group: at this instant at the latest, acknowledged or"
        " not.",
        rich_help_panel=WHEN,
    ),
]


@dataclass(frozen=True, slots=True)
class BoundOptions:
    """Where a rule begins and ends, and how its occurrences are spread; all that a preview
    takes.
    """

    start_at: StartAt = None
    end_at: EndAt = None
    max_fires: MaxFires = None
    except_cron: ExceptCron = None
    calendar: CalendarName = None
    on_holiday: OnHoliday = None
    jitter: Jitter = None
    max_wait: MaxWait = None
    ack_delay: AckDelay = None
    latest_at: LatestAt = None


# Names of options that mean nothing where a schedule fires once.
ONLY_RECURRING: Final = (
    *("start_at", "end_at", "max_fires", "except_cron", "calendar", "on_holiday", "overlap"),
)


def check_recurring(rule: BoundOptions, recurs: bool) -> None:
    """Refuse options that say how a schedule recurs which does not, with `WrongUse`.

    `recurs` says whether the trigger is due again and again. A wrong combination is told here,
    before anything is sent, by the name of the option that was typed.
    """
    for name in ONLY_RECURRING:
        if not recurs and getattr(rule, name, None) is not None:
            option = f"--{name.replace('_', '-')}"
            flags = listed((kind.field.flag for kind in RECURRING.values()), "and")
            raise WrongUse(
                f"{option} belongs to {flags}; a schedule that fires once has no rule for it."
            )
