"""Lifecycle events as histories show them.

A history keeps lifecycle events in their own form (`history/`), so an answer copies them: names are
those of the schema `LifecycleEvent`, instants are RFC 3339, and fields that do not apply are null.
"""

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
    told_partition: int = Field(description="Where its own record lies in the lifecycle topic.")
    told_offset: int


class HistoryAnswer(BaseModel):
    """Some events, oldest first; a page that has looked at 10 000 rows may hold fewer, or none."""

    events: list[EventAnswer]
    cursor: str | None = Field(description="Give it back for the next page; null at the end.")
