"""The verdict on one request: the `LifecycleEvent` that answers it, as a value.

Each request has exactly one verdict. Its `outcome` says what was done; its `code` says for programs
why a request was refused; `reason` says the same to people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from belfry.schedules.identity import etag_of
from belfry.schedules.outcomes import Outcome


@dataclass(frozen=True, slots=True)
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
        same = (
            "tenant schedule_id request_id fire_id version code reason"
            " source_topic source_partition source_offset"
        )
        return cls(
            outcome=Outcome(record["outcome"]),
            at_ms=record["at"],
            due_ms=record["due_at"],
            generation=generation,
            **{name: record[name] for name in same.split()},
        )
