"""AFTER_ACK and AFTER_GROUP: due when others are acknowledged, once.

    AFTER_ACK     x     when the next fire of schedule x is acknowledged
    AFTER_GROUP   g     when no one-shot of group g waits, and no fire of it is to be acknowledged

Both are of the schedule's own tenant.  `ack_delay_ms` puts the fire off, and `latest_at` bounds the
wait:

    x fires   ACK of x      + ack_delay_ms                       latest_at
    ●═════════●─────────────● y fires                            │
    ●═════════ no ACK ═══════════════════════════════════════════● y fires all the same

Until the acknowledgement nobody knows the instant.  The pending record then has `latest_at`, or
`FAR_MS` without one, and a flag that says so (`store/layout/pending_bytes.py`).  So it has its
place among instants, and one that is not bounded lies behind all of them.  The wait is ended in
`engine/after_acks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belfry.schedules.field import Field, Form
from belfry.schedules.instant_bounds import YEARS_100_MS, instant_problem
from belfry.schedules.instants import format_duration, format_instant
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import MAX_TEXT_BYTES, Request
from belfry.schedules.triggers.kind import OneShot, Warned
from belfry.schedules.triggers.rule import Rule
from belfry.schedules.triggers.trigger import Trigger

# 9998-01-01T00:00:00Z: due so far away where no instant is known.  A year of jitter behind it is
# still a date that every client can read.
FAR_MS: Final = 253_339_228_800_000


def awaited_problem(field: str, name: str) -> Rejection | None:
    """Why a field cannot name a schedule or a group so, or None."""
    if 1 <= len(name.encode(errors="replace")) <= MAX_TEXT_BYTES:
        return None
    return _bad(f"{field} {name[:60]!r} is not 1-255 bytes of UTF-8.")


class Depending(OneShot):
    """A kind whose instant is known when something else is acknowledged."""

    depends = True

    def problem(self, request: Request, now_ms: int) -> Rejection | None:
        """A name of 1 to 255 bytes that is not its own, and bounds that can be."""
        name = self.asked(request)
        if name is None:
            needed = f"Kind {self.name} needs the field `{self.field.name}`: whom it waits for."
            return Rejection("no_instant", needed)
        if (found := awaited_problem(self.field.name, name)) is not None:
            return found
        delay_ms, latest_at = request["ack_delay_ms"], request["latest_at"]
        if name == self.own(request):
            return _bad(f"{self.field.name} {name[:60]!r} is its own: it would wait for itself.")
        if delay_ms is not None and not 0 <= delay_ms <= YEARS_100_MS:
            return _bad(f"ack_delay_ms {delay_ms} is not allowed: 0 to {YEARS_100_MS} (100 years).")
        return None if latest_at is None else instant_problem(latest_at, now_ms, "latest_at")

    def own(self, request: Request) -> str | None:
        """The name that the request itself has among those that may be waited for."""
        raise NotImplementedError

    def first_ms(self, request: Request, accepted_ms: int) -> int:  # noqa: ARG002  # AFTER's
        """When it is due without an acknowledgement."""
        return FAR_MS if request["latest_at"] is None else request["latest_at"]

    def said_ms(self, request: Request) -> int:  # noqa: ARG002  # of those that say an instant
        """0: its rule holds all that it says."""
        return 0

    def said(self, rule: Rule, when: int) -> str | None:  # noqa: ARG002  # of those with an instant
        """Whom it waits for."""
        return rule.awaited

    def warnings(self, request: Request, trigger: Trigger, now_ms: int) -> Iterator[Warned]:  # noqa: ARG002  # every kind is asked so
        """That its instant is not known yet."""
        bound = request["latest_at"]
        until = "" if bound is None else f"; at the latest it is {format_instant(bound)}"
        text = f"Its instant follows from an acknowledgement{until}."
        yield Warned("not_known_yet", text)

    def behind(self, request: Request) -> str:
        """The words behind the name of the awaited schedule."""
        delay_ms, latest_at = request["ack_delay_ms"], request["latest_at"]
        later = f", {format_duration(delay_ms)} later" if delay_ms else ""
        return later + (f", at the latest at {format_instant(latest_at)}" if latest_at else "")


class AfterAck(Depending):
    """Due when the next fire of another schedule is acknowledged."""

    name = "AFTER_ACK"
    code = 5
    field = Field(
        name="after_ack",
        form=Form.TEXT,
        doc="AFTER_ACK: id of a schedule of the same tenant; once, when the next of its fires is"
        " acknowledged.",
        header="belfry-after-ack",
        also=("after-acknowledgement", "depends-on"),
        flag="--after-ack",
        metavar="ID",
        help="Once, when the next fire of this schedule is acknowledged.",
        argument="after_ack",
        check=awaited_problem,
    )
    examples = ({"after_ack": "b", "latest_at": 1_800_000_600_000},)

    def own(self, request: Request) -> str | None:
        """The schedule's id; a preview may have none."""
        fields: dict[str, str] = dict(request)  # type: ignore[arg-type]
        return fields.get("schedule_id")

    def words(self, request: Request) -> str:
        """Whom it waits for."""
        whom = f"Once, after the acknowledgement of {request['after_ack']}"
        return whom + self.behind(request)


class AfterGroup(Depending):
    """Due when all of a group have fired and are acknowledged."""

    name = "AFTER_GROUP"
    code = 6
    field = Field(
        name="after_group",
        form=Form.TEXT,
        doc="AFTER_GROUP: name of a group of the same tenant; once, when none of its one-shots"
        " waits and none of its fires is to be acknowledged.",
        header="belfry-after-group",
        also=("after-all-of", "after-group-ack"),
        flag="--after-group",
        metavar="GROUP",
        help="Once, when all of this group have fired and are acknowledged.",
        argument="after_group",
        check=awaited_problem,
    )
    examples = ({"after_group": "b", "latest_at": 1_800_000_600_000},)

    def own(self, request: Request) -> str | None:
        """The schedule's own group."""
        return request["group"]

    def words(self, request: Request) -> str:
        """Whom it waits for."""
        whom = f"Once, when all of group {request['after_group']} are acknowledged"
        return whom + self.behind(request)


def dependence_problem(request: Request) -> Rejection | None:
    """Why fields of a wait for an acknowledgement are not allowed beside the kind, or None."""
    if request["ack_delay_ms"] is request["latest_at"] is None:
        return None
    for name in ("ack_delay_ms", "latest_at"):
        if request[name] is not None and request["kind"] not in DEPENDING:
            return _bad(
                f"{name} is set, and kind {request['kind']} waits for no acknowledgement: leave it"
                f" empty, or use kind {' or '.join(DEPENDING)}."
            )
    return None


def _bad(reason: str) -> Rejection:
    return Rejection("bad_after_ack", reason)


AFTER_ACK: Final = AfterAck()
AFTER_GROUP: Final = AfterGroup()
DEPENDING: Final = (AFTER_ACK.name, AFTER_GROUP.name)
