"""Options of a rule that change what happens at an instant: for late occurrences, and for overlap.

They are apart from the options of the instants, for they go with several kinds of trigger. Their
values are those of the request: durations in ms, names of policies in capitals. A name is read
without regard to case, and a dash counts as an underscore:

    … --every 1h --start-at 2026-12-01T00:00:00Z --misfire fire-once --jitter 30s
    ─► RuleOptions(start_at=1796083200000, misfire="FIRE_ONCE", jitter=30000, …)

None stands for an option that was not given. The request then leaves the field empty, and a worker
fills in the tenant's default, or belfry's. So no default of a rule is written down here, but for
the texts of the help.

`RuleOptions` has those of `belfry.cli.bound_options` as well, which change the instants themselves.
Names that are wrong are told by Typer (exit code 2) before the command runs; contradictions by
`check_recurring` and by the worker. docs/schedules.md tells what a policy does to late occurrences
and to overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from belfry.cli.bound_options import RULE, BoundOptions, one_of
from belfry.cli.options import ASKING
from belfry.schedules.instants import parse_duration
from belfry.schedules.rule import OVERLAPS, POLICIES
from belfry.schedules.triggers.levels import HIGHEST, LOWEST
from belfry.schedules.triggers.registry import listed


def _misfire(text: str) -> str:
    """The policy that was typed. The first of `POLICIES` stands for "not given", and cannot be
    typed.
    """
    return one_of("misfire policy", POLICIES[1:], text)


def _overlap(text: str) -> str:
    """The overlap policy that was typed."""
    return one_of("overlap policy", OVERLAPS[1:], text)


Misfire = Annotated[
    str | None,
    typer.Option(
        "--misfire",
        parser=_misfire,
        metavar="POLICY",
        help="Occurrences later than --max-lateness: FIRE_ONCE (the latest of them), FIRE_ALL or"
        " SKIP.  [default: the tenant's, else FIRE_ONCE, and SKIP for what fires once]",
        rich_help_panel=RULE,
    ),
]
# Milliseconds behind the due instant; `Misfire` treats only later occurrences.
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
# The bounds are those of the request's check.
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority",
        min=LOWEST,
        max=HIGHEST,
        metavar="N",
        help="While the tenant's events are held back, those of higher priority leave first.  "
        "[default: 0]",
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
class RuleOptions(BoundOptions):
    """All options of a rule: with those for late occurrences and for overlap.

    Durations are ms. `serial` and `concurrency` need acknowledgements from a consumer, and
    `ack_timeout` bounds how long one is waited for.
    """

    misfire: Misfire = None
    max_lateness: MaxLateness = None
    overlap: Overlap = None
    serial: Serial = False
    concurrency: Concurrency = None
    ack_timeout: AckTimeout = None
    priority: Priority = None
    throttle: Throttle = None
