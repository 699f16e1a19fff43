"""Answers about statistics, summed up from the counts of all workers.

    worker W1      records it follows       09:00  requests 120, fires 0      the level is FAILURES
                   what it fired itself     09:00  fires 70, within_1s 69
    worker W2      what it fired itself     09:00  fires 40, within_1s 40
    the answer                              09:00  requests 120, fires 110, share_within_1s 0.9909

Fires are records at the level ALL alone, and workers' own counts are lost with a worker that is
killed (its last seconds) or with its disk. Neither count is too high, so the larger one is taken,
hour by hour. Below ALL an hour has shares if each worker has counted it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, Field

from belfry.api.json.shapes import moment
from belfry.history import counters
from belfry.history.fire_rows import LAST_HOUR
from belfry.history.layout import HOUR_MS
from belfry.schedules.outcomes import Outcome
from belfry.tenants.effective import WRITTEN, Level

_FIRES: Final = counters.NAMES.index("fires")
_IN_TIME: Final = counters.NAMES.index("within_1s")
# The last hour that RFC 3339 can write, 9999-12-31T23:00:00.000Z: none is counted as a whole yet.
NO_HOUR_YET: Final = 70_389_527
_SHARES: Final = "null where nothing came of it, and for hours that were not counted as a whole."


class CountersAnswer(BaseModel):
    """The counts; the shares are null if there is nothing to divide by.

    Below the level ALL they are null as well for hours before `fires_since`.
    """

    # All requests that had a verdict, and those that were accepted.
    requests: int
    accepted: int
    fires: int
    # Fires at most a second behind their due instants.
    within_1s: int
    missed: int
    completed: int
    # Below the level ALL those alone that took more than one attempt.
    delivered: int
    failed: int
    retries: int = Field(
        description="Attempts beyond the first of deliveries that ended, at every level."
    )
    success_rate: float | None = Field(description=f"Fires among all that came due; {_SHARES}")
    share_within_1s: float | None = Field(description=f"Fires at most a second late; {_SHARES}")


class HourAnswer(CountersAnswer):
    """The same for an hour."""

    # The instant at which the hour begins, in UTC.
    hour: str


class StatisticsAnswer(CountersAnswer):
    """Sums over whole hours, and the hours; the shares of all are those of hours that have them."""

    lifecycle: str = Field(
        description="The tenant's level now: requests without an id are counted where it is ALL or"
        " OUTCOMES, and all deliveries where it is ALL. Fires are counted at every level."
    )
    fires_since: str | None = Field(
        description="From when on each worker that answers has counted its fires; null where it is"
        " all hours, and 9999-12-31T23:00:00.000Z where it is none yet, as amid an upgrade."
    )
    hours: list[HourAnswer]


@dataclass(slots=True)
class _Hour:
    """One hour of all workers."""

    records: list[int] = field(default_factory=counters.empty)
    fires: int = 0
    in_time: int = 0
    retries: int = 0

    def whole(self) -> list[int]:
        """Counters with the larger number of fires."""
        found = self.records.copy()
        if self.fires > found[_FIRES]:
            found[_FIRES], found[_IN_TIME] = self.fires, self.in_time
        return found


def summed(answers: Iterable[dict[str, Any]], level: Level) -> dict[str, Any]:
    """Counters of several workers as one answer.

    A worker may have answered more than once, for other partitions; its fires count once.
    """
    hours: dict[int, _Hour] = {}
    seen: set[str] = set()
    first_hour = 0
    for answer in answers:
        for hour_ms, counted in answer["hours"]:
            counters.add(hours.setdefault(hour_ms, _Hour()).records, counted)
        for hour_ms, more in answer.get("retries", ()):
            hours.setdefault(hour_ms, _Hour()).retries += more
        # A worker of an earlier release counts no fires.
        first_hour = max(first_hour, answer.get("fires_since", LAST_HOUR))
        if (worker := answer.get("worker", "")) in seen:
            continue
        seen.add(worker)
        for hour, fires, in_time in answer.get("fires", ()):
            found = hours.setdefault(hour * HOUR_MS, _Hour())
            found.fires, found.in_time = found.fires + fires, found.in_time + in_time
    return _told(hours, first_hour, level)


def _told(hours: dict[int, _Hour], first_hour: int, level: Level) -> dict[str, Any]:
    all_told = Outcome.FIRED in WRITTEN[level]
    total, of_shares = counters.empty(), counters.empty()
    listed = []
    for hour_ms, each in sorted(hours.items()):
        counted, shares = each.whole(), all_told or hour_ms >= first_hour * HOUR_MS
        counters.add(total, counted)
        counters.add(of_shares, counted if shares else counters.empty())
        row = counters.shown(counted, fires_told=shares)
        listed.append({"hour": moment(hour_ms), **row, "retries": each.retries})
    shown = counters.shown(of_shares, fires_told=True)
    counts = dict(zip(counters.NAMES, total, strict=True))
    since = None if all_told or not first_hour else moment(min(first_hour, NO_HOUR_YET) * HOUR_MS)
    return {
        **shown,
        **counts,
        "retries": sum(each.retries for each in hours.values()),
        "lifecycle": level,
        "fires_since": since,
        "hours": listed,
    }
