"""CRON: instants of a cron expression in a time zone; whole seconds.

    cron_text     what a text says                 H 9 15W * *  is  37 9 15W * *
    expression    its times on the wall            15 Jan 09:37, 16 Feb 09:37 …
    clock         what changed clocks do to them   15 Jan 08:37 UTC …
    cron_words    the same in English

``@every 90s`` is an interval: its trigger is that of EVERY, and so is its rhythm.  Several of
these in one text, with ``|`` between them, are a union (`union_text`, `united`).

The dialect is that of Debian's cron as cronsim reads it, with seconds, years, ``L``, ``W``, ``#``
and Jenkins' ``H``.  Schedules with one expression in one zone share an `Expression`, a `Clock` and
its memo: of a million schedules at ``0 9 * * *`` only the first one that fires computes the next
instant, and the others look it up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from belfry.schedules.field import Field, Form
from belfry.schedules.instants import format_duration, format_instant
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.clock import clock
from belfry.schedules.triggers.cron_spelling import is_hashed, normalized, seed_of
from belfry.schedules.triggers.cron_text import SHAPE, CronMistake, interval_of
from belfry.schedules.triggers.cron_words import words_of
from belfry.schedules.triggers.every import EVERY, Every
from belfry.schedules.triggers.expression import expression
from belfry.schedules.triggers.kind import Recurring, Warned
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import DEFAULT_ZONE, Trigger, ZonedTrigger
from belfry.schedules.triggers.turns import turn_warnings
from belfry.schedules.triggers.union_text import check_text, parts_of
from belfry.schedules.triggers.united import Rhythm, United
from belfry.schedules.triggers.zones import END_S, zone_problem

MAX_SHOWN: Final = 200


class Cron(ZonedTrigger):
    """Instants of a cron expression; whole seconds."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule)
        assert isinstance(rule.when, str), "a checked rule has its expression"
        self._text = normalized(rule.when, rule.seed)
        self.expression = expression(self._text)
        self.clock = clock(self._text, self.zone_name)
        self._memo = self.clock.memo
        self._end_ms = END_S * 1000 if rule.end_at is None else rule.end_at

    def first_ms(self, accepted_ms: int) -> int | None:
        """The first instant after the acceptance, or from `start_at` on if that is later.

        An instant at `start_at` itself counts, one at the acceptance does not.
        """
        start_ms = self.rule.start_at
        if start_ms is None or start_ms <= accepted_ms:
            return self.after_ms(accepted_ms)
        return self.after_ms(start_ms - 1)

    def after_ms(self, nominal_ms: int) -> int | None:
        """The next time on the wall, as an instant."""
        found = self._memo.get(nominal_ms)
        if found is None:
            found = self.clock.remember(nominal_ms)
        return found if found <= self._end_ms else None

    def latest_ms(self, after_ms: int, until_ms: int) -> tuple[int, int]:
        """Counts days, not occurrences."""
        after, until = after_ms // 1000, min(until_ms, self._end_ms) // 1000
        count = self.clock.count(after, until)
        return (self.clock.last(after, until) * 1000, count) if count else (after_ms, 0)

    def day_pattern(self, nominal_ms: int, from_ms: int, day: int) -> object:  # noqa: ARG002  # EVERY's
        """Whether the expression allows the day: all that it allows have the same times."""
        return self.expression.on_day(day)

    @property
    def cadence(self) -> tuple[object, ...]:
        """Expression, zone and start."""
        return (self.rule.kind, self._text, self.zone_name, self.rule.start_at)


def cron_problem(request: Request) -> Rejection | None:
    """Why the expression of a request of kind CRON is not allowed, or None.

    Such as ``cron '0 25 * * *' cannot be read at character 3: '25' is no hour: 0-23.``
    """
    text = request["cron"]
    if text is None:
        return Rejection("no_instant", f"Kind CRON needs the field `cron`: {SHAPE}.")
    try:
        check_text(text)
    except CronMistake as mistake:
        return Rejection(
            "bad_cron",
            f"cron {text[:MAX_SHOWN]!r} cannot be read at character {mistake.position + 1}:"
            f" {mistake}{'' if str(mistake).endswith('?') else '.'}",
        )
    return None


def plain_cron(request: Request) -> str:
    """The expression of a checked request with numbers in place of H."""
    fields: Any = request
    seed = seed_of(fields.get("tenant", ""), fields.get("schedule_id", ""))
    return " | ".join(normalized(part, seed) for part in parts_of(request["cron"] or ""))


class CronKind(Recurring):
    """A cron expression, read in a time zone."""

    name = "CRON"
    code = 3
    zoned = True
    field = Field(
        name="cron",
        form=Form.TEXT,
        doc="CRON: expression of five fields, six with seconds first, seven with years last; or an"
        " alias.",
        header="belfry-cron",
        flag="--cron",
        metavar="EXPRESSION",
        help='By a cron expression, such as "0 9 * * MON", "H H(1-5) * * *" or "@every 90s"; or by'
        " several, with | between them.",
        argument="cron",
        check=cron_problem,
    )
    examples = (
        {"cron": "0 9 * * MON", "timezone": "Europe/Paris"},
        {"cron": "*/15 8-18 * * *"},
        {"cron": "30 2 * * *", "timezone": "America/New_York"},
        {"cron": "*/7 * * * * *", "start_at": 1_830_000_000_001, "end_at": 1_830_000_999_999},
        {"cron": "H H(1-5) 15W,L-2 * *", "timezone": "Asia/Tokyo"},
        {"cron": "0 30 9 * * FRIL,MON#2 2027-2199"},
        {"cron": "@every 95s"},
        {"cron": "*/15 * * * *", "except_cron": "* 0-5 * * *", "timezone": "Europe/Paris"},
        {"cron": "0 9 * * MON | @every 90m | 30 2 1 * *", "timezone": "Europe/Paris"},
    )

    def problem(self, request: Request, now_ms: int) -> Rejection | None:  # noqa: ARG002  # AT's
        """An expression that can be read, in a zone that exists."""
        return cron_problem(request) or zone_problem(request["timezone"])

    def words(self, request: Request) -> str:
        """The expression in English, and its zone; of a union each part."""
        parts = parts_of(request["cron"] or "")
        said = [_words_of_part(request, part) for part in parts]
        if len(said) > 1:
            said[1:] = [f"{each[:1].lower()}{each[1:]}" for each in said[1:]]
            if (interval_ms := interval_of(parts[-1])) is not None:
                start_ms = request["start_at"] or 0
                said[-1] = (
                    f"every {format_duration(interval_ms)} from {format_instant(start_ms)} on"
                )
        elif interval_of(parts[0]) is not None:
            return said[0]
        return f"{'; and '.join(said)}, {request['timezone'] or DEFAULT_ZONE}"

    def warnings(self, request: Request, trigger: Trigger, now_ms: int) -> Iterator[Warned]:
        """Warnings: the value of H, two days that are one too many, and changes of the clock."""
        whole = trigger.whole
        parts = whole.parts if isinstance(whole, United) else (whole,)
        crons = [part for part in parts if isinstance(part, Cron)]
        if not crons:
            fields: Any = {**request, "interval_ms": interval_of(request["cron"] or "")}
            yield from EVERY.warnings(fields, trigger, now_ms)
            return
        if is_hashed(request["cron"] or ""):
            yield Warned("hashed", f"{_hashed(request)} here it is {plain_cron(request)}.")
        if any(cron.expression.either_day for cron in crons):
            yield Warned(
                "either_day",
                "Both the day of month and the day of week are given: a day that is one of the two"
                " is enough. A field that begins with * makes it both.",
            )
        for cron in crons:
            yield from turn_warnings(cron.clock, now_ms, trigger)

    def trigger(self, rule: Rule) -> Trigger:
        """Expression and zone; raises `CronMistake` or `UnknownZone` where they are not checked."""
        parts = parts_of(str(rule.when))
        if len(parts) > 1:
            return United(rule, [_trigger_of_part(rule, part) for part in parts])
        interval_ms = interval_of(parts[0])
        if interval_ms is not None:
            return Every(replace(rule, kind=EVERY.name, when=interval_ms))
        return Cron(rule)


def _trigger_of_part(rule: Rule, part: str) -> Trigger:
    interval_ms = interval_of(part)
    return Cron(replace(rule, when=part)) if interval_ms is None else Rhythm(rule, interval_ms)


def _words_of_part(request: Request, part: str) -> str:
    fields: Any = {**request, "cron": part, "interval_ms": interval_of(part)}
    return words_of(plain_cron(fields)) if fields["interval_ms"] is None else EVERY.words(fields)


def _hashed(request: Request) -> str:
    fields: Any = request
    text = "H stands for a number that follows from the names of tenant and schedule;"
    return text if fields.get("schedule_id") else f"{text} for the preview, which has none,"


CRON: Final = CronKind()
