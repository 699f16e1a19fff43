"""EVERY: instants at a fixed distance, counted from the one before and never from now.

    start_at, start_at + interval, …        or, without it,  accepted + interval, …

Whatever delays a fire, the next one keeps its place.  All answers are sums: an interval of a
millisecond that slept for a year costs no more than one of an hour.

    start_at 09:00, every 15 min, accepted at 09:20

    09:00    09:15    09:30    09:45
    ├────────┼────▲───●────────●──────
                  accepted    the first is 09:30, by the rhythm of `start_at`

An interval counts real time: over a change of the clock it stays as long as it is, and its time on
the wall shifts.  A schedule that has to keep its time on the wall needs a CRON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.schedules.field import Field, Form
from belfry.schedules.instant_bounds import YEARS_100_MS
from belfry.schedules.instants import format_duration
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.kind import Recurring, Warned
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import Trigger

SECOND_MS: Final = 1000


class Every(Trigger):
    """Instants `interval_ms` apart."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        assert isinstance(rule.when, int), "a checked rule has its interval"
        assert rule.when > 0, "an interval of nothing never gets anywhere"
        self._interval_ms = rule.when
        self._end_ms = 1 << 62 if rule.end_at is None else rule.end_at

    def first_ms(self, accepted_ms: int) -> int | None:
        """`start_at` or the next after it by whole intervals, from the acceptance on.

        An instant at the very millisecond of the acceptance counts where there is a `start_at`;
        without one the first comes an interval later.
        """
        start_ms = self.rule.start_at
        if start_ms is None:
            return self.after_ms(accepted_ms)
        passed = max(0, -((start_ms - accepted_ms) // self._interval_ms))
        first_ms = start_ms + passed * self._interval_ms
        return first_ms if first_ms <= self._end_ms else None

    def after_ms(self, nominal_ms: int) -> int | None:
        """One interval later."""
        found = nominal_ms + self._interval_ms
        return found if found <= self._end_ms else None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """A division: the number of occurrences does not matter."""
        count = max(0, (min(until_ms, self._end_ms) - after_ms) // self._interval_ms)
        return after_ms + count * self._interval_ms, count

    def before_ms(self, nominal_ms: int, accepted_ms: int) -> int:  # noqa: ARG002  # CRON's
        """One interval earlier: an update moves the acceptance, and the instants stay."""
        return nominal_ms - self._interval_ms

    def anchor_ms(self, nominal_ms: int, ms: int) -> int:
        """The last instant of the rhythm up to this one, also where it lies before `start_at`."""
        return ms - (ms - nominal_ms) % self._interval_ms

    def day_pattern(self, nominal_ms: int, from_ms: int, day: int) -> object:  # noqa: ARG002  # CRON's
        """How long the day's begin is after an instant."""
        return (from_ms - nominal_ms) % self._interval_ms

    @property
    def cadence(self) -> tuple[object, ...]:
        """Interval and start."""
        return (self.rule.kind, self._interval_ms, self.rule.start_at)


def interval_problem(request: Request) -> Rejection | None:
    """Why the interval of a request of kind EVERY is not allowed, or None."""
    interval_ms = request["interval_ms"]
    if interval_ms is None:
        return Rejection("no_instant", "Kind EVERY needs the field `interval_ms` (milliseconds).")
    if not 1 <= interval_ms <= YEARS_100_MS:
        return Rejection(
            "bad_interval",
            f"interval_ms {interval_ms} is not allowed: 1 to {YEARS_100_MS} (100 years).",
        )
    return None


class EveryKind(Recurring):
    """A fixed distance between two instants."""

    name = "EVERY"
    code = 2
    field = Field(
        name="interval_ms",
        form=Form.DURATION,
        doc="EVERY: interval in milliseconds.",
        header="belfry-every",
        also=("interval", "interval-ms"),
        flag="--every",
        metavar="DURATION",
        help="Again and again, with this interval.",
        argument="every",
        check=interval_problem,
    )
    examples = (
        {"interval_ms": 60_000},
        {"interval_ms": 86_400_000, "start_at": 1_795_000_000_123},
        {"interval_ms": 7_001, "start_at": 1_830_000_000_000, "end_at": 1_830_000_999_999},
        {"interval_ms": 900_000, "except_cron": "* 0-5 * * *", "timezone": "Europe/Paris"},
    )

    def problem(self, request: Request, now_ms: int) -> Rejection | None:  # noqa: ARG002  # AT's
        """An interval of 1 ms to 100 years."""
        return interval_problem(request)

    def words(self, request: Request) -> str:
        """The interval."""
        return f"Every {format_duration(request['interval_ms'] or 0)}"

    def warnings(self, request: Request, trigger: Trigger, now_ms: int) -> Iterator[Warned]:  # noqa: ARG002  # every kind is asked so
        """An interval that may be a slip of the unit."""
        if (request["interval_ms"] or 0) < SECOND_MS:
            yield Warned("very_frequent", "It is due more often than once a second.")

    def trigger(self, rule: Rule) -> Trigger:
        """Sums."""
        return Every(rule)


EVERY: Final = EveryKind()
