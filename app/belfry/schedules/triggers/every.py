"""EVERY: instants at a fixed distance, counted from the one before and never from now.

    start_at, start_at + interval, …        or, without it,  accepted + interval, …

Whatever delays a fire, the next one keeps its place.  All answers are sums: an interval of a
millisecond that slept for a year costs no more than one of an hour.
"""

from __future__ import annotations

from belfry.schedules.rule import Rule
from belfry.schedules.triggers.trigger import Trigger


class Every(Trigger):
    """Instants `interval_ms` apart."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        assert rule.interval_ms is not None, "a checked rule has its interval"
        assert rule.interval_ms > 0, "an interval of nothing never gets anywhere"
        self._interval_ms = rule.interval_ms
        self._end_ms = 1 << 62 if rule.end_at is None else rule.end_at

    def first_ms(self, accepted_ms: int) -> int | None:
        """`start_at` or the next after it by whole intervals, from the acceptance on."""
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

    @property
    def cadence(self) -> tuple[object, ...]:
        """Interval and start."""
        return (self.rule.kind, self._interval_ms, self.rule.start_at)
