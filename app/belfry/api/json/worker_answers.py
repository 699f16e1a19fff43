"""Shapes of the JSON answers on health and on workers' partitions; `/openapi.json` documents them.

Instants are RFC 3339 in UTC with milliseconds, durations are seconds.

Health and the cluster are shown to callers who are bound to some tenants as well, and counts would
tell them of others' load. So such a caller gets the same shape with nulls (`without_counts`):

    bound to *          {"partition": 3, "state": "firing", "pending": 120000, "position": 4711, …}
    bound to shop.*     {"partition": 3, "state": "firing", "pending": null, "position": null, …}

Each model has an `of`, which makes it of a value of `api/workers/view.py`. The docstrings of
models, and the descriptions of their fields, are the text of the OpenAPI document; so notes for
developers stand in comments.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from belfry.api.json.tenant_answers import WaitAnswer
from belfry.api.workers.view import PartitionView, Readiness


def instant(epoch_ms: int) -> str:
    """RFC 3339 of an instant in epoch ms: ``2026-12-01T09:00:00.000Z``."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RememberedAnswer(BaseModel):
    """A worker that is late, and is shown as it answered before."""

    worker_id: str
    at: str = Field(description="The instant of the answer that is shown.")


class PartitionAnswer(BaseModel):
    """One partition that this worker owns."""

    partition: int
    state: str = Field(description="State of ownership, such as `recovering` or `firing`.")
    missing: str | None = Field(description="Why it does not fire yet; null when it fires.")
    pending: int | None = Field(
        description="Schedules that wait for their next due instant; null, as all that follows is,"
        " for a caller who is not bound to all tenants."
    )
    position: int | None = Field(description="Offset of the next request that has no verdict yet.")
    ingest_lag_records: int | None = Field(
        description="Requests in the log that have no verdict yet."
    )
    oldest_due_at: str | None = Field(
        description="Earliest due instant that has not fired, whatever its schedule waits for."
    )
    waiting_for: str | None = Field(
        description="What that one waits for: `firing`, `tenant_queue`, `tenant_blocked`,"
        " `catch_up`, `ack_lock`, `later_release` or `day_file`."
    )

    @classmethod
    def of(cls, view: PartitionView) -> PartitionAnswer:
        """The answer that shows a partition.

        `oldest_due_at` and `waiting_for` are those of the earliest due instant among all that is
        waited for.
        """
        # By the cause of the wait, such as `firing`; empty if no event is due.
        due_ms = view.oldest_due_ms
        waiting_for = min(due_ms, key=due_ms.__getitem__, default=None)
        return cls(
            partition=view.partition,
            state=view.state,
            missing=view.missing,
            pending=view.pending,
            position=view.position,
            ingest_lag_records=view.ingest_lag_records,
            oldest_due_at=None if waiting_for is None else instant(due_ms[waiting_for]),
            waiting_for=waiting_for,
        )

    @classmethod
    def without_counts(cls, view: PartitionView) -> PartitionAnswer:
        """The same without figures on other tenants' schedules."""
        return cls(
            partition=view.partition,
            state=view.state,
            missing=None,
            pending=None,
            position=None,
            ingest_lag_records=None,
            oldest_due_at=None,
            waiting_for=None,
        )


class HealthAnswer(BaseModel):
    """Answer of `/healthz/live` and `/healthz/startup`."""

    # The same as the status of the answer: true for 200, false for 503.
    ok: bool
    detail: str


class ReadyAnswer(BaseModel):
    """Answer of `/healthz/ready`."""

    ready: bool
    # Sentences for people; a partition's own reason is its `missing`.
    problems: list[str]
    partitions: list[PartitionAnswer]
    warnings: list[str] = Field(
        default_factory=list,
        description="What is wrong although the partitions fire: a disk that is nearly full, a"
        " schema registry or hosts of webhooks that do not answer. Empty for callers who are not"
        " bound to all tenants.",
    )
    tenants_waiting: list[WaitAnswer] | None = Field(
        default=None,
        description="Tenants whose events wait, blocked ones first, 20 at most; a worker is ready"
        " all the same. Null for callers who are not bound to all tenants.",
    )

    @classmethod
    def of(cls, readiness: Readiness, waits: list[WaitAnswer] | None = None) -> ReadyAnswer:
        """The answer that shows the readiness of a worker, and the tenants that wait.

        `waits` are the most urgent ones, None where the caller may not see them.
        """
        return cls(
            tenants_waiting=waits,
            ready=readiness.ready,
            problems=readiness.problems,
            warnings=readiness.warnings,
            partitions=[PartitionAnswer.of(view) for view in readiness.partitions],
        )

    @classmethod
    def without_counts(cls, readiness: Readiness) -> ReadyAnswer:
        """The same for a caller who is bound to some tenants: which partitions, in which state."""
        views = readiness.partitions
        return cls(
            ready=readiness.ready,
            problems=[],
            partitions=[PartitionAnswer.without_counts(view) for view in views],
        )
