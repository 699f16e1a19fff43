"""AT and AFTER: one instant, which the pending record holds, and nothing after it.

    AT      the instant that the request names; in the past it fires at once
    AFTER   a delay from the arrival in Kafka: arrived 12:00:00.000, 5m ─► 12:05:00.000

A delay counts from the record's timestamp and not from when a worker reads it, so a worker that is
behind, or a step that is done again, gives the same instant.  The instant is no part of the rule,
and the most common schedules have no rule at all: no bytes at rest, and the fast path to fire them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.schedules.field import Field, Form
from belfry.schedules.instant_bounds import SECONDS_LIMIT, YEARS_100_MS, instant_problem
from belfry.schedules.instants import format_duration, format_instant
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.kind import OneShot, Warned
from belfry.schedules.triggers.trigger import Trigger


class Once(Trigger):
    """The trigger of a one-shot schedule; its only instant is no part of its rule."""

    def first_ms(self, accepted_ms: int) -> int | None:  # noqa: ARG002  # every trigger is asked so
        """None: the request says when, not the rule."""
        return None

    def after_ms(self, nominal_ms: int) -> int | None:  # noqa: ARG002  # every trigger is asked so
        """None: it was the only one."""
        return None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:  # noqa: ARG002  # every trigger is asked so
        """Nothing follows."""
        return after_ms, 0


class At(OneShot):
    """An instant that the request names; one in the past fires at once."""

    name = "AT"
    code = 0
    field = Field(
        name="at",
        form=Form.INSTANT,
        doc="AT: the instant, UTC; in the past it fires at once.",
        header="belfry-at",
        also=("when",),
        flag="--at",
        metavar="INSTANT",
        help="Once, at 2026-12-01T09:00:00Z (with an offset; or epoch milliseconds). In the past:"
        " at once.",
        argument="at",
        check=instant_problem,
    )
    examples = ({"at": 1_800_000_000_000}, {"at": 1_000_000_000_000})

    def problem(self, request: Request, now_ms: int) -> Rejection | None:
        """An instant from 2001 on, at most 100 years ahead; looked at inline, for most are good."""
        at_ms = request["at"]
        if at_ms is None:
            return Rejection("no_instant", "Kind AT needs the field `at` (epoch milliseconds).")
        if SECONDS_LIMIT <= at_ms <= now_ms + YEARS_100_MS:
            return None
        return instant_problem(at_ms, now_ms)

    def words(self, request: Request) -> str:
        """The instant."""
        return f"Once, at {format_instant(request['at'] or 0)}"

    def warnings(self, request: Request, trigger: Trigger, now_ms: int) -> Iterator[Warned]:  # noqa: ARG002  # every kind is asked so
        """An instant that is over already."""
        if (request["at"] or 0) <= now_ms:
            yield Warned("in_the_past", "The instant is in the past: it fires at once.")

    def first_ms(self, request: Request, accepted_ms: int) -> int:  # noqa: ARG002  # AFTER's
        """The one that the request names."""
        at_ms = request["at"]
        assert at_ms is not None, "a checked request says when"
        return at_ms


def delay_problem(request: Request) -> Rejection | None:
    """Why the delay of a request of kind AFTER is not allowed, or None."""
    delay_ms = request["delay_ms"]
    if delay_ms is None:
        return Rejection("no_instant", "Kind AFTER needs the field `delay_ms` (milliseconds).")
    if not 0 <= delay_ms <= YEARS_100_MS:
        return Rejection(
            "bad_delay", f"delay_ms {delay_ms} is not allowed: 0 to {YEARS_100_MS} (100 years)."
        )
    return None


class After(OneShot):
    """A delay from when Kafka has the request."""

    name = "AFTER"
    code = 1
    field = Field(
        name="delay_ms",
        form=Form.DURATION,
        doc="AFTER: delay in milliseconds from the record's timestamp as first received.",
        header="belfry-in",
        also=("delay", "delay-ms", "after"),
        flag="--in",
        metavar="DURATION",
        help="Once, after 30s, 5m, 1h30m or PT5M (a plain number: milliseconds).",
        argument="in_",
        check=delay_problem,
    )
    examples = ({"delay_ms": 300_000}, {"delay_ms": 0})

    def problem(self, request: Request, now_ms: int) -> Rejection | None:  # noqa: ARG002  # AT's
        """A delay of at most 100 years."""
        return delay_problem(request)

    def words(self, request: Request) -> str:
        """The delay, and the instant that it counts from."""
        return f"Once, {format_duration(request['delay_ms'] or 0)} after Kafka has the request"

    def first_ms(self, request: Request, accepted_ms: int) -> int:
        """So long after the acceptance."""
        delay_ms = request["delay_ms"]
        assert delay_ms is not None, "a checked request says when"
        return accepted_ms + delay_ms


AT: Final = At()
AFTER: Final = After()
