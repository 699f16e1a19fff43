"""The description of a kind of trigger: all that the rest of belfry knows of it.

One module for each kind, next to this one, holds a `TriggerKind` and the `Trigger` that it makes.
The registry (`triggers.KINDS`) lists them, and the doors, the checks, the records at rest, the
engine and the previews ask the registry.  So a new kind is a module, a line of the registry, and
its field in the schema.  All kinds are held to the same promises by one test
(`tests/conformance/test_triggers.py`).

    door       Field ─► request["interval_ms"]
    check      EveryKind.problem(request, now_ms)
    at rest    code 2, and `when` in the rule
    firing     EveryKind.trigger(rule) ─► Every, which is a `Trigger`
    preview    EveryKind.words, EveryKind.warnings

A kind is about a *request*; a trigger is about a *rule*, when the request is long gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from belfry.schedules.field import Field
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import Trigger


class Warned(NamedTuple):
    """Something to know before asking for a rule; `code` is for programs."""

    code: str
    text: str


class TriggerKind(ABC):
    """A kind of trigger; it has no state."""

    name: ClassVar[str]
    # At rest in a pending record and in its rule.  Frozen: a code is never given to another kind.
    code: ClassVar[int]
    # The field that says when; a request has that of its own kind and no other's.
    field: ClassVar[Field]
    # Fields of good requests, besides `kind`: what it can say, for the tests of every kind.
    examples: ClassVar[tuple[Mapping[str, Any], ...]]
    recurs: ClassVar[bool]
    # Whether it is read in a time zone; then new zone data may move pending instants.
    zoned: ClassVar[bool] = False
    # Whether its instant is known only once something else is acknowledged.
    depends: ClassVar[bool] = False

    @abstractmethod
    def problem(self, request: Request, now_ms: int) -> Rejection | None:
        """Why its own field, or the time zone, is not allowed, or None.

        `now_ms` is when the request was accepted.  Other fields are checked by `rule_checks`, after
        this one has found nothing.
        """

    @abstractmethod
    def words(self, request: Request) -> str:
        """The rule of a checked request, in words for people, without its bounds."""

    def zone_name(self, request: Request) -> str | None:
        """The time zone of a checked request, where one matters and it names one."""
        in_a_zone = self.zoned or request["except_cron"] or request["calendar"]
        return request["timezone"] if in_a_zone else None

    def warnings(self, request: Request, trigger: Trigger, now_ms: int) -> Iterator[Warned]:  # noqa: ARG002  # every kind is asked so
        """Warnings about a checked request before it is asked for."""
        return iter(())

    def asked(self, request: Request) -> Any:
        """The value of the kind's own field in the request."""
        fields: Any = request
        return fields[self.field.name]

    @abstractmethod
    def said(self, rule: Rule, when: int) -> Any:
        """The same at rest: the value of its own field, by the rule and the number beside it."""


class OneShot(TriggerKind):
    """A kind that fires once; its instant lies beside the rule, not in it."""

    recurs = False

    @abstractmethod
    def first_ms(self, request: Request, accepted_ms: int) -> int:
        """The only instant of a checked request that was accepted then."""

    def said_ms(self, request: Request) -> int:
        """Its part of the record beside the rule: the instant, or the delay, as given."""
        said: int = self.asked(request)
        return said

    def said(self, rule: Rule, when: int) -> Any:  # noqa: ARG002  # of those with a rule
        """The instant, or the delay."""
        return when


class Recurring(TriggerKind):
    """A kind that fires again and again, by its rule."""

    recurs = True

    def said(self, rule: Rule, when: int) -> Any:  # noqa: ARG002  # of one-shots
        """The interval, or the expression."""
        return rule.when

    @abstractmethod
    def trigger(self, rule: Rule) -> Trigger:
        """The trigger of a rule of this kind; ValueError for one that was never checked."""
