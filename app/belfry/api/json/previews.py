"""Previews as JSON: the body that asks for one, and the answer.

A preview takes a rule as a schedule's body has it, and computes without a store
(`schedules/preview.py`). Nothing is written.

    {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin", "count": 2}
    ─► words, and 2026-12-01T08:00:00.000Z, local 2026-12-01T09:00:00.000+01:00, …

Fewer instants than `count` are an answer, too: the rule ends, or the time of a preview was used up.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from belfry.api.json.shapes import moment
from belfry.api.json.triggers import TriggerBody
from belfry.api.json.values import Text
from belfry.schedules.preview import Preview


class PreviewBody(TriggerBody):
    """A rule, and how much of it to show."""

    tenant: Text | None = Field(
        None, description="Tenant of the future schedule: H and `calendar` depend on it."
    )
    schedule_id: Text | None = Field(None, description="Which one: H depends on it.")
    count: int = Field(10, ge=1, le=1000, description="Instants to show.")
    shown_in: Text | None = Field(
        None, description="IANA zone of the local times; that of `cron` where it has one; UTC."
    )


class OccurrenceAnswer(BaseModel):
    """One instant of a rule."""

    # Its number, from 0 on.
    occurrence: int
    scheduled_at: str
    # The same instant in the zone that is shown, with its offset.
    local: str


class WarningAnswer(BaseModel):
    """Something to know before asking for the rule."""

    code: str
    text: str


class PreviewAnswer(BaseModel):
    """A rule in words, its next instants, and remarks on them."""

    words: str
    timezone: str
    occurrences: list[OccurrenceAnswer]
    warnings: list[WarningAnswer]


def shown(found: Preview) -> dict[str, Any]:
    """A preview as it is answered: plain values in the shape of `PreviewAnswer`."""
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
