"""Verdicts: what became of each request, told where somebody asked for it.

Every request ends in exactly one outcome.  It is always counted; a lifecycle record tells of it
where the request has an id or the tenant's level wants it; a rejected record is kept as received.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.engine.effects import Effects, Rejected
from belfry.schedules.identity import Homes
from belfry.schedules.outcomes import Outcome, repeat_reason
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import PlainRequest, Request
from belfry.schedules.tenant import Tenant
from belfry.store import keys
from belfry.store.records import Verdict, decode_verdict, encode_verdict
from belfry.store.schedules import ScheduleStore
from belfry.store.sweep import REQUEST_ID_MS
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.record import Headers, Origin, SourceRecord, origin_of, size_of

MAX_REJECTED_BYTES: Final = 900_000
MOST_SHOWN: Final = 255
MOST_REASON: Final = 2000


class Place(NamedTuple):
    """The partition whose requests are taken in, and the homes of all schedules."""

    topic: str
    partition: int
    homes: Homes


@dataclass(slots=True)
class Answer:
    """What became of a request."""

    outcome: Outcome
    version: int | None = None
    due_ms: int | None = None
    code: str | None = None
    reason: str | None = None
    fire_id: str | None = None


class Verdicts:
    """Writes verdicts into effects, and remembers those of requests that have an id."""

    def __init__(self, place: Place, store: ScheduleStore) -> None:
        self._place = place
        self._store = store

    def origin(self, record: SourceRecord) -> Origin:
        """Where a record was first received."""
        return origin_of(record, self._place.topic, self._place.partition)

    def repeats(self, request: Request, asked_ms: int, now_ms: int, effects: Effects) -> bool:
        """Whether the request's id was answered in the hour before; then it is a DUPLICATE.

        The hour ends when the request came in, however late it is read.
        """
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        row = self._store.named(name)
        first = None if row is None else decode_verdict(row)
        if first is None or asked_ms - first.at_ms >= REQUEST_ID_MS:
            return False
        effects.outcomes[Outcome.DUPLICATE] += 1
        effects.lifecycle.append(
            LifecycleEvent(
                tenant=request["tenant"],
                schedule_id=request["schedule_id"],
                outcome=Outcome.DUPLICATE,
                request_id=request["request_id"],
                version=first.version,
                at=now_ms,
                due_at=first.due_ms,
                code=first.outcome,
                reason=repeat_reason(first.outcome, first.code),
            )
        )
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
            self.remember(request, answer, now_ms, effects)
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
        """Keep a refused record with its reason; tell of it where the tenant is known."""
        effects.rejected.append(_kept(record, self.origin(record), rejection))
        effects.outcomes[Outcome.REJECTED] += 1
        effects.rejections[rejection.code] += 1
        if request is None or not request["tenant"]:
            return
        answer = Answer(Outcome.REJECTED, code=rejection.code, reason=rejection.reason)
        effects.lifecycle.append(self._told(record, request, answer, now_ms))

    def remember(self, request: Request, answer: Answer, now_ms: int, effects: Effects) -> None:
        """Keep the verdict of a request that has an id, for those that repeat it."""
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        code = answer.code or ""
        row = encode_verdict(Verdict(answer.outcome, now_ms, answer.due_ms, answer.version, code))
        effects.rows[name] = row
        self._store.set_named(name, row)

    def accepted(self, offset: int, request: PlainRequest, now_ms: int, effects: Effects) -> None:
        """`conclude` for a plain request with an id that began a schedule; its caller counts it."""
        tenant, schedule_id, due_ms, _, _, _, _, request_id = request
        assert request_id is not None
        name = keys.answer_key(tenant, request_id)
        row = encode_verdict(Verdict(Outcome.ACCEPTED, now_ms, due_ms, 1, ""))
        effects.rows[name] = row
        self._store.set_named(name, row)
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
        )


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
