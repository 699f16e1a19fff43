"""Options that say when a schedule is due: exactly one of them, and its time zone.

They are not listed by hand. Each kind of trigger of `belfry.schedules.triggers.registry` brings its
own field, with flag and help, and `When` is made from all of them. A new kind is an option of every
command without a change here.

    --in 5m                             ─► When(delay_ms=300000)
    --cron "0 9 * * *" --tz Asia/Tokyo  ─► When(cron="0 9 * * *", tz="Asia/Tokyo")

Values are in the units of the request: instants in ms since 1970, durations in ms. A command takes
`When` as one parameter, checks that one option was given (`check`) and that its zone means
something (`check_zone_of_rule`), and hands the rest on by the names that the client or HTTP has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.schedules.field import Form
from belfry.schedules.instants import parse_duration, parse_instant
from belfry.schedules.triggers.kind import TriggerKind
from belfry.schedules.triggers.registry import KINDS, ZONED, listed

# The heading of these options on a help page.
WHEN: Final = "When (exactly one)"


def _interval(text: str) -> int:
    """Milliseconds of an interval, which is not zero."""
    found = parse_duration(text)
    if found == 0:
        raise ValueError("An interval of 0 would never end: give one of at least 1ms.")
    return found


_ZONED: Final = listed((KINDS[name].field.flag for name in ZONED), "and")
# All options of which exactly one says when, as people list them.
FLAGS: Final = listed((kind.field.flag for kind in KINDS.values()), "and")
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
        """Arguments for the client's `schedule`: values by parameter name, and the time zone."""
        said = {kind.field.argument: self._said(kind) for kind in self.given}
        return {**said, "timezone": self.zone}

    def fields(self) -> dict[str, Any]:
        """The given options of when, by the names of the request, such as ``delay_ms``."""
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
        """Refuse a time zone if no option is read in it; `zoned` are other options that are.

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


def check_zone(tz: str) -> None:
    """Refuse a time zone that does not exist, with `WrongUse` and the nearest name."""
    from belfry.schedules.triggers.zones import UnknownZone, zone

    try:
        zone(tz)
    except UnknownZone as unknown:
        raise WrongUse(str(unknown)) from None
