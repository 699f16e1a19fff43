"""Options of a schedule's rule: bounds, spread, and what becomes of late occurrences.

They are apart from those that say when, for they go with several kinds of trigger. Their values are
those of the request: instants and durations in ms, names of policies in capitals. A name is read
without regard to case, and a dash counts as an underscore:

    … --every 1h --start-at 2026-12-01T00:00:00Z --misfire fire-once --jitter 30s
    ─► RuleOptions(start_at=1796083200000, misfire="FIRE_ONCE", jitter=30000, …)

None stands for an option that was not given. The request then leaves the field empty, and a worker
fills in the tenant's default, or belfry's. So no default of a rule is written down here, but for
the texts of the help.

`BoundOptions` are those that change which instants a rule has, which is all that a preview needs.
`RuleOptions` adds those that change what happens at an instant. Names that are wrong are told by
Typer (exit code 2) before the command runs; contradictions by `check_recurring` and by the worker.
What a policy does to late occurrences and to overlap is told in docs/schedules.md.
"""

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

# Heading of these options on a help page.
RULE: Final = "How it recurs, and what becomes of what is late"


def _one_of(name: str, allowed: tuple[str, ...], text: str) -> str:
    """The allowed name that was meant, in capitals; Typer tells what is none of them.

    `name` says in words what it is a name of.
    """
    found = text.upper().replace("-", "_")
    if found not in allowed:
        names = ", ".join(allowed)
        raise typer.BadParameter(f"{text!r} is no {name}: give one of {names}.")
    return found


def _misfire(text: str) -> str:
    """The policy that was typed. The first of `POLICIES` stands for "not given", and nobody types
    that.
    """
    return _one_of("misfire policy", POLICIES[1:], text)


def _overlap(text: str) -> str:
    """The overlap policy that was typed."""
    return _one_of("overlap policy", OVERLAPS[1:], text)


def _on_holiday(text: str) -> str:
    """The way on a day off that was typed."""
    return _one_of("way on a day off", ON_HOLIDAY[1:], text)


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
# Milliseconds behind the due instant; only what is later than that is treated by `Misfire`.
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
# The bounds are those of the request's check.
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

# Milliseconds. It stands with the options of the request: it says whether this request counts at
# all.
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


@dataclass(frozen=True, slots=True)
class RuleOptions(BoundOptions):
    """All options of a rule: with what becomes of late occurrences, and what waits for what.

    Durations are ms. `serial` and `concurrency` need acknowledgements from a consumer, and
    `ack_timeout` bounds how long one is waited for.
    """

    misfire: Misfire = None
    max_lateness: MaxLateness = None
    overlap: Overlap = None
    serial: Serial = False
    concurrency: Concurrency = None
    ack_timeout: AckTimeout = None
    throttle: Throttle = None


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
            raise WrongUse(f"{option} belongs to {flags}; what fires once has none.")
