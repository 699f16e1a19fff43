"""Verdicts: what became of each request, told where somebody asked for it.

Every request ends in exactly one outcome.  It is always counted; a lifecycle record tells of it
where the request has an id or the tenant's level wants it; a rejected record is kept as received.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.engine.arrival import arrival_ms
from belfry.engine.effects import Effects, Rejected
from belfry.schedules.identity import Homes, generation_of, life_of
from belfry.schedules.outcomes import ID_REUSED, Outcome, repeat_reason, reused_reason
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import PlainRequest, Request
from belfry.schedules.request_digest import digest_of, digest_of_plain
from belfry.schedules.tenant import Tenant
from belfry.store.layout import keys
from belfry.store.layout.records import (
    REQUEST_ID_MS,
    Verdict,
    decode_verdict,
    encode_accepted,
    encode_verdict,
)
from belfry.store.schedules import ScheduleStore
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.origins import believed_origin
from belfry.wire.record import Headers, Origin, SourceRecord, size_of
from belfry.wire.worker_keys import Keys

MAX_REJECTED_BYTES: Final = 900_000
MOST_SHOWN: Final = 255
MOST_REASON: Final = 2000


class Place(NamedTuple):
    """The partition whose requests are taken in, and the homes of all schedules."""

    topic: str
    partition: int
    homes: Homes
    # Of workers that share a secret: what tells where a request that one of them sent on came from.
    origin_keys: Keys = ()


@dataclass(slots=True)
class Answer:
    """What became of a request."""

    outcome: Outcome
    version: int | None = None
    due_ms: int | None = None
    code: str | None = None
    reason: str | None = None
    fire_id: str | None = None
    generation: int | None = None


class Verdicts:
    """Writes verdicts into effects, and remembers those of requests that have an id."""

    def __init__(self, place: Place, store: ScheduleStore) -> None:
        self._place = place
        self._store = store
        # The record that was asked about last: each is asked about several times in a row.
        self._record: SourceRecord | None = None
        self._origin = Origin("", 0, 0, 0, rerouted=False)

    def origin(self, record: SourceRecord) -> Origin:
        """Where a record was first received."""
        if record is not self._record:
            topic, partition, _, keys = self._place
            self._origin = believed_origin(keys, record, topic, partition)
            self._record = record
        return self._origin

    def repeats(
        self,
        record: SourceRecord,
        request: Request,
        instants: tuple[int, int],
        effects: Effects,
    ) -> bool:
        """Whether the request's id was answered in the hour before; `instants`: asked at, now.

        The same request once more is a DUPLICATE, another one a CONFLICT.  The hour is between the
        arrivals of the two, however late they are read.
        """
        asked_ms, now_ms = instants
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        row = self._store.named(name)
        first = None if row is None else decode_verdict(row)
        if first is None or asked_ms - first.at_ms >= REQUEST_ID_MS:
            return False
        answer = Answer(Outcome.DUPLICATE, first.version, first.due_ms, first.outcome)
        if first.digest and first.digest != digest_of(request):
            answer = _reused(request["request_id"] or "", first)
        else:
            answer.reason = repeat_reason(first.outcome, first.code)
            answer.generation = first.generation
        effects.outcomes[answer.outcome] += 1
        effects.lifecycle.append(self._told(record, request, answer, now_ms))
        return True

    def answered(self, tenant: str, request_id: str, asked_ms: int) -> bool:
        """Whether a request of this id was answered here in the hour before this instant."""
        row = self._store.named(keys.request_key(tenant, request_id))
        return row is not None and asked_ms - decode_verdict(row).at_ms < REQUEST_ID_MS

    def conclude(
        self,
        record: SourceRecord,
        request: Request,
        tenant: Tenant,
        answer: Answer,
        now_ms: int,
        effects: Effects,
    ) -> None:
        """Count the outcome of a valid request and tell of it where it is wanted."""
        effects.outcomes[answer.outcome] += 1
        if request["request_id"] is not None:
            came_ms = arrival_ms(self.origin(record).timestamp_ms, now_ms)
            self.remember(request, answer, came_ms)
        elif answer.outcome not in tenant.written:
            return
        effects.lifecycle.append(self._told(record, request, answer, now_ms))

    def reject(
        self,
        record: SourceRecord,
        request: Request | None,
        rejection: Rejection,
        now_ms: int,
        effects: Effects,
    ) -> None:
        """Keep a refused record with its reason; tell of it where it has a tenant or an id."""
        effects.rejected.append(_kept(record, self.origin(record), rejection))
        effects.room -= min(size_of(record), MAX_REJECTED_BYTES)
        effects.outcomes[Outcome.REJECTED] += 1
        effects.rejections[rejection.code] += 1
        if request is None or not (request["tenant"] or request["request_id"] is not None):
            return
        answer = Answer(Outcome.REJECTED, code=rejection.code, reason=rejection.reason)
        effects.lifecycle.append(self._told(record, request, answer, now_ms))

    def remember(self, request: Request, answer: Answer, accepted_ms: int) -> None:
        """Keep the verdict of a request that has an id, for those that repeat it."""
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        row = encode_verdict(
            Verdict(
                answer.outcome,
                accepted_ms,
                answer.due_ms,
                answer.version,
                answer.code or "",
                digest_of(request),
                request["action"],
                request["schedule_id"],
                answer.generation,
            )
        )
        self._store.note(name, row)

    def accepted(
        self, offset: int, request: PlainRequest, instants: tuple[int, int], effects: Effects
    ) -> None:
        """`conclude` for a plain request with an id that began a schedule; its caller counts it.

        `instants` are those of its arrival and of its verdict.
        """
        accepted_ms, now_ms = instants
        tenant, schedule_id, due_ms, _, _, _, _, request_id = request
        assert request_id is not None
        name = keys.answer_key(tenant, request_id)
        generation = life_of(self._place.partition, offset)
        row = encode_accepted(request, accepted_ms, generation, digest_of_plain(request))
        self._store.note(name, row)
        effects.lifecycle.append(
            LifecycleEvent(
                tenant=tenant.decode(),
                schedule_id=schedule_id.decode(),
                outcome=Outcome.ACCEPTED,
                request_id=request_id.decode(),
                version=1,
                at=now_ms,
                due_at=due_ms,
                source_topic=self._place.topic,
                source_partition=self._place.partition,
                source_offset=offset,
                generation=generation_of(generation),
            )
        )

    def _told(
        self, record: SourceRecord, request: Request, answer: Answer, now_ms: int
    ) -> LifecycleEvent:
        origin = self.origin(record)
        # A refused request may carry names of any length.
        request_id = request["request_id"]
        return LifecycleEvent(
            tenant=request["tenant"][:MOST_SHOWN],
            schedule_id=request["schedule_id"][:MOST_SHOWN],
            outcome=answer.outcome,
            request_id=None if request_id is None else request_id[:MOST_SHOWN],
            fire_id=answer.fire_id,
            version=answer.version,
            at=now_ms,
            due_at=answer.due_ms,
            code=answer.code,
            reason=None if answer.reason is None else answer.reason[:MOST_REASON],
            source_topic=origin.topic,
            source_partition=origin.partition,
            source_offset=origin.offset,
            generation=None if answer.generation is None else generation_of(answer.generation),
        )


def _reused(request_id: str, first: Verdict) -> Answer:
    """The answer to another request than the one that has the id."""
    asked = f"{first.action} of {first.schedule_id[:60]!r}"
    reason = reused_reason(request_id, asked, first.outcome, first.code)
    return Answer(Outcome.CONFLICT, code=ID_REUSED, reason=reason)


def _kept(record: SourceRecord, origin: Origin, rejection: Rejection) -> Rejected:
    """The record as received; what would not fit the topic is cut, and a header says so."""
    _, _, key, value, headers = record
    added: Headers = [
        ("belfry-error-code", rejection.code.encode()),
        ("belfry-error-reason", rejection.reason[:MOST_REASON].encode(errors="backslashreplace")),
        ("belfry-error-topic", origin.topic[:249].encode()),
        ("belfry-error-partition", b"%d" % origin.partition),
        ("belfry-error-offset", b"%d" % origin.offset),
    ]
    size = size_of(record)
    if size > MAX_REJECTED_BYTES:
        added.append(("belfry-error-cut", b"cut from %d bytes" % size))
        third = MAX_REJECTED_BYTES // 3
        key = None if key is None else key[:third]
        value = None if value is None else value[:third]
        headers = _first_headers(headers or [], third)
    return Rejected(key, value, [*(headers or ()), *added])


def _first_headers(headers: Headers, room: int) -> Headers:
    """The headers that fit into so many bytes, from the first one on."""
    kept: Headers = []
    for name, given in headers:
        room -= len(name) * 4 + len(given or b"")
        if room < 0:
            break
        kept.append((name, given))
    return kept
