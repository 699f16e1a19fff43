"""The client for asyncio: the same calls, to be awaited.

    async with AsyncClient("localhost:9092") as belfry:
        await belfry.schedule("shop", "hello", in_="5s", payload="hello")
        async for event in belfry.events("shop"):
            ...

Kafka's client is made of threads, so each call waits in one of this client's own threads and the
event loop goes on.  `at_once` calls wait at the same time; more queue up.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from belfry.client.bulk import BulkCount, BulkJob, BulkOptions, BulkStart
from belfry.client.calendars import CalendarOptions, TenantCalendar
from belfry.client.calls import Client
from belfry.client.fired_record import FiredRecord
from belfry.client.options import Change, Definition, Instant
from belfry.client.redrive_source import RedriveCount, RedriveOptions
from belfry.client.refired import RefireRange
from belfry.client.scheduled import AckLock, Filters, Scheduled
from belfry.client.verdict import Verdict

AT_ONCE: Final = 64
POLL_S: Final = 0.2
_T = TypeVar("_T")


class AsyncClient:
    """`belfry.client.Client` for asyncio; it takes the same arguments, and `at_once`."""

    def __init__(self, bootstrap_servers: str, *, at_once: int = AT_ONCE, **options: Any) -> None:
        self._client = Client(bootstrap_servers, **options)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="belfry-client")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give threads and connections back."""
        await self._in_thread(self._client.close)
        self._threads.shutdown(wait=False)

    async def schedule(
        self, tenant: str, schedule_id: str, **definition: Unpack[Definition]
    ) -> Verdict:
        """Create a schedule, or replace its content: ACCEPTED, UPDATED or UNCHANGED."""
        return await self._in_thread(self._client.schedule, tenant, schedule_id, **definition)

    async def cancel(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """End a schedule before it fires: CANCELLED; raises `NotFound` or `TooLate`."""
        return await self._in_thread(self._client.cancel, tenant, schedule_id, **options)

    async def trigger(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """Fire once now, besides the schedule's own instants: TRIGGERED."""
        return await self._in_thread(self._client.trigger, tenant, schedule_id, **options)

    async def pause(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """Hold a schedule until it is resumed: PAUSED."""
        return await self._in_thread(self._client.pause, tenant, schedule_id, **options)

    async def resume(self, tenant: str, schedule_id: str, **options: Unpack[Change]) -> Verdict:
        """End a pause: RESUMED."""
        return await self._in_thread(self._client.resume, tenant, schedule_id, **options)

    async def ack(
        self, tenant: str, schedule_id: str, fire_id: str, **options: Unpack[Change]
    ) -> Verdict:
        """Acknowledge a fire, so that the next event behind it goes on: UPDATED, or UNCHANGED."""
        ack = self._client.ack
        return await self._in_thread(ack, tenant, schedule_id, fire_id, **options)

    async def get(self, tenant: str, schedule_id: str, *, last: int = 0) -> Scheduled:
        """A schedule as it stands, with so many of its last fires; raises `NotFound`."""
        return await self._in_thread(self._client.get, tenant, schedule_id, last=last)

    async def list(self, tenant: str, **filters: Unpack[Filters]) -> AsyncIterator[Scheduled]:
        """A tenant's schedules, page by page."""
        found = self._client.list(tenant, **filters)
        while (each := await self._in_thread(next, found, None)) is not None:
            yield each

    async def locks(self, tenant: str) -> AsyncIterator[AckLock]:
        """A tenant's ack locks, page by page."""
        found = self._client.locks(tenant)
        while (each := await self._in_thread(next, found, None)) is not None:
            yield each

    async def bulk_preview(
        self, tenant: str, action: str, **options: Unpack[BulkOptions]
    ) -> BulkCount:
        """How many schedules `bulk` would match now; nothing changes."""
        return await self._in_thread(self._client.bulk_preview, tenant, action, **options)

    async def bulk(self, tenant: str, action: str, **options: Unpack[BulkStart]) -> Verdict:
        """Begin a job on all schedules of a filter: ACCEPTED, with its id as `schedule_id`."""
        return await self._in_thread(self._client.bulk, tenant, action, **options)

    async def stop_job(self, tenant: str, job: str, **options: Unpack[Change]) -> Verdict:
        """Stop a job: CANCELLED; UNCHANGED where it had ended."""
        return await self._in_thread(self._client.stop_job, tenant, job, **options)

    async def job(self, tenant: str, job: str) -> BulkJob | None:
        """A job and its progress; None if there is no such job."""
        return await self._in_thread(self._client.job, tenant, job)

    async def jobs(self, tenant: str) -> builtins.list[BulkJob]:
        """The jobs of a tenant, the newest first."""
        return await self._in_thread(self._client.jobs, tenant)

    async def redrive_preview(
        self, tenant: str, from_: Instant, until: Instant, *, code: str | None = None
    ) -> RedriveCount:
        """Count what `redrive` would send again now; it sends nothing."""
        look = self._client.redrive_preview
        return await self._in_thread(look, tenant, from_, until, code=code)

    async def redrive(
        self, tenant: str, from_: Instant, until: Instant, **how: Any
    ) -> RedriveCount:
        """Send requests again that were refused in a range, each once."""
        return await self._in_thread(self._client.redrive, tenant, from_, until, **how)

    async def refire_preview(self, topic: str, asked: RefireRange) -> RedriveCount:
        """Count what `refire` would send again now; it sends nothing."""
        return await self._in_thread(self._client.refire_preview, topic, asked)

    async def refire(
        self, topic: str, asked: RefireRange, **how: Unpack[RedriveOptions]
    ) -> RedriveCount:
        """Send events of an output topic again, each once under one name."""
        return await self._in_thread(self._client.refire, topic, asked, **how)

    async def set_calendar(
        self, tenant: str, calendar: str, **options: Unpack[CalendarOptions]
    ) -> Verdict:
        """Set the days off of a calendar: ACCEPTED, UPDATED or UNCHANGED."""
        return await self._in_thread(self._client.set_calendar, tenant, calendar, **options)

    async def remove_calendar(
        self, tenant: str, calendar: str, **options: Unpack[Change]
    ) -> Verdict:
        """Forget a calendar: CANCELLED; raises `NotFound`."""
        return await self._in_thread(self._client.remove_calendar, tenant, calendar, **options)

    async def calendar(self, tenant: str, calendar: str) -> TenantCalendar | None:
        """A calendar with its days; None if there is no such calendar."""
        return await self._in_thread(self._client.calendar, tenant, calendar)

    async def calendars(self, tenant: str) -> builtins.list[TenantCalendar]:
        """The calendars of a tenant, by name."""
        return await self._in_thread(self._client.calendars, tenant)

    async def events(
        self,
        tenant: str,
        *,
        from_beginning: bool = False,
        group: str | None = None,
        shared: bool = False,
    ) -> AsyncIterator[FiredRecord]:
        """Events of a tenant as they fire, from the first `anext` on."""
        open_ = partial(
            self._client.events, from_beginning=from_beginning, group=group, shared=shared
        )
        events = await self._in_thread(open_, tenant)
        try:
            while True:
                event = await self._in_thread(events.next_within, POLL_S)
                if event is not None:
                    yield event
        finally:
            events.close()

    async def _in_thread(self, call: Callable[..., _T], *given: Any, **named: Any) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(call, *given, **named))
