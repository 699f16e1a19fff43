"""The calls that both the client and `belfry.testing` in memory understand.

Write functions against `Asking`, and they run in production and in tests alike:

    def expire_later(belfry: Asking, order: str) -> None:
        belfry.schedule("shop", f"expire/{order}", in_="30m", payload=order)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import time
from typing import Any, Unpack

from belfry.client.calendars import CalendarOptions, days_text
from belfry.client.errors import NotFound, Rejected
from belfry.client.options import OF_REQUESTS, Change, Definition
from belfry.client.scheduled import AckLock, Filters, Scheduled
from belfry.client.verdict import Verdict
from belfry.schedules.calendars import CALENDAR, CALENDAR_REMOVE
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection


class Asking(ABC):
    """Requests and the verdicts on them; errors are those of `belfry.client.errors`."""

    def schedule(self, tenant: str, schedule_id: str, **definition: Unpack[Definition]) -> Verdict:
        """Create a schedule, or replace its content: ACCEPTED, UPDATED or UNCHANGED.

        See `belfry.client.options.Definition` for the options.
        """
        return self._ask(tenant, schedule_id, definition.get("action", "UPSERT"), definition)

    def cancel(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """End a schedule before it fires: CANCELLED; raises `NotFound` or `TooLate`."""
        return self._ask(tenant, schedule_id, "CANCEL", options)

    def trigger(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """Fire once now, besides the schedule's own instants: TRIGGERED."""
        return self._ask(tenant, schedule_id, "TRIGGER", options)

    def pause(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """Hold a schedule until it is resumed: PAUSED."""
        return self._ask(tenant, schedule_id, "PAUSE", options)

    def resume(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """End a pause: RESUMED."""
        return self._ask(tenant, schedule_id, "RESUME", options)

    def ack(
        self, tenant: str, schedule_id: str, fire_id: str, **options: Unpack[Change]
    ) -> Verdict:
        """Acknowledge a fire, so that the next event behind it goes on: UPDATED.

        UNCHANGED where it is not awaited (any more); raises `NotFound`.
        """
        return self._ask(tenant, schedule_id, "ACK", {**options, "fire_id": fire_id})

    def set_calendar(
        self, tenant: str, calendar: str, **options: Unpack[CalendarOptions]
    ) -> Verdict:
        """Set the days off of a calendar: ACCEPTED, UPDATED or UNCHANGED.

        Pending instants of the schedules that have it follow within seconds.
        """
        given = {name: value for name, value in options.items() if name in OF_REQUESTS}
        given["days_off"] = days_text(options)
        return self._ask(tenant, calendar, CALENDAR, given)

    def remove_calendar(self, tenant: str, calendar: str, **options: Unpack[Change]) -> Verdict:
        """Forget a calendar: CANCELLED; raises `NotFound`.  Its schedules keep its days."""
        return self._ask(tenant, calendar, CALENDAR_REMOVE, options)

    def get(self, tenant: str, schedule_id: str, *, last: int = 0) -> Scheduled:
        """A schedule as it stands, with all that it will send; raises `NotFound`.

        `last` asks for so many of its last fires, up to ten.
        """
        found = self._get(tenant, schedule_id, last)
        if found is None:
            missing = Verdict(tenant, schedule_id, Outcome.NOT_FOUND)
            raise NotFound(
                f"NOT_FOUND {missing.name}: there is no such schedule: it never was, or it was"
                " cancelled.",
                missing,
            )
        return found

    def list(self, tenant: str, **filters: Unpack[Filters]) -> Iterator[Scheduled]:
        """A tenant's schedules, page by page; without payload, key and headers."""
        return self._list(tenant, filters)

    def locks(self, tenant: str) -> Iterator[AckLock]:
        """A tenant's ack locks, page by page: the fires to acknowledge before others go on."""
        return self._locks(tenant)

    @abstractmethod
    def _ask(
        self, tenant: str, schedule_id: str, action: str, options: Mapping[str, Any]
    ) -> Verdict:
        """Carry a request out; raises the error of a refusal."""

    @abstractmethod
    def _get(self, tenant: str, schedule_id: str, last: int) -> Scheduled | None:
        """A schedule as it stands."""

    @abstractmethod
    def _list(self, tenant: str, filters: Filters) -> Iterator[Scheduled]:
        """A tenant's schedules."""

    @abstractmethod
    def _locks(self, tenant: str) -> Iterator[AckLock]:
        """A tenant's ack locks."""


def rejected(verdict: Verdict, found: Rejection) -> Rejected:
    """The error for a request that no worker would take."""
    refused = replace(
        verdict,
        outcome=Outcome.REJECTED,
        at_ms=int(time() * 1000),
        code=found.code,
        reason=found.reason,
    )
    return Rejected(f"REJECTED ({found.code}) {verdict.name}: {found.reason}", refused)
