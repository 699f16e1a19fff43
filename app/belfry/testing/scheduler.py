"""`MemoryScheduler`: one partition's engine on a map in memory, driven by a held clock.

    schedule(…)  ──► request record ──► engine.accept ──► verdict
    advance("1h") ──► from due instant to due instant: engine.fire_due ──► events ──► handlers

Each event fires at the very instant it is due, however far the clock is moved at once, and what a
handler schedules meanwhile takes its place among the others:

    clock 12:00    schedule("shop", "a", in_="10m"), schedule("shop", "b", in_="30m")
    advance("1h")
      12:10        a fires; its handler schedules c in 5 minutes
      12:15        c fires
      12:30        b fires
    clock 13:00    returns a, c, b

A request is encoded as Avro and decoded again, as on its way through Kafka, so what cannot travel
is refused here too. What needs a worker besides is not here: policies of tenants, HTTP targets,
histories, and a second partition.

Everything runs in the thread of the caller, and nothing is on disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import count
from typing import Any, Final

from belfry.client import requests
from belfry.client.asking import Asking, rejected
from belfry.client.decoding import Decoder
from belfry.client.errors import refusal
from belfry.client.fired_record import FiredRecord
from belfry.client.handlers import Handlers
from belfry.client.options import Duration, Instant
from belfry.client.requests import duration_ms, instant_ms
from belfry.client.scheduled import AckLock, Filters, Scheduled
from belfry.client.verdict import Verdict
from belfry.engine.effects import Effects, Fired
from belfry.engine.job_counts import Budget
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level
from belfry.testing.clock import HeldClock
from belfry.testing.standing import all_of, locks_of, one
from belfry.wire import catalogue, framing
from belfry.wire.accepted import whole
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

START: Final = "2030-01-01T00:00:00Z"
# Rows that one round of a job may look at and change; no partition waits for its turn here.
MUCH: Final = Budget(10_000, 10_000)
# Events of one step of firing; what is left is due at the next step.
CHUNK: Final = 1_000
PREFIX: Final = "belfry."


class MemoryScheduler(Asking):
    """belfry in memory, from an instant on; `delivery` is ``PAYLOAD`` or ``ENVELOPE``.

    It answers like `belfry.client.Client`, and `clock` is in the test's hands. Each object is a
    belfry of its own. It is not for several threads.
    """

    def __init__(self, now: Instant = START, *, delivery: str = "PAYLOAD") -> None:
        self.clock = HeldClock(now)
        self._numbers = count(1)
        self._position = 0
        self._rows = MemoryMap()
        self._fired: dict[str, list[FiredRecord]] = defaultdict(list)
        self._decoder = Decoder("FiredEvent", only=False)
        self._tenants = Tenants(PREFIX + "fired.", Delivery(delivery), Level.FAILURES)
        self._engine = PartitionEngine(
            SourcePartition(PREFIX + "schedules", 0, Homes(1)),
            ScheduleStore(self._rows),
            RequestReader(),
            self._tenants,
        )

    def events(self, tenant: str) -> list[FiredRecord]:
        """What has fired for a tenant so far, in its order."""
        return list(self._fired[tenant])

    def advance(self, duration: Duration, handlers: Handlers | None = None) -> list[FiredRecord]:
        """Let time pass; returns what fires, after each event has been to its handler.

        What a handler raises is raised here, amid the time: the event has fired then, and those
        behind it have not. Events without a handler are returned like the others.
        """
        return self.advance_to(self.clock.now_ms + duration_ms(duration), handlers)

    def advance_to(self, instant: Instant, handlers: Handlers | None = None) -> list[FiredRecord]:
        """Let time pass until an instant; the same otherwise."""
        until_ms = instant_ms(instant)
        fired: list[FiredRecord] = []
        while (due_ms := self._engine.next_due_ms()) is not None and due_ms <= until_ms:
            self.clock.move_to(max(due_ms, self.clock.now_ms))
            events = self._fire()
            fired += events
            _hand_over(events, handlers)
        self.clock.move_to(until_ms)
        return fired

    def _ask(
        self, tenant: str, schedule_id: str, action: str, options: Mapping[str, Any]
    ) -> Verdict:
        """A request through the engine: checked as the client checks it, then taken in, then
        judged.
        """
        request_id = options.get("request_id") or f"request-{next(self._numbers)}"
        given = {**options, "request_id": request_id}
        fields = requests.request(tenant, schedule_id, action, given)
        found = requests.problem(fields, self.clock.now_ms)
        if found is not None:
            raise rejected(Verdict(tenant, schedule_id, None, request_id), found)
        head = framing.single_object("FiredEvent")
        self._tenants.note([(self._tenants.of(tenant), {"envelope_head": head})])
        effects = self._take(fields)
        verdict = next(
            Verdict.from_record(asdict(told), told.generation)
            for told in map(whole, effects.lifecycle)
            if told.request_id == request_id
        )
        refused = refusal(verdict)
        if refused is not None:
            raise refused
        return verdict

    def _get(self, tenant: str, schedule_id: str, last: int) -> Scheduled | None:
        return one(self._rows, tenant, schedule_id, last)

    def _list(self, tenant: str, filters: Filters) -> Iterator[Scheduled]:
        return all_of(self._rows, tenant, filters)

    def _locks(self, tenant: str) -> Iterator[AckLock]:
        return locks_of(self._rows, tenant)

    def _take(self, fields: dict[str, Any]) -> Effects:
        """Let the engine take one request in, as the only record of a batch, and let jobs run to
        their ends.
        """
        value = framing.single_object("ScheduleRequest") + catalogue.encode(
            "ScheduleRequest", fields
        )
        record: SourceRecord = (
            self._position,
            self.clock.now_ms,
            fields["tenant"].encode(),
            value,
            [],
        )
        batch = SourceBatch(self._position, self._position + 1, [record])
        self._position += 1
        effects = self._engine.accept(batch, self.clock.now_ms)
        self._commit(effects)
        while self._engine.jobs.under_way:
            # Schedules follow a calendar that has changed.
            self._commit(self._engine.advance_jobs(self.clock.now_ms, MUCH))
        return effects

    def _fire(self) -> list[FiredRecord]:
        """One step of firing at the clock's instant."""
        effects = self._engine.fire_due(self.clock.now_ms, CHUNK)
        return self._commit(effects)

    def _commit(self, effects: Effects) -> list[FiredRecord]:
        """End a step as a committed transaction does; returns what has fired in it."""
        if effects.empty:
            return []
        self._engine.seal(owner_epoch=1)
        self._engine.committed(self._position, self.clock.now_ms)
        return [self._keep(fired) for fired in effects.fired]

    def _keep(self, fired: Fired) -> FiredRecord:
        """Put a fired record where a reader of its tenant's topic would find it."""
        topic, key, _, value, headers = fired
        tenant = topic.removeprefix(PREFIX + "fired.")
        event = FiredRecord(
            topic=topic,
            partition=0,
            offset=len(self._fired[tenant]),
            timestamp_ms=self.clock.now_ms,
            key=key,
            value=value,
            headers=headers,
            event=None if value is None else self._decoder.record(value, headers),
        )
        self._fired[tenant].append(event)
        return event


def _hand_over(events: list[FiredRecord], handlers: Handlers | None) -> None:
    """Give each event to its handler, in order."""
    for event in events:
        handler = None if handlers is None else handlers.find(event.event_type)
        if handler is not None:
            handler(event)
