"""Options that several commands share, and how their values are read."""

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

WHEN: Final = "When (exactly one)"
EVENT: Final = "The event"
ASKING: Final = "The request"
_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def seconds(text: str) -> float:
    """A time to wait: plain numbers are seconds, as everywhere on a command line."""
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        return parse_duration(text) / 1000
    except ValueError as error:
        said = str(error).replace(PLAIN_MILLISECONDS, "plain seconds, such as 60")
        raise ValueError(said) from None


def ago(text: str) -> int:
    """An instant, or how long ago it was: epoch milliseconds."""
    try:
        return int(time() * 1000) - parse_duration(text)
    except ValueError:
        return parse_instant(text)


def _interval(text: str) -> int:
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


def _option(kind: TriggerKind) -> Any:
    """The option of a kind's own field."""
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
    """The options that say when; each kind of trigger adds its own."""

    @property
    def zone(self) -> str | None:
        """The time zone that was given."""
        found: str | None = getattr(self, "tz", None)
        return found

    @property
    def given(self) -> list[TriggerKind]:
        """The kinds whose options were given."""
        return [kind for kind in KINDS.values() if self._said(kind) is not None]

    @property
    def recurs(self) -> bool:
        """Whether it is due again and again."""
        return any(kind.recurs for kind in self.given)

    def _said(self, kind: TriggerKind) -> Any:
        return getattr(self, kind.field.argument)

    def arguments(self) -> dict[str, Any]:
        """What the client's `schedule` takes."""
        said = {kind.field.argument: self._said(kind) for kind in self.given}
        return {**said, "timezone": self.zone}

    def fields(self) -> dict[str, Any]:
        """What was given of when, by the names of the request."""
        return {kind.field.name: self._said(kind) for kind in self.given}

    def check(self) -> None:
        """Refuse options that say when in no way, or in several."""
        given = [kind.field.flag for kind in self.given]
        if len(given) != 1:
            raise WrongUse(
                f"Say when with exactly one of {FLAGS}; given: {' and '.join(given) or 'none'}. For"
                " example: --in 5m."
            )

    def check_zone_of_rule(self, *zoned: str | None) -> None:
        """Refuse a time zone where nothing is read in it; `zoned` are other options that are."""
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
