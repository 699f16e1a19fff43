"""Options that several commands share, and how their values are read.

An option is an annotated type: Typer reads its flag, its help and its parser from there. Several
options that go together are the fields of a frozen dataclass, and a command takes the dataclass as
one parameter (`belfry.cli.session` spreads it). So `RequestOptions` is on each request. Options of
a rule and of its event have modules of their own: `when_options`, `bound_options`, `rule_options`
and `event_options`.

Values are in the units of the request: instants in ms since 1970, durations in ms. Only times to
wait are in seconds, as everywhere on a command line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import time
from typing import Annotated, Any, Final

import typer

from belfry.schedules.identity import expected_from
from belfry.schedules.instants import PLAIN_MILLISECONDS, parse_duration, parse_instant

# Headings of help pages under which options stand.
EVENT: Final = "The event"
ASKING: Final = "The request"
# A plain number, which `parse_duration` would read as ms.
_SECONDS: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def seconds(text: str) -> float:
    """A time to wait, in seconds: plain numbers are seconds, as everywhere on a command line.

    ``60``, ``1.5``, ``90s`` and ``PT1M30S`` are read. Raises ValueError if the text is not a
    duration; its hint says plain seconds, and not milliseconds as elsewhere.
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
    instant. Raises ValueError if the text is neither a duration nor an instant.
    """
    try:
        return int(time() * 1000) - parse_duration(text)
    except ValueError:
        return parse_instant(text)


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
    """A version, with or without its generation; Typer refuses any other text."""
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
        """Arguments of the client's methods, without those not given; the timeout is in seconds."""
        found = {
            "request_id": self.request_id,
            "expected_version": self.expected_version,
            "reason": self.reason,
            "wait": not self.no_wait,
            "timeout_s": self.timeout,
        }
        return {name: value for name, value in found.items() if value is not None}
