"""Hosts of webhooks in answers: silent ones, and those that an operator has broken."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from belfry.api.json.worker_answers import RememberedAnswer, instant
from belfry.api.workers.host_breaks import HostBreak
from belfry.api.workers.view import SilentHostView


class DeliveryHostAnswer(BaseModel):
    """A host that a worker does not post to."""

    host: str = Field(description="Its name, with the port where the address has one.")
    worker_id: str = Field(
        description="The worker that found it silent; for a break, which holds for all, the"
        " asked worker."
    )
    state: Literal["silent", "broken"] = Field(
        description="`silent`: its circuit breaker is open; `broken`: somebody has broken it."
    )
    since: str
    tried_at: str | None = Field(description="The last post, or delivery that was postponed.")
    next_try_at: str | None = Field(
        description="No post is sent before; null if its next delivery is tried."
    )
    reason: str | None = Field(description="The result of the last post; or why it was broken.")
    by: str | None = Field(None, description="The caller that has broken it.")


class DeliveryHostsAnswer(BaseModel):
    """Hosts that are not posted to, by the workers that post."""

    hosts: list[DeliveryHostAnswer]
    workers: list[str] = Field(description="Those that post, and have answered.")
    silent: list[str] = Field(
        default_factory=list, description="Workers of the group that did not answer in time."
    )
    remembered: list[RememberedAnswer] = Field(
        default_factory=list,
        description="Those of them that are shown as they answered before, where `at_once` asks"
        " for it.",
    )


def broken_host(worker: str, each: HostBreak) -> DeliveryHostAnswer:
    """A host that somebody has broken, as this worker tells of it."""
    return DeliveryHostAnswer(
        host=each.host,
        worker_id=worker,
        state="broken",
        since=instant(each.since_ms),
        tried_at=None,
        next_try_at=instant(each.until_ms),
        reason=each.reason,
        by=each.by,
    )


def silent_host(worker: str, each: SilentHostView, now_ms: int) -> DeliveryHostAnswer:
    """A host that this worker has found silent."""
    return DeliveryHostAnswer(
        host=each.host,
        worker_id=worker,
        state="silent",
        since=instant(each.since_ms),
        tried_at=instant(each.tried_ms),
        next_try_at=instant(each.next_ms) if each.next_ms > now_ms else None,
        reason=each.reason or None,
    )
