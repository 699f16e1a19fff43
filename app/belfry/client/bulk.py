"""Bulk jobs as the client shows them: the request for one, its progress, its refusals.

verdict = belfry.bulk("shop", "CANCEL", prefix="order/")
while (job := belfry.job("shop", verdict.schedule_id)) and job.running:
    print(job.done, "of", job.matched, "so far")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

from belfry.client.options import Change, Duration, Instant
from belfry.client.requests import duration_ms, instant_ms
from belfry.client.scheduled import Filters
from belfry.schedules.bulk import PER_SECOND, BulkSpec
from belfry.schedules.instants import parse_instant

_INSTANTS = ("due_from", "due_until", "range_from", "range_until")


class BulkOptions(Filters, total=False):
    """Which schedules a job is about, and how it goes about them."""

    schedule_id: str
    """This schedule alone."""
    range_from: Instant
    """BACKFILL: occurrences then or later."""
    range_until: Instant
    """BACKFILL: occurrences before then."""
    key: str
    """REKEY: id of the key that is to encrypt.  Default: the newest of each worker."""
    move: Duration
    """MOVE: by how much later; earlier where it is negative, as ``-5m``."""
    per_second: int
    """Schedules a second (BACKFILL: occurrences), of all partitions together (500)."""


class BulkStart(BulkOptions, Change, total=False):
    """Options of a job that begins."""

    job: str
    """Id of the job.  Default: a new one, which the verdict has as its `schedule_id`."""


@dataclass(frozen=True, slots=True)
class BulkCount:
    """How many schedules a job would match now, and the ids of the first of them.

    For a BACKFILL also how many occurrences it would fire, and the first and last of all (epoch
    milliseconds).
    """

    matched: int
    sample: list[str]
    occurrences: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    sealed_elsewhere: int = 0

    def with_page(self, page: Mapping[str, Any], shown: int) -> BulkCount:
        """The count with one more page of the API's JSON; `shown` ids at most.

        The first and the last occurrence are those of all pages, for a tenant may live in several
        partitions.
        """
        first, last = (
            None if page.get(name) is None else parse_instant(page[name])
            for name in ("first", "last")
        )
        firsts = [each for each in (self.first_ms, first) if each is not None]
        lasts = [each for each in (self.last_ms, last) if each is not None]
        return BulkCount(
            self.matched + page["matched"],
            [*self.sample, *page["sample"]][:shown],
            self.occurrences + (page.get("occurrences") or 0),
            min(firsts, default=None),
            max(lasts, default=None),
            self.sealed_elsewhere + (page.get("sealed_elsewhere") or 0),
        )


@dataclass(frozen=True, slots=True)
class BulkJob:
    """A job and its progress; instants in epoch milliseconds, `fields` is all that was answered.

    Of the `matched` schedules `done` were changed, `unchanged` were so already, and `refused` could
    not be; `refusals` has their codes.  A BACKFILL has `fired` so many occurrences.
    """

    tenant: str
    job: str
    state: str
    action: str
    examined: int
    matched: int
    done: int
    unchanged: int
    refused: int
    begun_ms: int
    fired: int = 0
    ended_ms: int | None = None
    refusals: Mapping[str, int] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.state == "RUNNING"

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """A job in the API's JSON."""
        same = ("tenant", "job", "state", "action", "examined", "matched", "done", "unchanged")
        ended = found["ended_at"]
        return cls(
            **{name: found[name] for name in same},
            refused=found["refused"],
            fired=found.get("fired", 0),
            begun_ms=parse_instant(found["begun_at"]),
            ended_ms=None if ended is None else parse_instant(ended),
            refusals=found["refusals"],
            fields=found,
        )


def spec_of(action: str, options: Mapping[str, Any]) -> BulkSpec:
    """The request for a job, from an action in any case and the options of `BulkOptions`.

    Instants and durations become milliseconds. Raises ValueError for a value that is neither.
    """
    said: dict[str, Any] = {
        name: value
        for name in ("schedule_id", "prefix", "group", "event_type", "state", "key", *_INSTANTS)
        if (value := options.get(name)) is not None
    }
    for name in _INSTANTS:
        if name in said:
            said[name] = instant_ms(said[name])
    if options.get("move") is not None:
        said["move_ms"] = signed_ms(options["move"])
    return BulkSpec(action=action.upper(), per_second=options.get("per_second", PER_SECOND), **said)


def signed_ms(duration: Duration) -> int:
    """Milliseconds of a duration that may be negative, such as ``-5m``."""
    if isinstance(duration, str) and duration.startswith("-"):
        return -duration_ms(duration[1:])
    if isinstance(duration, timedelta) and duration < timedelta(0):
        return -duration_ms(-duration)
    return duration_ms(duration)
