"""Bulk jobs as JSON: the body that asks for one, and the answers that show them.

A job works in each partition of its tenant, and each tells of its own part. `merged` puts the parts
together: counts add up, and a job has ended once it has in all partitions.

    partition 2    RUNNING   matched 300   done 280   refused 20   ended: no
    partition 5    DONE      matched 280   done 280   refused 0    ended: 12:00:09
    the job        RUNNING   matched 580   done 560   refused 20   ended_partitions: 1 of 2

A part may be missing: its partition has not read the request yet, or has forgotten the job, a week
after it ended there. Each part says in how many partitions the job works, and the job's age tells
the two cases apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints

from belfry.api.json.shapes import moment
from belfry.api.json.values import MOST_MS, Instant, RequestId, Strict, Text
from belfry.schedules.bulk import MOST_PER_SECOND, PER_SECOND, BulkSpec, read_bulk
from belfry.schedules.rejections import Rejection
from belfry.store.layout.jobs import DONE, KEPT_MS, RUNNING, STOPPED, JobRow

Action = Literal["CANCEL", "PAUSE", "RESUME", "MOVE", "TRIGGER", "BACKFILL", "REKEY"]
# Counts that are the sums of all partitions' parts.
COUNTS = ("examined", "matched", "done", "unchanged", "refused", "fired")

# Fields of a backfill's range.
RANGE = ("range_from", "range_until")


class JobBody(Strict):
    """What a job does with which schedules; without a filter, with all pending ones."""

    job: Text | None = Field(None, description="Id of the job; without one it gets a new one.")
    action: Action
    schedule_id: Text | None = Field(None, description="This schedule alone.")
    prefix: Annotated[str, StringConstraints(max_length=255)] = Field(
        "", description="Beginning of the ids."
    )
    group: Text | None = None
    event_type: Text | None = None
    due_from: Instant | None = Field(None, description="First due instant.")
    due_until: Instant | None = Field(None, description="Due before this instant.")
    state: Literal["PENDING", "PAUSED"] | None = Field(None, description="Null: both.")
    move_ms: Annotated[int, Field(ge=-MOST_MS, le=MOST_MS)] | None = Field(
        None, description="MOVE: by how much later; earlier where it is negative."
    )
    range_from: Instant | None = Field(None, description="BACKFILL: occurrences then or later.")
    range_until: Instant | None = Field(None, description="BACKFILL: occurrences before then.")
    key: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        None,
        description="REKEY: id of the key that is to encrypt, as a look with dry=true tells it;"
        " the newest of the worker that is asked unless given.",
    )
    per_second: int = Field(
        PER_SECOND,
        ge=1,
        le=MOST_PER_SECOND,
        description="Schedules a second, of all partitions; occurrences for a BACKFILL.",
    )
    reason: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        None, description="Why; it stands in each outcome."
    )
    request_id: RequestId = None

    def spec(self) -> BulkSpec:
        """The same as the request holds it."""
        return BulkSpec(**self.model_dump(exclude={"job", "reason", "request_id"}))


class PreviewJobAnswer(BaseModel):
    """How many schedules a job would match; add the pages up."""

    matched: int
    sample: list[str] = Field(description="Ids of the first of them.")
    examined: int = Field(description="Rows of the tenant that were looked at.")
    cursor: str | None = Field(description="Give it back for the next page; null at the end.")
    occurrences: int | None = Field(None, description="BACKFILL: how many would fire.")
    first: str | None = Field(None, description="The first of them.")
    last: str | None = Field(None, description="The last of them.")
    key: str | None = Field(
        None, description="REKEY: id of the new key; schedules under any other key match."
    )
    sealed_elsewhere: int | None = Field(
        None,
        description="REKEY: how many fit the filter whose payload lies elsewhere, encrypted. It"
        " keeps the key that it was stored with, whatever a job does.",
    )


class JobAnswer(BaseModel):
    """A job, and how far it has come."""

    tenant: str
    job: str
    state: str = Field(description="RUNNING, DONE or STOPPED.")
    action: str
    filter: dict[str, Any]
    move_ms: int | None
    range_from: str | None
    range_until: str | None
    key: str | None = Field(description="REKEY: id of the key that is to encrypt.")
    per_second: int
    reason: str | None
    begun_at: str
    ended_at: str | None
    partitions: int = Field(description="In how many partitions it works.")
    ended_partitions: int = Field(description="In how many of them it has ended.")
    examined: int = Field(description="Names that it has looked at.")
    matched: int = Field(description="Schedules that fitted the filter; the sum of the next three.")
    # Schedules that were changed as asked for.
    done: int
    unchanged: int = Field(description="Schedules that were already as asked for.")
    refused: int
    fired: int = Field(description="BACKFILL: occurrences that it has fired.")
    refusals: dict[str, int] = Field(description="The codes of refusals.")


class JobsAnswer(BaseModel):
    """The jobs of a tenant, the newest first."""

    jobs: list[JobAnswer]


def part(job: str, row: JobRow) -> dict[str, Any]:
    """One partition's facts on a job; they travel to the worker that was asked."""
    return {**row._asdict(), "job": job, "matched": row.matched}


def merged(tenant: str, parts: Sequence[dict[str, Any]], now_ms: int) -> dict[str, Any]:
    """A job of which each partition has told its part.

    A part that is missing has not begun yet, or was forgotten, a week after it ended. `parts` are
    those of `part`, at least one, and `now_ms` is the clock in epoch ms.
    """
    first = parts[0]
    begun_ms, ends = min(each["begun_ms"] for each in parts), [each["ended_ms"] for each in parts]
    ended = [each for each in ends if each is not None]
    # All parts have ended and none is missing, or the job is so old that missing ones are
    # forgotten.
    whole = len(ended) == len(parts) and (
        len(parts) >= first["homes"] or now_ms - begun_ms >= KEPT_MS
    )
    stopped = any(each["state"] == STOPPED for each in parts)
    spec = read_bulk(first["spec"])
    refusals: dict[str, int] = {}
    for each in parts:
        for code, count in each["refusals"].items():
            refusals[code] = refusals.get(code, 0) + count
    return {
        "tenant": tenant,
        "job": first["job"],
        "state": (STOPPED if stopped else DONE) if whole else RUNNING,
        **_asked(spec),
        "reason": first["reason"],
        "begun_at": moment(begun_ms),
        "ended_at": moment(max(ended)) if whole else None,
        "partitions": first["homes"],
        "ended_partitions": len(ended),
        **{name: sum(each[name] for each in parts) for name in COUNTS},
        "refusals": refusals,
    }


def _asked(spec: BulkSpec | Rejection) -> dict[str, Any]:
    """The request for a job; a later release may have begun one that is not read here.

    Only the parts of the filter that were given are shown, so `{}` is a job on all that wait.
    """
    if isinstance(spec, Rejection):
        nothing = dict.fromkeys(("move_ms", "key", *RANGE))
        return {"action": "UNKNOWN", "filter": {}, "per_second": 0, **nothing}
    texts = ("schedule_id", "prefix", "group", "event_type", "state")
    said: dict[str, Any] = {name: getattr(spec, name) for name in texts if getattr(spec, name)}
    for name in ("due_from", "due_until"):
        if getattr(spec, name) is not None:
            said[name] = moment(getattr(spec, name))
    return {
        "action": spec.action,
        "filter": said,
        "move_ms": spec.move_ms,
        "key": spec.key,
        "per_second": spec.per_second,
        **{name: _moment(getattr(spec, name)) for name in RANGE},
    }


def _moment(ms: int | None) -> str | None:
    """An instant as JSON has it; null for none."""
    return None if ms is None else moment(ms)
