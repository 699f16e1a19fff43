"""Reports: what became of each request, told where somebody asked for it.

Every request ends in exactly one outcome.  It is always counted; a lifecycle record tells of it
where the request has an id or the tenant's level wants it; a rejected record is kept as received.

A request with an id is remembered for an hour, so that a sender who has lost the answer may repeat
it.  The hour lies between the two arrivals:

    12:00:00.000   UPSERT a, request_id r1         ACCEPTED; the row of r1: outcome, digest
    12:00:02.000   the same, sent again            DUPLICATE, with what the first answer was
    12:10:00.000   CANCEL b, request_id r1         CONFLICT, request_id_reused: nothing is done
    13:00:00.000   UPSERT a, request_id r1         judged anew: the hour is over

A refusal that is due to the moment (a rate, a quota) is not remembered: a repeat may succeed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.engine.arrival import arrival_ms
from belfry.engine.effects import RejectedRecord
from belfry.engine.step import Step
from belfry.schedules.identity import Homes, generation_at, generation_of
from belfry.schedules.instants import format_instant
from belfry.schedules.outcomes import ID_REUSED, Outcome, repeat_reason, reused_reason
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import KEEPING, PlainRequest, Request
from belfry.schedules.request_digest import digest_of, digest_of_plain
from belfry.store.layout import keys
from belfry.store.layout.records import Awaited
from belfry.store.layout.verdicts import (
    REQUEST_ID_MS,
    VerdictRow,
    decode_verdict,
    encode_accepted,
    encode_verdict,
)
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import StepTenants
from belfry.tenants.effective import Tenant
from belfry.wire.headers import UNREAD
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.origins import believed_origin
from belfry.wire.record import Headers, Origin, SourceRecord, is_redriven, size_of
from belfry.wire.worker_keys import Keys

MAX_REJECTED_BYTES: Final = 900_000
# A refused record of so many bytes is always kept whole.
LEAST_REJECTED_BYTES: Final = 10_000
MOST_SHOWN: Final = 255
MOST_REASON: Final = 2000
# Outcomes of a request that brought something to keep; an acknowledgement is UPDATED as well.
ACCEPTING: Final = frozenset({Outcome.ACCEPTED, Outcome.UPDATED})


class SourcePartition(NamedTuple):
    """The partition whose requests are taken in, and the homes of all schedules.

    `topic` is the shared topic of requests, or a tenant's own input.
    """

    topic: str
    partition: int
    homes: Homes
    # Of workers that share a secret: what tells where a request that one of them sent on came from.
    origin_keys: Keys = ()


@dataclass(slots=True)
class Reply:
    """What became of a request.

    `version` and `due_ms` (epoch ms) are the schedule's after it, `generation` is its life;
    `code` is for programs and `reason` for people.  `fire_id` names the fire of a TRIGGER, or the
    one that an ACK is about.
    """

    outcome: Outcome
    version: int | None = None
    due_ms: int | None = None
    code: str | None = None
    reason: str | None = None
    fire_id: str | None = None
    generation: int | None = None


class Reports:
    """Writes verdicts into effects, and remembers those of requests that have an id."""

    def __init__(self, place: SourcePartition, store: ScheduleStore) -> None:
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

    def repeated(
        self,
        record: SourceRecord,
        request: Request,
        asked_ms: int,
        step: Step,
    ) -> Reply | None:
        """The reply to a request that was asked then, if its id was answered in the hour before.

        The same request once more is a DUPLICATE, another one a CONFLICT.  The hour is between the
        arrivals of the two, however late they are read.  A refused request that is redriven is
        judged anew.
        """
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        row = self._store.named(name)
        first = None if row is None else decode_verdict(row)
        if first is None or asked_ms - first.at_ms >= REQUEST_ID_MS:
            return None
        if first.outcome == Outcome.REJECTED and is_redriven(record):
            # It changed nothing then, and is sent again to be judged anew.
            return None
        reply = Reply(Outcome.DUPLICATE, first.version, first.due_ms, first.outcome)
        if first.digest and first.digest != digest_of(request):
            reply = _reused(request["request_id"] or "", first)
        else:
            reply.reason = repeat_reason(first.outcome, first.code)
            reply.generation = first.generation
        step.effects.outcomes[reply.outcome] += 1
        step.effects.lifecycle.append(self._told(record, request, reply, step.now_ms))
        return reply

    def answered(self, tenant: str, request_id: str, asked_ms: int) -> bool:
        """Whether a request of this id was answered here in the hour before this instant."""
        row = self._store.named(keys.request_key(tenant, request_id))
        return row is not None and asked_ms - decode_verdict(row).at_ms < REQUEST_ID_MS

    def conclude(
        self,
        record: SourceRecord,
        request: Request,
        tenant: Tenant,
        reply: Reply,
        step: Step,
    ) -> None:
        """Count the outcome of a valid request and tell of it where it is wanted."""
        step.effects.outcomes[reply.outcome] += 1
        if reply.outcome in ACCEPTING and request["action"] in KEEPING:
            step.effects.accepted[tenant.name_bytes] += 1
        if request["request_id"] is not None:
            came_ms = arrival_ms(self.origin(record).timestamp_ms, step.now_ms)
            self.remember(request, reply, came_ms)
        elif reply.outcome not in tenant.written:
            return
        step.effects.lifecycle.append(self._told(record, request, reply, step.now_ms))

    def reject(
        self, record: SourceRecord, request: Request | None, rejection: Rejection, step: Step
    ) -> Reply:
        """Keep a refused record with its reason; tell of it where it has a tenant or an id."""
        effects = step.effects
        reply = Reply(Outcome.REJECTED, code=rejection.code, reason=rejection.reason)
        whose = "" if request is None else request["tenant"]
        most = min(MAX_REJECTED_BYTES, max(LEAST_REJECTED_BYTES, effects.refused_room))
        kept = min(size_of(record), most)
        effects.rejected.append(_kept(record, self._added(record, rejection, whose), most))
        effects.refused_room -= kept
        effects.room -= kept
        effects.outcomes[Outcome.REJECTED] += 1
        effects.rejections[rejection.code] += 1
        effects.refused[whose] += 1
        if request is None or not (request["tenant"] or request["request_id"] is not None):
            return reply
        effects.lifecycle.append(self._told(record, request, reply, step.now_ms))
        return reply

    def _added(self, record: SourceRecord, rejection: Rejection, tenant: str) -> Headers:
        """The headers that say why a record is refused, and where it was received."""
        origin = self.origin(record)
        added: Headers = [
            ("belfry-error-code", rejection.code.encode()),
            (
                "belfry-error-reason",
                rejection.reason[:MOST_REASON].encode(errors="backslashreplace"),
            ),
            ("belfry-error-topic", origin.topic[:249].encode()),
            ("belfry-error-partition", b"%d" % origin.partition),
            ("belfry-error-offset", b"%d" % origin.offset),
        ]
        if tenant:
            # So that a tenant finds its own without each record being read anew.
            whose = tenant[:MOST_SHOWN].encode(errors="backslashreplace")
            added.append(("belfry-error-tenant", whose))
        return added

    def remember(self, request: Request, reply: Reply, accepted_ms: int) -> None:
        """Keep the verdict of a request that has an id, for those that repeat it."""
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        row = encode_verdict(
            VerdictRow(
                reply.outcome,
                accepted_ms,
                reply.due_ms,
                reply.version,
                reply.code or "",
                digest_of(request),
                request["action"],
                request["schedule_id"],
                reply.generation,
            )
        )
        self._store.note(name, row)

    def accepted(self, offset: int, request: PlainRequest, accepted_ms: int, step: Step) -> None:
        """`conclude` for a request on the fast path that has an id; its caller counts it."""
        tenant, schedule_id, due_ms, _, _, _, _, request_id = request
        assert request_id is not None
        name = keys.answer_key(tenant, request_id)
        generation = generation_at(self._place.partition, offset)
        row = encode_accepted(request, accepted_ms, generation, digest_of_plain(request))
        self._store.note(name, row)
        step.effects.lifecycle.append(
            LifecycleEvent(
                tenant=tenant.decode(),
                schedule_id=schedule_id.decode(),
                outcome=Outcome.ACCEPTED,
                request_id=request_id.decode(),
                version=1,
                at=step.now_ms,
                due_at=due_ms,
                source_topic=self._place.topic,
                source_partition=self._place.partition,
                source_offset=offset,
                generation=generation_of(generation),
            )
        )

    def _told(
        self, record: SourceRecord, request: Request, reply: Reply, now_ms: int
    ) -> LifecycleEvent:
        origin = self.origin(record)
        # A refused request may carry names of any length.
        request_id = request["request_id"]
        # Where belfry gives no reason for the outcome, the history keeps that of who asked.
        reason = request["reason"] if reply.reason is None else reply.reason
        return LifecycleEvent(
            tenant=request["tenant"][:MOST_SHOWN],
            schedule_id=request["schedule_id"][:MOST_SHOWN],
            outcome=reply.outcome,
            request_id=None if request_id is None else request_id[:MOST_SHOWN],
            fire_id=reply.fire_id,
            version=reply.version,
            at=now_ms,
            due_at=reply.due_ms,
            code=reply.code,
            reason=None if reason is None else reason[:MOST_REASON],
            source_topic=origin.topic,
            source_partition=origin.partition,
            source_offset=origin.offset,
            generation=None if reply.generation is None else generation_of(reply.generation),
        )


def ack_timed_out(key: bytes, awaited: Awaited, tenants: StepTenants, step: Step) -> None:
    """Tell of a fire that was not acknowledged in time: what waits for it goes on."""
    step.effects.outcomes[Outcome.FAILED] += 1
    name, identity = keys.awaited_names(key)
    tenant = tenants.of_bytes(name)
    if Outcome.FAILED not in tenant.written:
        return
    step.effects.lifecycle.append(
        LifecycleEvent(
            tenant=tenant.name,
            schedule_id=awaited.schedule_id.decode(),
            outcome=Outcome.FAILED,
            fire_id=identity.decode(),
            version=awaited.version,
            at=step.now_ms,
            due_at=awaited.due_ms,
            code="ack_timeout",
            reason=f"fired at {format_instant(awaited.fired_ms)} and not acknowledged until"
            f" {format_instant(awaited.until_ms)}: what waits for it goes on",
        )
    )


def _reused(request_id: str, first: VerdictRow) -> Reply:
    """The reply to another request than the one that has the id."""
    asked = f"{first.action} of {first.schedule_id[:60]!r}"
    reason = reused_reason(request_id, asked, first.outcome, first.code)
    return Reply(Outcome.CONFLICT, code=ID_REUSED, reason=reason)


def _kept(record: SourceRecord, added: Headers, most_bytes: int) -> RejectedRecord:
    """The record as received; one that is too large is cut, and a header says so."""
    _, _, key, value, carried = record
    # By that one its reader had it refused: the reason stands in the headers that are added.
    headers = list(carried or ())
    if headers and headers[-1][0] == UNREAD:
        headers.pop()
    size = size_of(record)
    if size > most_bytes:
        added.append(("belfry-error-cut", b"cut from %d bytes" % size))
        third = most_bytes // 3
        key = None if key is None else key[:third]
        value = None if value is None else value[:third]
        headers = _first_headers(headers, third)
    return RejectedRecord(key, value, [*headers, *added])


def _first_headers(headers: Headers, room: int) -> Headers:
    """The headers that fit into so many bytes, from the first one on."""
    kept: Headers = []
    for name, given in headers:
        room -= len(name) * 4 + len(given or b"")
        if room < 0:
            break
        kept.append((name, given))
    return kept
