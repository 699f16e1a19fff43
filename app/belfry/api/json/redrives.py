"""Redrive as JSON: which records are sent again, and the result for one slice of them.

{"what": "rejected", "range_from": "2026-12-01T00:00:00Z", "code": "too_many_pending"}
─► {"found": 2300, "by": {"too_many_pending": 2300}, "sent": 1000, "left": 1300, …}
"""

from __future__ import annotations

from difflib import get_close_matches
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, StringConstraints

from belfry.api.json.shapes import moment
from belfry.api.json.values import Instant, Strict, Text
from belfry.api.problems import Problem
from belfry.api.workers.kept import RedriveWork
from belfry.client.redrive_source import RedriveCount
from belfry.client.refired import NAME, RefireRange
from belfry.client.refusals import RedriveRange
from belfry.schedules.rejections import CODES

PER_SECOND: Final = 100
MOST_PER_SECOND: Final = 10_000
# Codes, or schedules, that an answer counts apart; the largest ones.
MOST_NAMED: Final = 100
# Fields that do not apply to the other kind.
_OF_FIRES: Final = ("schedule_id", "prefix", "name")


class RedriveBody(Strict):
    """Which records are sent again: of when they were refused, or of when they fired."""

    what: Literal["rejected", "fires"]
    range_from: Instant = Field(description="Refused, or fired, then or later.")
    range_until: Instant | None = Field(None, description="Before then; null: now.")
    code: Text | None = Field(
        None, description="For `rejected`: requests that were refused with this code."
    )
    schedule_id: Text | None = Field(None, description="Of `fires`: this schedule alone.")
    prefix: Annotated[str, StringConstraints(max_length=255)] = Field(
        "", description="Of `fires`: beginning of the ids."
    )
    name: Text = Field(NAME, description="Of `fires`: an event is sent again once under each name.")
    per_second: int = Field(PER_SECOND, ge=1, le=MOST_PER_SECOND)
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        None, description="Why; it stands in the mark of each request, and in the audit log."
    )

    def work(self, tenant: str, now_ms: int, *, dry: bool) -> RedriveWork:
        """The same as a worker carries it out; raises `Problem` for a contradiction.

        `tenant` is ``*`` for refusals of all.
        """
        until_ms = now_ms if self.range_until is None else self.range_until
        if self.range_from >= until_ms:
            raise _wrong(
                f"range_from {moment(self.range_from)} is not before {moment(until_ms)}: give an"
                " earlier one, or a later range_until."
            )
        asked: RedriveRange | RefireRange
        if self.what == "rejected":
            self._check_of_rejected()
            asked = RedriveRange(tenant, self.range_from, until_ms, self.code)
        else:
            if self.code is not None:
                raise _wrong("code is of what=rejected: leave it out, or ask for that.")
            one = self.schedule_id
            asked = RefireRange(self.range_from, until_ms, one, self.prefix, self.name)
        return RedriveWork(asked, tenant, 0 if dry else self.per_second, self.reason)

    def _check_of_rejected(self) -> None:
        """A field or a code that selects nothing would look as if there were nothing to send."""
        given = [name for name in _OF_FIRES if name in self.model_fields_set]
        if given:
            raise _wrong(f"{given[0]} is of what=fires: leave it out, or ask for that.")
        if self.code is not None and self.code not in CODES:
            near = get_close_matches(self.code.lower(), CODES, n=1)
            todo = f"did you mean {near[0]}?" if near else "docs/rejections.md has all codes."
            raise _wrong(f"{self.code[:60]!r} is no code of a refusal: {todo}")


class RedriveAnswer(BaseModel):
    """Counts of the range, and of the sent records: ask the same again until `left` is 0."""

    what: str
    range_from: str
    range_until: str = Field(description="Give it back, so that the range stays the same.")
    found: int = Field(description="How many were to be sent when this was asked.")
    by: dict[str, int] = Field(
        description="How many of these by code of the refusal, or by schedule; the 100 largest."
    )
    kinds: int = Field(description="How many codes, or schedules, these are of.")
    sent: int = Field(description="How many of these were sent; 0 with `dry`.")
    left: int
    redriven: int = Field(description="How many of the range were sent again before.")
    stuck: dict[str, int] = Field(
        description="How many cannot be sent, by why: `cut` or `elsewhere`."
    )


def redrive_json(work: RedriveWork, found: RedriveCount, sent: int) -> dict[str, Any]:
    """The result of a slice."""
    return {
        "what": "fires" if isinstance(work.asked, RefireRange) else "rejected",
        "range_from": moment(work.asked.from_ms),
        "range_until": moment(work.asked.until_ms),
        "found": len(found.places),
        "by": dict(found.codes.most_common(MOST_NAMED)),
        "kinds": len(found.codes),
        "sent": sent,
        "left": len(found.places) - sent,
        "redriven": found.redriven,
        "stuck": dict(found.stuck),
    }


def _wrong(detail: str) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, "bad_redrive")
