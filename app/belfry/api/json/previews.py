"""Previews as JSON: the body that asks for one, and the answer.

A preview takes a rule as a schedule's body has it, and computes without a store
(`schedules/preview.py`). Nothing is written.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from belfry.api.json.bodies import Text, TriggerBody
from belfry.api.json.shapes import moment
from belfry.schedules.preview import Preview


class PreviewBody(TriggerBody):
    """A rule, and how much of it to show."""

    tenant: Text | None = Field(
        None, description="Whose schedule it is to be: H and `calendar` depend on it."
    )
    schedule_id: Text | None = Field(None, description="Which one: H depends on it.")
    count: int = Field(10, ge=1, le=1000, description="Instants to show.")
    shown_in: Text | None = Field(
        None, description="IANA zone of the local times; that of `cron` where it has one; UTC."
    )


class OccurrenceAnswer(BaseModel):
    """One instant of a rule."""

    occurrence: int
    scheduled_at: str
    local: str


class WarningAnswer(BaseModel):
    """Something to know before asking for the rule."""

    code: str
    text: str


class PreviewAnswer(BaseModel):
    """A rule in words, its next instants, and what to know about them."""

    words: str
    timezone: str
    occurrences: list[OccurrenceAnswer]
    warnings: list[WarningAnswer]


def shown(found: Preview) -> dict[str, Any]:
    """A preview as it is answered."""
    return {
        "words": found.words,
        "timezone": found.timezone,
        "occurrences": [
            {
                "occurrence": each.number,
                "scheduled_at": moment(each.scheduled_ms),
                "local": each.local,
            }
            for each in found.occurrences
        ],
        "warnings": [{"code": each.code, "text": each.text} for each in found.warnings],
    }
