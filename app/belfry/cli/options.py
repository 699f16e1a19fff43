"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.schedules.identity import expected_from
from belfry.schedules.instants import parse_duration, parse_instant

WHEN: Final = "When (exactly one)"
EVENT: Final = "The event"
ASKING: Final = "The request"
_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def seconds(text: str) -> float:
    """A time to wait: plain numbers are seconds, as everywhere on a command line."""
    return float(text) if _SECONDS.fullmatch(text) else parse_duration(text) / 1000


def _interval(text: str) -> int:
    found = parse_duration(text)
    if found == 0:
        raise ValueError("An interval of 0 would never end: give one of at least 1ms.")
    return found


Tenant = Annotated[
    str,
    typer.Argument(metavar="TENANT", help="Owner of the schedule.", show_default=False),
]
ScheduleId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Name of the schedule, such as order/4711.", show_default=False
    ),
]
At = Annotated[
    int | None,
    typer.Option(
        "--at",
        parser=parse_instant,
        metavar="INSTANT",
        help="Once, at 2026-12-01T09:00:00Z (with an offset; or epoch milliseconds). In the"
        " past: at once.",
        rich_help_panel=WHEN,
    ),
]
In = Annotated[
    int | None,
    typer.Option(
        "--in",
        parser=parse_duration,
        metavar="DURATION",
        help="Once, after 30s, 5m, 1h30m or PT5M (a plain number: milliseconds).",
        rich_help_panel=WHEN,
    ),
]
Every = Annotated[
    int | None,
    typer.Option(
        "--every",
        parser=_interval,
        metavar="DURATION",
        help="Again and again, with this interval.",
        rich_help_panel=WHEN,
    ),
]
Cron = Annotated[
    str | None,
    typer.Option(
        "--cron",
        metavar="EXPRESSION",
        help='By a cron expression, such as "0 9 * * MON".',
        rich_help_panel=WHEN,
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--tz",
        metavar="ZONE",
        help="IANA time zone of --cron, such as Europe/Paris.  [default: UTC]",
        rich_help_panel=WHEN,
    ),
]
RequestId = Annotated[
    str | None,
    typer.Option(
        "--request-id",
        metavar="TEXT",
        help="Name of this request; a repeat within an hour changes nothing.  [default: new]",
        rich_help_panel=ASKING,
    ),
]


def _checked_version(given: str | None) -> str | None:
    if given is not None and expected_from(given) is None:
        raise typer.BadParameter(
            f"{given[:60]!r} is no version: give one, such as 3, or one with its generation, such"
            " as 1234567.3."
        )
    return given


ExpectedVersion = Annotated[
    str | None,
    typer.Option(
        "--expected-version",
        callback=_checked_version,
        metavar="[GENERATION.]N",
        help="Only if the schedule has this version now, else exit code 4.",
        rich_help_panel=ASKING,
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason", metavar="TEXT", help="Why; kept in the history.", rich_help_panel=ASKING
    ),
]
NoWait = Annotated[
    bool,
    typer.Option(
        "--no-wait",
        help="Return once Kafka has the request, without its outcome.",
        rich_help_panel=ASKING,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        parser=seconds,
        metavar="SECONDS",
        help="Longest wait for the outcome.  [default: 10]",
        rich_help_panel=ASKING,
    ),
]


@dataclass(frozen=True, slots=True)
class When:
    """The options that say when."""

    at: At = None
    in_: In = None
    every: Every = None
    cron: Cron = None
    tz: Zone = None

    @property
    def recurs(self) -> bool:
        """Whether it is due again and again."""
        return self.every is not None or self.cron is not None

    def check(self) -> None:
        """Refuse options that say when in no way, or in several."""
        by_name = {"--at": self.at, "--in": self.in_, "--every": self.every, "--cron": self.cron}
        given = [name for name, value in by_name.items() if value is not None]
        if len(given) != 1:
            raise WrongUse(
                "Say when with exactly one of --at, --in, --every and --cron; given:"
                f" {' and '.join(given) or 'none'}. For example: --in 5m."
            )

    def check_zone_of_cron(self) -> None:
        """Refuse a time zone where nothing is read in it."""
        if self.tz is None:
            return
        if self.cron is None:
            raise WrongUse(
                f"--tz {self.tz} belongs to --cron. An instant has its offset in itself:"
                " --at 2026-12-01T10:00:00+01:00."
            )
        check_zone(self.tz)


@dataclass(frozen=True, slots=True)
class Asking:
    """The options of the request itself."""

    request_id: RequestId = None
    expected_version: ExpectedVersion = None
    reason: Reason = None
    no_wait: NoWait = False
    timeout: Timeout = None

    def arguments(self) -> dict[str, Any]:
        """What the client's methods take, without what was not given."""
        found = {
            "request_id": self.request_id,
            "expected_version": self.expected_version,
            "reason": self.reason,
            "wait": not self.no_wait,
            "timeout_s": self.timeout,
        }
        return {name: value for name, value in found.items() if value is not None}


def check_zone(tz: str) -> None:
    """Refuse a time zone that does not exist."""
    from belfry.schedules.triggers.zones import UnknownZone, zone

    try:
        zone(tz)
    except UnknownZone as unknown:
        raise WrongUse(str(unknown)) from None
