"""RRULE: the kind of trigger whose rule is a recurrence of RFC 5545, in a time zone.

FREQ=MONTHLY;BYDAY=-1FR in Paris, DTSTART 2026-01-01T09:00 on the wall:

    2026-01-01   DTSTART is no last Friday, so it is no occurrence; a preview warns of it
    2026-01-30   08:00Z        2026-02-27   08:00Z        2026-03-27   08:00Z, an hour before
                                                          the summer time of the 29th

This module says how the kind is asked for, when a request of it is refused, and what a preview
tells of it.  The instants are those of `rrule_trigger`, which also draws how the modules beside it
work together.  A rule is refused where it cannot be read, has no start, names two zones, has a
COUNT whose end is too far away to be found within some milliseconds, or lines whose times take too
long to be joined (`rrule_cost`).

The start is judged before the rule is compiled, for compiling asks the zone about it.  A zone knows
the years of Python's calendar alone, so any other number would end the thread that asks.

The standard is RFC 5545, 3.3.10 and 3.8.5; EXRULE is that of RFC 2445, which RFC 5545 deprecates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.schedules.field import Field, Form
from belfry.schedules.instant_bounds import instant_problem
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.kind import Recurring, Warned
from belfry.schedules.triggers.rrule_cost import MOST_JOINED, joined
from belfry.schedules.triggers.rrule_parts import SHAPE
from belfry.schedules.triggers.rrule_text import read_rule
from belfry.schedules.triggers.rrule_trigger import RRule
from belfry.schedules.triggers.rrule_values import RRuleMistake, RuleText
from belfry.schedules.triggers.rrule_words import words_of
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import DEFAULT_ZONE, Trigger
from belfry.schedules.triggers.turns import turn_warnings
from belfry.schedules.triggers.zones import END_S, zone_problem

MAX_SHOWN: Final = 200


def rrule_problem(request: Request, now_ms: int) -> Rejection | None:
    """Why the rule of a request of kind RRULE is not allowed at `now_ms`, or None."""
    text, start_at = request["rrule"], request["start_at"]
    if text is None:
        return Rejection("no_instant", f"Kind RRULE needs the field `rrule`: {SHAPE}.")
    too_far = None if start_at is None else instant_problem(start_at, now_ms, "start_at")
    if too_far is not None:
        return too_far
    try:
        found = read_rule(text)
        if found.start is None and start_at is None:
            return Rejection(
                "no_instant",
                "Kind RRULE needs the field `start_at`, or a line DTSTART in `rrule`: the rule"
                " begins then, and takes from it what it leaves out.",
            )
        wrong_zone = zone_problem(request["timezone"]) or zone_problem(found.zone)
        if wrong_zone is not None:
            return wrong_zone
        _check_zone(found, request["timezone"])
        _check_start(found)
        _check_cost(found)
        return _bounds_problem(request)
    except RRuleMistake as mistake:
        end = "" if str(mistake).endswith("?") else "."
        return Rejection("bad_rule", f"rrule {text[:MAX_SHOWN]!r} cannot be read: {mistake}{end}")


def _check_zone(found: RuleText, given: str | None) -> None:
    if found.zone and given and found.zone != given:
        raise RRuleMistake(
            f"its TZID is {found.zone[:60]}, and timezone is {given[:60]}: give one of them"
        )


def _check_start(found: RuleText) -> None:
    if found.start is not None and found.start.second >= END_S:
        raise RRuleMistake("its DTSTART is after 9996-10-31, and nothing is due from then on")


def _check_cost(found: RuleText) -> None:
    if joined(found) > MOST_JOINED:
        raise RRuleMistake(
            "its rules together have so many times, on days of so many sorts, that the next one is"
            " not looked for: take fewer rules by seconds or minutes, or intervals that divide a"
            " day, such as 60 seconds"
        )


def _bounds_problem(request: Request) -> Rejection | None:
    """Why a rule cannot be computed in the time there is for it, or None."""
    trigger = RRule(Rule("RRULE", request["rrule"], request["timezone"], request["start_at"]))
    if trigger.ends_in_sight:
        return None
    raise RRuleMistake(
        "its COUNT ends so many years ahead that its end is not looked for: give UNTIL, end_at or"
        " max_fires instead"
    )


class RRuleKind(Recurring):
    """A recurrence of RFC 5545, from DTSTART on, read in a time zone."""

    name = "RRULE"
    code = 4
    zoned = True
    field = Field(
        name="rrule",
        form=Form.TEXT,
        doc="RRULE: recurrence of RFC 5545, one rule whose DTSTART is start_at, or lines DTSTART,"
        " RRULE, RDATE, EXDATE and EXRULE.",
        header="belfry-rrule",
        flag="--rrule",
        metavar="RULE",
        help='By a rule of RFC 5545 from --start-at on, such as "FREQ=WEEKLY;BYDAY=MO,FR", or by'
        " lines DTSTART, RRULE, RDATE, EXDATE and EXRULE.",
        argument="rrule",
        check=rrule_problem,
    )
    examples = (
        {"rrule": "FREQ=DAILY", "start_at": 1_700_000_000_000},
        {
            "rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR",
            "start_at": 1_800_000_000_500,
            "timezone": "Europe/Paris",
        },
        {
            "rrule": "RRULE:FREQ=DAILY;INTERVAL=3;BYDAY=SA,SU;COUNT=500",
            "start_at": 1_790_000_000_000,
            "timezone": "America/New_York",
        },
        {"rrule": "FREQ=WEEKLY;UNTIL=20300101T000000Z;WKST=SU", "start_at": 1_750_000_000_000},
        {
            "rrule": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=9,17",
            "start_at": 1_799_000_000_000,
            "timezone": "Asia/Tokyo",
        },
        {"rrule": "FREQ=MINUTELY;INTERVAL=7;BYHOUR=8,9,10", "start_at": 1_799_999_000_250},
        {
            "rrule": "DTSTART;TZID=Europe/Paris:20270101T090000 RRULE:FREQ=DAILY;BYHOUR=9"
            " RRULE:FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=18 RDATE:20270120T120000"
            " EXDATE;VALUE=DATE:20270117 EXRULE:FREQ=WEEKLY;BYDAY=SU",
        },
        {
            "rrule": "FREQ=DAILY",
            "start_at": 1_799_000_000_000,
            "except_cron": "* * * * SAT,SUN",
        },
    )

    def problem(self, request: Request, now_ms: int) -> Rejection | None:
        """A rule that can be read, with a start within bounds, in a zone that exists."""
        return rrule_problem(request, now_ms)

    def zone_name(self, request: Request) -> str | None:
        """That of its TZID, or the field's."""
        return read_rule(request["rrule"] or "").zone or request["timezone"]

    def words(self, request: Request) -> str:
        """The rule in English, and its zone."""
        zone_name = self.zone_name(request) or DEFAULT_ZONE
        return f"{words_of(read_rule(request['rrule'] or ''))}, {zone_name}"

    def warnings(self, request: Request, trigger: Trigger, now_ms: int) -> Iterator[Warned]:  # noqa: ARG002  # every kind is asked so
        """A start that is no occurrence, and the next changes of the clock that matter."""
        rrule = trigger.whole
        assert isinstance(rrule, RRule), "a rule of RRULE has the trigger of RRULE"
        if not rrule.starts_with_its_start:
            yield Warned(
                "start_is_not_due",
                "The start is no time of the rule: the first occurrence is a later one, and COUNT"
                " counts from there.",
            )
        yield from turn_warnings(rrule.clock, now_ms, trigger)

    def trigger(self, rule: Rule) -> Trigger:
        """Times and a zone; raises `RRuleMistake` or `UnknownZone` where they are not checked."""
        return RRule(rule)


RRULE: Final = RRuleKind()
