"""Lifecycle events as histories show them."""

from __future__ import annotations

from pydantic import BaseModel, Field


class EventAnswer(BaseModel):
    """One lifecycle event, in the names of its schema."""

    tenant: str
    schedule_id: str
    outcome: str
    request_id: str | None
    fire_id: str | None
    version: int | None
    at: str
    due_at: str | None
    code: str | None
    reason: str | None
    target: str | None
    attempt: int | None
    source_topic: str | None
    source_partition: int | None
    source_offset: int | None


class HistoryAnswer(BaseModel):
    """Some events, oldest first; a page that has looked at 10 000 rows may hold fewer, or none."""

    events: list[EventAnswer]
    cursor: str | None = Field(description="Give it back for the next page; null at the end.")
