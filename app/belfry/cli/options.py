"""Options that several commands share, and how their values are read.

An option is an annotated type: Typer reads its flag, its help and its parser from there. Several
options that go together are the fields of a frozen dataclass, and a command takes the dataclass as
one parameter (`belfry.cli.session` spreads it). So `RequestOptions` is on each request, and `When`
on each command that takes a rule.

The options that say when are not listed by hand. Each kind of trigger of
`belfry.schedules.triggers.registry` brings its own field, with flag and help, and `When` is made
from all of them. A new kind is an option of every command without a change here.

Values are in the units of the request: instants in ms since 1970, durations in ms. Only times to
wait are in seconds, as everywhere on a command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.schedules.field import Form
from belfry.schedules.identity import expected_from
from belfry.schedules.instants import PLAIN_MILLISECONDS, parse_duration, parse_instant
from belfry.schedules.triggers.kind import TriggerKind
from belfry.schedules.triggers.registry import KINDS, ZONED, listed

# Headings of help pages under which options stand.
WHEN: Final = "When (exactly one)"
EVENT: Final = "The event"
ASKING: Final = "The request"
# A plain number, which `parse_duration` would read as ms.
_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def seconds(text: str) -> float:
    """A time to wait, in seconds: plain numbers are seconds, as everywhere on a command line.

    ``60``, ``1.5``, ``90s`` and ``PT1M30S`` are read. Raises ValueError for what is no duration;
    its hint says plain seconds, and not milliseconds as elsewhere.
    """
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        return parse_duration(text) / 1000
    except ValueError as error:
        said = str(error).replace(PLAIN_MILLISECONDS, "plain seconds, such as 60")
        raise ValueError(said) from None


def ago(text: str) -> int:
    """An instant, or how long ago it was: epoch milliseconds.

    ``2h`` is two hours before now by this machine's clock, and ``2026-12-01T09:00:00Z`` is that
    instant. Raises ValueError for what is neither.
    """
    try:
        return int(time() * 1000) - parse_duration(text)
    except ValueError:
        return parse_instant(text)


def _interval(text: str) -> int:
    """Milliseconds of an interval, which is not zero."""
    found = parse_duration(text)
    if found == 0:
        raise ValueError("An interval of 0 would never end: give one of at least 1ms.")
    return found


_ZONED: Final = listed((KINDS[name].field.flag for name in ZONED), "and")
# All options of which exactly one says when, as people list them.
FLAGS: Final = listed((kind.field.flag for kind in KINDS.values()), "and")

Tenant = Annotated[
    str,
    typer.Argument(metavar="TENANT", help="The tenant.", show_default=False),
]
ScheduleId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Name of the schedule, such as order/4711.", show_default=False
    ),
]
# How the value of an option that says when is read; a text is taken as it is.
_PARSERS: Final[dict[str, Callable[[str], int]]] = {
    "at": parse_instant,
    "delay_ms": parse_duration,
    "interval_ms": _interval,
}
Zone = Annotated[
    str | None,
    typer.Option(
        "--tz",
        metavar="ZONE",
        help=f"IANA time zone of {_ZONED}, and of --except-cron and --calendar, such as"
        " Europe/Paris. "
        " [default: UTC]",
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
    """A version, with or without its generation; Typer tells what is none."""
    if given is not None and expected_from(given) is None:
        raise typer.BadParameter(
            f"{given[:60]!r} is no version: give one, such as 3, or one with its generation, such"
            " as 1234567.3."
        )
    return given


# A text, since a generation may stand before the version; `expected_from` reads both forms.
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
# Seconds. The request itself stands: it is carried out even after that.
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


def _option(kind: TriggerKind) -> Any:
    """The option of a kind's own field: a text as it is typed, a number by its parser."""
    field = kind.field
    option = typer.Option(
        field.flag,
        parser=_PARSERS.get(field.name),
        metavar=field.metavar,
        help=field.help,
        rich_help_panel=WHEN,
    )
    return Annotated[(str if field.form is Form.TEXT else int) | None, option]


@dataclass(frozen=True, slots=True)
class _When:
    """The options that say when; each kind of trigger adds its own.

    `When` below is this class with a field for each kind and one for the time zone.
    """

    @property
    def zone(self) -> str | None:
        """The time zone that was given."""
        found: str | None = getattr(self, "tz", None)
        return found

    @property
    def given(self) -> list[TriggerKind]:
        """The kinds whose options were given, in the order of the registry; exactly one where
        `check` passes.
        """
        return [kind for kind in KINDS.values() if self._said(kind) is not None]

    @property
    def recurs(self) -> bool:
        """Whether it is due again and again."""
        return any(kind.recurs for kind in self.given)

    def _said(self, kind: TriggerKind) -> Any:
        """The value of a kind's option, None where it was not given."""
        return getattr(self, kind.field.argument)

    def arguments(self) -> dict[str, Any]:
        """What the client's `schedule` takes: values by the names of its parameters, and the time
        zone.
        """
        said = {kind.field.argument: self._said(kind) for kind in self.given}
        return {**said, "timezone": self.zone}

    def fields(self) -> dict[str, Any]:
        """What was given of when, by the names of the request, such as ``delay_ms``; for the HTTP
        port.
        """
        return {kind.field.name: self._said(kind) for kind in self.given}

    def check(self) -> None:
        """Refuse options that say when in no way, or in several, with `WrongUse`."""
        given = [kind.field.flag for kind in self.given]
        if len(given) != 1:
            raise WrongUse(
                f"Say when with exactly one of {FLAGS}; given: {' and '.join(given) or 'none'}. For"
                " example: --in 5m."
            )

    def check_zone_of_rule(self, *zoned: str | None) -> None:
        """Refuse a time zone where nothing is read in it; `zoned` are other options that are.

        Raises `WrongUse`, also for a zone that does not exist. An instant and a delay need no zone.
        """
        if self.zone is None:
            return
        if not any(zoned) and not any(kind.zoned for kind in self.given):
            raise WrongUse(
                f"--tz {self.zone} belongs to {_ZONED}, and to --except-cron and --calendar. An"
                " instant has its offset in itself: --at 2026-12-01T10:00:00+01:00."
            )
        check_zone(self.zone)


if TYPE_CHECKING:
    When = _When
else:
    When = make_dataclass(
        "When",
        [
            *((kind.field.argument, _option(kind), None) for kind in KINDS.values()),
            ("tz", Zone, None),
        ],
        bases=(_When,),
        frozen=True,
        slots=True,
    )


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The options of the request itself: its name, its condition, its reason, and the wait for
    it.
    """

    request_id: RequestId = None
    expected_version: ExpectedVersion = None
    reason: Reason = None
    no_wait: NoWait = False
    timeout: Timeout = None

    def arguments(self) -> dict[str, Any]:
        """What the client's methods take, without what was not given; the timeout is in seconds."""
        found = {
            "request_id": self.request_id,
            "expected_version": self.expected_version,
            "reason": self.reason,
            "wait": not self.no_wait,
            "timeout_s": self.timeout,
        }
        return {name: value for name, value in found.items() if value is not None}


def check_zone(tz: str) -> None:
    """Refuse a time zone that does not exist, with `WrongUse` and the nearest name."""
    from belfry.schedules.triggers.zones import UnknownZone, zone

    try:
        zone(tz)
    except UnknownZone as unknown:
        raise WrongUse(str(unknown)) from None
