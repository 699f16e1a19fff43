"""A recurring trigger that heeds a calendar: the treatment of instants on days off.

    TUE,FRI,SAT at 09:00    Tue 22   Wed   Thu 24   Fri 25   Sat 26   Sun    Mon 28   Tue 29
    days off                                        ███████████████████████
    SKIP                      ●                                                         ●
    NEXT_BUSINESS_DAY         ●                       └────────┴───────────►   ●        ●
    PREVIOUS_BUSINESS_DAY     ●              ●   ◄────┴────────┘                        ●

The two ways are two classes, because they know different things about the next instant:

    Skipping        the pending instant is one of the rule, so the rule is asked what follows it,
                    and runs of days off are passed over (`skipping`)
    MovingTrigger   the pending instant may have moved, so the rule is asked about the days around
                    it (`moving`)

All of this is true of both.  Days are those of the rule's zone (`days`).  A changed calendar
gives a schedule another rule; which instants have been passed by then the engine knows
(`engine/passed.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from belfry.schedules.days_off import days_off
from belfry.schedules.triggers.days import ZoneDays
from belfry.schedules.triggers.trigger import DAY_MS, Trigger, ZonedTrigger
from belfry.schedules.triggers.zones import zone

SKIP: Final = "SKIP"
NEXT: Final = "NEXT_BUSINESS_DAY"
# Runs of days off that are passed over in a row, each of which held an instant.
MOST_PASSED: Final = 4_000
LONGEST_MS: Final = 50 * 366 * DAY_MS


class Heeding(ZonedTrigger):
    """The instants of another trigger, as a calendar has them.

    `packed` are the calendar's days at rest (`days_off.packed_days`).
    """

    def __init__(self, whole: Trigger, packed: bytes) -> None:
        super().__init__(whole.rule)
        self._whole = whole
        self._off = days_off(packed)
        self._days = ZoneDays(zone(whole.zone_name))

    @property
    def whole(self) -> Trigger:
        """The trigger without its calendar, and without `except_cron`: all of its instants."""
        return self._whole.whole

    @property
    def zone_name(self) -> str:
        """The zone of the rule, in which its days are."""
        return self._whole.zone_name

    def shows(self, wall: int) -> bool:
        """As the trigger itself."""
        return self._whole.shows(wall)

    @property
    def cadence(self) -> tuple[object, ...]:
        """That of the trigger, the calendar's name, and the way: its days may change."""
        rule = self.rule
        return (*self._whole.cadence, rule.calendar, rule.on_holiday or SKIP, self.zone_name)

    def why_over(self, nominal_ms: int) -> str:
        """That the calendar leaves nothing, where the rule goes on."""
        if self.after_ms(nominal_ms) is not None:
            return ""
        if self._later(nominal_ms) is None:
            return self._whole.why_over(nominal_ms)
        return (
            f"calendar {self.rule.calendar!r} leaves out all that follows, or more than is looked"
            f" through: {MOST_PASSED} runs of days off in a row, or 50 years."
        )

    @abstractmethod
    def next_ms(self, nominal_ms: int, ms: int) -> int | None:
        """The first instant after `ms`, where `nominal_ms` is the pending one of a schedule."""

    @abstractmethod
    def _later(self, nominal_ms: int) -> int | None:
        """The next instant of the rule without the calendar."""
