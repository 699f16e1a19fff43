"""Shapes of answers on tenants: their figures, and why their events wait.

They are in two answers: the list of tenants, which adds up what several workers tell, and
readiness, which shows the most urgent waits of one worker. So they are apart from both.

    W1 tells of shop    pending 30, fired 7, waits: rate, since 10:00
    W2 tells of shop    pending 12, fired 1, waits: output_topic, since 10:05
    together            pending 42, fired 8, waits: output_topic, which is the more urgent one
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import BaseModel, Field

from belfry.api.json.shapes import moment
from belfry.engine.tenant_figures import TenantFigures
from belfry.tenants.waits import BLOCKING, Wait

# Waits that readiness shows: an orchestrator asks often, and a page needs no more.
MOST_WAITS: Final = 20


class WaitAnswer(BaseModel):
    """Why the events of a tenant wait."""

    tenant: str
    waiting_for: str = Field(
        description="`tenant_blocked`, `tenant_queue`, `ack_lock`, `catch_up`, `later_release`"
        " or `day_file`."
    )
    cause: str = Field(
        description="Why, more closely: `output_topic`, `paused` or `not_served` of a blocked one;"
        " `rate`, `priority` or `queue`; else as `waiting_for`."
    )
    reason: str = Field(description="The same in words.")
    since: str | None = Field(
        description="When the partition's owner has first seen it so; of an ack lock, when the fire"
        " left that is awaited."
    )
    waiting: int = Field(description="Events that are due and wait; counted up to 100 in places.")
    oldest_due_at: str | None = Field(description="Null if no event is due yet.")

    @classmethod
    def of(cls, tenant: str, wait: Wait) -> WaitAnswer:
        """The answer that shows why a tenant waits."""
        waiting_for, cause, reason = wait.why
        return cls(
            tenant=tenant,
            waiting_for=waiting_for,
            cause=cause,
            reason=reason,
            since=moment(wait.since_ms),
            waiting=wait.waiting,
            oldest_due_at=moment(wait.oldest_due_ms),
        )


class TenantAnswer(BaseModel):
    """A tenant, with its figures; counts are since the owners of its partitions began."""

    tenant: str
    has_policy: bool
    pending: int = Field(description="Schedules that wait for their next due instant.")
    # Occurrences that fired, and requests that were rejected.
    fired: int
    rejected: int
    late_seconds: float = Field(description="Sum of the lateness of fired events.")
    wait: WaitAnswer | None = Field(description="Why its events wait; null where they do not.")

    @classmethod
    def of(cls, tenant: str, figures: TenantFigures, *, has_policy: bool) -> TenantAnswer:
        """The answer that shows a tenant."""
        return cls(
            tenant=tenant,
            has_policy=has_policy,
            pending=figures.pending,
            fired=figures.fired,
            rejected=figures.rejected,
            late_seconds=figures.late_ms / 1000,
            wait=None if figures.wait is None else WaitAnswer.of(tenant, figures.wait),
        )

    def with_those_of(self, other: TenantAnswer) -> TenantAnswer:
        """The same of a tenant that lives on two workers: figures add up, the more urgent wait is
        shown.
        """
        waits = [each for each in (self.wait, other.wait) if each is not None]
        return TenantAnswer(
            tenant=self.tenant,
            has_policy=self.has_policy or other.has_policy,
            pending=self.pending + other.pending,
            fired=self.fired + other.fired,
            rejected=self.rejected + other.rejected,
            late_seconds=self.late_seconds + other.late_seconds,
            wait=min(waits, key=urgency, default=None),
        )


def urgency(wait: WaitAnswer) -> tuple[bool, str, str]:
    """Sort key: blocked tenants come first, then those with the longest overdue events.

    Instants are texts of one format, so they sort by time; "~" stands behind all of them.
    """
    return wait.cause not in BLOCKING, wait.oldest_due_at or "~", wait.since or "~"


def worst_waits(figures: Mapping[str, TenantFigures]) -> list[WaitAnswer]:
    """The tenants of a worker whose events wait, the most urgent first."""
    found: Iterable[WaitAnswer] = (
        WaitAnswer.of(name, each.wait) for name, each in figures.items() if each.wait is not None
    )
    return sorted(found, key=urgency)[:MOST_WAITS]
