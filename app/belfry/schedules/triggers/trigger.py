"""The questions to every trigger: when first, when next, and how many were passed over meanwhile.

    first_ms, after_ms          one instant, and the one behind it: what a fire asks
    latest_ms, count            many instants at once: what an outage, a preview or a backfill asks
    anchor_ms                   an instant that others may be counted from
    rederived_ms, holds         what a pending instant is under new time zone data
    cadence, same_cadence       whether an update leaves the rhythm alone

A schedule has only its pending instant at rest.  All others follow from it and the rule, so every
method takes an instant and none of them keeps a position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from belfry.schedules.triggers.rule import Rule

DAY_MS: Final = 86_400_000
DEFAULT_ZONE: Final = "UTC"


class Trigger(ABC):
    """The nominal instants (epoch ms) of a rule, strictly increasing, within its bounds.

    A trigger depends on its rule and on `zones.VERSION` alone and remembers nothing that matters,
    so one may serve all schedules of its rule.  How often a schedule has fired is not its affair:
    `max_fires` is for the caller to count.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    @abstractmethod
    def first_ms(self, accepted_ms: int) -> int | None:
        """The first instant of a schedule that was accepted then, or None if it has none."""

    @abstractmethod
    def after_ms(self, nominal_ms: int) -> int | None:
        """The instant that follows this one, or None where it was the last."""

    @abstractmethod
    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """The last instant after `after_ms` and up to `until_ms`, and how many there are.

        If there are no occurrences, it is `after_ms` itself, and 0.

        This is how a run of missed occurrences is found, so it must not take longer for more of
        them: an interval divides, an expression counts by days or months.
        """

    def count(self, after_ms: int, until_ms: int, most: int) -> int:  # noqa: ARG002  # of those that look at each
        """How many instants there are, as `latest_ms` has it; some number above `most` for more.

        So a trigger that has to look at single instants looks at no more of them than that.
        """
        return self.latest_ms(after_ms, until_ms)[1]

    @property
    def looks_at_each(self) -> bool:
        """Whether counting looks at single instants, and not at days."""
        return False

    @property
    def looks_a_day(self) -> int:
        """How much counting looks at for each day of a range; 0 where it goes by years or divides.

        One look costs about as much as one instant does that is found, some microseconds.
        """
        return 0

    def before_ms(self, nominal_ms: int, accepted_ms: int) -> int:
        """The instant before this one; `accepted_ms` where that is not after the acceptance."""
        return self.latest_ms(accepted_ms, nominal_ms - 1)[0]

    def anchor_ms(self, nominal_ms: int, ms: int) -> int:  # noqa: ARG002  # EVERY's
        """The instant to ask `after_ms` and `latest_ms` about in place of one of no occurrence.

        `nominal_ms` is one of an occurrence, for instants may follow from one another.

            EVERY hour, an occurrence at 15:00        anchor_ms(15:00, 09:29:59.999)    09:00
            CRON "0 * * * *"                          anchor_ms(15:00, 09:29:59.999)    09:29:59.999

        An interval answers ``after_ms(09:30)`` with 10:30, which is not one of its instants; from
        09:00 on it answers 10:00.  A trigger of wall times can be asked about any instant.
        """
        return ms

    def day_pattern(self, nominal_ms: int, from_ms: int, day: int) -> object:  # noqa: ARG002  # of those whose days are alike
        """Equal for days whose instants lie alike; None where that is not known.

        A day has 24 hours without a change of the clock.  It begins at `from_ms`, and is the one
        of this number on the wall, counted from 1970-01-01.  `Excepting` counts one day of each
        pattern and remembers the number: a year of minutes is two or three counts.
        """
        return None

    @property
    def zone_name(self) -> str:
        """The time zone that the rule is read in."""
        return self.rule.timezone or DEFAULT_ZONE

    @property
    def whole(self) -> Trigger:
        """The same trigger with all of its instants: nothing left out, and nothing moved."""
        return self

    def shows(self, wall: int) -> bool:  # noqa: ARG002  # of those that leave some out
        """Whether an instant fires at which the wall clock shows this second."""
        return True

    def why_over(self, nominal_ms: int) -> str:  # noqa: ARG002  # of those that leave some out
        """Why nothing follows this instant, where the rule's bounds and its end do not say so."""
        return ""

    def holds(self, nominal_ms: int) -> bool:
        """Whether a pending instant still is one of the rule, by today's time zone data."""
        return self.rederived_ms(nominal_ms, nominal_ms - 1, nominal_ms - 1) == nominal_ms

    def rederived_ms(self, nominal_ms: int, accepted_ms: int, over_ms: int) -> int | None:  # noqa: ARG002  # of those with a zone
        """A pending instant by today's time zone data; itself where that changed nothing.

        The answer lies after `accepted_ms`, the instant of the acceptance.  All that is due up to
        `over_ms` has fired, or was given up: where the answer would lie there, it is the instant
        itself, which is late then and fires as it was to.  So new data never fires an occurrence
        twice, and never loses the one that waits.
        """
        return nominal_ms

    def same_cadence(self, other: Trigger) -> bool:
        """Whether both have the same rhythm, so that an update need not start anew.

        Bounds that end a schedule (`end_at`, `max_fires`) and the treatment of late occurrences are
        no part of it.
        """
        return self.cadence == other.cadence

    @property
    def cadence(self) -> tuple[object, ...]:
        """All that the rhythm depends on."""
        return (self.rule.kind,)


class ZonedTrigger(Trigger):
    """A trigger whose instants are times on a wall clock: new time zone data may move them.

    An example: 02:30 each day, and a country drops summer time in new data.

        pending      2027-07-01T00:30Z      02:30 on the wall by the old data, 01:30 by the new
        candidates   06-30T01:30Z and 07-01T01:30Z, which are 02:30 by the new data
        answer       2027-07-01T01:30Z      the nearer one

    Where nothing follows any more, because the new instant lies behind `end_at`, the one before is
    nearer than none: it is another occurrence, which may have fired already.  So an instant moves
    back by less than half a day there, and otherwise stays for its last fire.
    """

    def rederived_ms(self, nominal_ms: int, accepted_ms: int, over_ms: int) -> int | None:
        """The instant nearest to the old one, for a zone's rules move times by hours at most."""
        later_ms = self.after_ms(nominal_ms - 1)
        if later_ms == nominal_ms:
            return nominal_ms
        reach_ms = max(accepted_ms, nominal_ms - DAY_MS)
        earlier_ms, count = self.latest_ms(reach_ms, nominal_ms)
        if not count:
            return later_ms
        back_ms = nominal_ms - earlier_ms
        if later_ms is None and back_ms >= DAY_MS // 2:
            return nominal_ms
        if later_ms is None or back_ms < later_ms - nominal_ms:
            return earlier_ms if earlier_ms > over_ms else nominal_ms
        return later_ms
