"""Reports: the outcome of each request, told where somebody asked for it.

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

from typing import Final, NamedTuple

from belfry.engine.arrival import arrival_ms
from belfry.engine.payloads import digests
from belfry.engine.rejected_record import LEAST_REJECTED_BYTES, MAX_REJECTED_BYTES, as_rejected
from belfry.engine.reply import MOST_REASON, MOST_SHOWN, Reply
from belfry.engine.step import Step
from belfry.placement.partition_count import PartitionCount
from belfry.schedules.identity import Homes, generation_of
from belfry.schedules.outcomes import ID_REUSED, Outcome, repeat_reason, reused_reason
from belfry.schedules.rejections import PASSING, Rejection
from belfry.schedules.request import KEEPING, Request, may_be_kept
from belfry.store.layout import keys
from belfry.store.layout.statements import unsigned_until
from belfry.store.layout.verdicts import (
    REQUEST_ID_MS,
    VerdictRow,
    decode_verdict,
    encode_verdict,
)
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.lifecycle import LifecycleEvent
from belfry.wire.moves import is_move
from belfry.wire.origins import believed_origin
from belfry.wire.record import Origin, SourceRecord, asked_of, is_redriven, size_of
from belfry.wire.retries import EXHAUSTED
from belfry.wire.worker_keys import Keys

# Refused for a name that is not fit to remember anything under.
UNNAMED: Final = frozenset({"no_tenant", "bad_tenant", "bad_request_id"})
# Outcomes of a request that brought something to keep; an acknowledgement is UPDATED as well.
ACCEPTING: Final = frozenset({Outcome.ACCEPTED, Outcome.UPDATED})


class SourcePartition(NamedTuple):
    """The partition whose requests are taken in, and the homes of all schedules.

    `topic` is the shared topic of requests, or a tenant's own input.
    """

    topic: str
    partition: int
    homes: Homes
    # Of workers that share a secret: the proof of the origin of requests that one of them sent on.
    origin_keys: Keys = ()
    # The partitions that hold schedules, where there are more than homes.
    counted: PartitionCount | None = None
    # Whether it holds none itself; None: it does where it is a home.
    forwards: bool | None = None

    @property
    def only_forwards(self) -> bool:
        """Whether it holds no schedules, and sends requests on."""
        by_number = self.partition >= self.homes.partitions
        return by_number if self.forwards is None else self.forwards

    def exists(self, partition: int) -> bool:
        """Whether there is such a partition that holds schedules, by now."""
        if self.counted is not None:
            return self.counted.holds(partition)
        return partition < self.homes.partitions


class Reports:
    """Writes verdicts into effects, and remembers those of requests that have an id."""

    def __init__(
        self, place: SourcePartition, store: ScheduleStore, tenants: StepTenants | None = None
    ) -> None:
        """`tenants` have the keys by which digests are kept; None where none is kept."""
        self._tenants = tenants
        self._place = place
        self._store = store
        # The record that was asked about last: each is asked about several times in a row.
        self._record: SourceRecord | None = None
        self._origin = Origin("", 0, 0, 0, rerouted=False)

    def origin(self, record: SourceRecord) -> Origin:
        """Where a record was first received."""
        if record is not self._record:
            topic, partition, _, keys, _, _ = self._place
            self._origin = believed_origin(keys, record, topic, partition)
            self._record = record
        return self._origin

    def asked(self, record: SourceRecord) -> int:
        """How many homes of its tenant have been asked about a request that was sent on.

        Where workers share a secret, only one of them can say so: it has signed the origin and all
        that stands beside it.  Older requests count as they are, up to the end that the input had
        when its owner got a secret: former owners had sent them on, and signed nothing that this
        one believes.
        """
        asked = asked_of(record)
        if not asked or not self._place.origin_keys or self.origin(record).rerouted:
            return asked
        statement = self._store.named(keys.STATEMENT_KEY)
        return asked if record[0] < unsigned_until(statement) else 0

    def repeated(
        self, record: SourceRecord, request: Request, asked_ms: int, step: Step, code: str = ""
    ) -> Reply | None:
        """The reply to a request that was asked then, if its id was answered in the hour before.

        The same request once more is a DUPLICATE, another one a CONFLICT.  The hour is between the
        arrivals of the two, however late they are read.  `code` is why this one is refused, if it
        is.  A refused request that is redriven is judged anew, and so is a dead letter that is sent
        with tries left.
        """
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        row = self._store.named(name)
        first = None if row is None else decode_verdict(row)
        if first is None or asked_ms - first.at_ms >= REQUEST_ID_MS:
            return None
        if first.outcome == Outcome.REJECTED and (
            is_redriven(record) or first.code == EXHAUSTED != code
        ):
            # It changed nothing then, and is sent again to be judged anew.
            return None
        reply = Reply(Outcome.DUPLICATE, first.version, first.due_ms, first.outcome)
        known = self._digests(request)
        if first.digest and known[0] and first.digest not in known:
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
        self, record: SourceRecord, request: Request, tenant: Tenant, reply: Reply, step: Step
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

    def refuse(
        self, record: SourceRecord, request: Request, why: Rejection, asked_ms: int, step: Step
    ) -> Reply:
        """Reject a request; where its id can be trusted, a repeat of it is a DUPLICATE.

        A refusal that depends on the moment is told and not remembered: a repeat is judged again.
        """
        if why.code in UNNAMED or not may_be_kept(request["request_id"]):
            return self.reject(record, request, why, step)
        repeated = self.repeated(record, request, asked_ms, step, why.code)
        if repeated is not None:
            return repeated
        if why.code not in PASSING:
            kept = Reply(Outcome.REJECTED, code=why.code)
            self.remember(request, kept, asked_ms)
        return self.reject(record, request, why, step)

    def reject(
        self, record: SourceRecord, request: Request | None, rejection: Rejection, step: Step
    ) -> Reply:
        """Keep a refused record with its reason; tell of it where it has a tenant or an id."""
        effects = step.effects
        reply = Reply(Outcome.REJECTED, code=rejection.code, reason=rejection.reason)
        whose = "" if request is None else request["tenant"]
        most = min(MAX_REJECTED_BYTES, max(LEAST_REJECTED_BYTES, effects.refused_room))
        if is_move(record) and self.origin(record).rerouted:
            # A worker wrote it: rows of a move lie nowhere else once they are refused.
            most = MAX_REJECTED_BYTES
        kept = min(size_of(record), most)
        effects.rejected.append(as_rejected(record, rejection, self.origin(record), whose, most))
        effects.refused_room -= kept
        effects.room -= kept
        effects.outcomes[Outcome.REJECTED] += 1
        effects.rejections[rejection.code] += 1
        effects.refused[whose] += 1
        if request is None or not (request["tenant"] or request["request_id"] is not None):
            return reply
        effects.lifecycle.append(self._told(record, request, reply, step.now_ms))
        return reply

    def remember(self, request: Request, reply: Reply, accepted_ms: int) -> None:
        """Keep the verdict of a request that has an id, for those that repeat it."""
        name = keys.request_key(request["tenant"], request["request_id"] or "")
        row = VerdictRow(
            reply.outcome, accepted_ms, reply.due_ms, reply.version, reply.code or "",
            self._digests(request)[0], request["action"], request["schedule_id"], reply.generation,
        )  # fmt: skip
        self._store.note(name, encode_verdict(row), REQUEST_ID_MS)

    def _digests(self, request: Request) -> tuple[bytes, ...]:
        name = request["tenant"].encode(errors="replace")
        return digests(request, None if self._tenants is None else self._tenants.known(name))

    def _told(
        self, record: SourceRecord, request: Request, reply: Reply, now_ms: int
    ) -> LifecycleEvent:
        origin = self.origin(record)
        # A refused request may carry names of any length.
        request_id = request["request_id"]
        # Where belfry gives no reason for the outcome, the history keeps that of the request.
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


def _reused(request_id: str, first: VerdictRow) -> Reply:
    """The reply to another request than the one that has the id."""
    asked = f"{first.action} of {first.schedule_id[:60]!r}"
    reason = reused_reason(request_id, asked, first.outcome, first.code)
    return Reply(Outcome.CONFLICT, code=ID_REUSED, reason=reason)
