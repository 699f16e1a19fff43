"""The verdict on one request: the `LifecycleEvent` that answers it, as a value.

Each request has exactly one verdict. Its `outcome` says what was done; its `code` says for programs
why a request was refused; `reason` says the same to people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from belfry.schedules.identity import etag_of
from belfry.schedules.outcomes import Outcome
from belfry.wire.quick_verdicts import QuickVerdict

# The names here of the fields of a `QuickVerdict`, in its order.
_QUICK: Final = (
    *("tenant", "schedule_id", "outcome", "request_id", "version", "at_ms", "due_ms"),
    *("source_topic", "source_partition", "source_offset"),
)


@dataclass(frozen=True)
class Verdict:
    """The answer to one request; instants in epoch milliseconds.

    `outcome` is None if the caller did not wait.  `due_ms` is the next due instant, and source
    topic, partition and offset are where the request lies in Kafka.
    """

    tenant: str
    schedule_id: str
    outcome: Outcome | None
    request_id: str | None = None
    fire_id: str | None = None
    # Counts the changes of one generation of the schedule, from 1 on.
    version: int | None = None
    # When the worker decided.
    at_ms: int | None = None
    due_ms: int | None = None
    code: str | None = None
    reason: str | None = None
    source_topic: str | None = None
    source_partition: int | None = None
    source_offset: int | None = None
    # Which life of the schedule; a schedule that ended and was begun anew has another.
    generation: int | None = None

    @property
    def etag(self) -> str | None:
        """What names this version of this schedule and of none after it: ``generation.version``."""
        return etag_of(self.generation, self.version)

    @property
    def name(self) -> str:
        """``tenant/schedule_id``."""
        return f"{self.tenant}/{self.schedule_id}"

    @classmethod
    def from_record(cls, record: dict[str, Any], generation: int | None = None) -> Self:
        """The verdict in a decoded `LifecycleEvent` (instants as epoch milliseconds).

        `generation` is that of the record's headers.
        """
        return cls.made(
            tenant=record["tenant"],
            schedule_id=record["schedule_id"],
            outcome=Outcome(record["outcome"]),
            request_id=record["request_id"],
            fire_id=record["fire_id"],
            version=record["version"],
            at_ms=record["at"],
            due_ms=record["due_at"],
            code=record["code"],
            reason=record["reason"],
            source_topic=record["source_topic"],
            source_partition=record["source_partition"],
            source_offset=record["source_offset"],
            generation=generation,
        )

    @classmethod
    def from_quick(cls, quick: QuickVerdict, generation: int | None = None) -> Self:
        """The same of an event that was taken apart by hand."""
        found = cls.__new__(cls)
        fields = found.__dict__
        fields.update(zip(_QUICK, quick, strict=True))
        fields["generation"] = generation
        return found

    @classmethod
    def made(cls, **fields: Any) -> Self:
        """A verdict with these fields, which are not checked.

        The constructor of a frozen class sets each of its 14 fields by a call: a sixth of what a
        restored schedule cost. Fields that are not given are those of the class, their defaults.
        """
        found = cls.__new__(cls)
        found.__dict__.update(fields)
        return found
