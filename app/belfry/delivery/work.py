"""Records of the topic of deliveries to work, and work to the records that follow from it.

    record ─► work_of ─► Work ─► … posted … ─► Answer ─► step_after ─► Step ─► follow_up ─► records

    step        records
    Delivered   a lifecycle event, where the tenant is told; an ACK, where something waits for it
    Failed      a lifecycle event; the record once more in the topic of what was given up
    Again       a request for a one-shot that fires this very record at the next attempt's instant

The id of a retry is made of fire id, target and attempt, so a retry that is written twice is one
schedule. All of it is pure: records come in and go out as values, and the dispatcher writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from zlib import crc32

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Again, Answer, Delivered, End, Failed, Step
from belfry.schedules.fields import EMPTY
from belfry.schedules.outcomes import Outcome
from belfry.schedules.target_kinds import kind_of
from belfry.tenants.deliveries import (
    HEADER,
    KEY_HEADER,
    RETRIES,
    RETRY_SHARDS,
    DeliveryState,
    UnknownDelivery,
    decode_state,
    encode_state,
)
from belfry.wire import catalogue
from belfry.wire.claims import signature
from belfry.wire.fired import FiredEvent
from belfry.wire.headers import BACKFILL
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.metering import Usage, encode_usage, period_of
from belfry.wire.record import SIGNATURE, Headers

# Headers that begin so are made anew for each record, and never carried on.
OURS: Final = "belfry-"
# Bytes of a request for a retry; one that would be larger is given up.
MOST_RETRY_BYTES: Final = 1_000_000

TOO_LARGE: Final = Failed(
    Answer(End.FINAL, "", "too_large", "A request for a retry would be larger than Kafka takes.")
)


class NotADelivery(ValueError):
    """A record that no delivery can be made of; the message says why."""


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt that is to be made; `value` is the event as it lies in the record.

    `given_key` is the key of the fired record, where its request gave one.
    `secrets` are those of its targets' headers, by reference, for the process that only posts.
    """

    key: bytes
    value: bytes
    event: FiredEvent
    # The user's headers, without belfry's own.
    headers: Headers
    # Targets, attempt and limits, as the record's header says them.
    state: DeliveryState
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    given_key: bytes | None = None

    @property
    def ordering_key(self) -> tuple[bytes, int]:
        """What keeps its order among itself: a group, or a schedule, at one set of targets."""
        return self.key, self.state.number

    @property
    def fired_key(self) -> bytes:
        """The key of the fired record: given, else its group's name or its schedule's."""
        if self.given_key is not None:
            return self.given_key
        return (self.event.group or self.event.schedule_id).encode()

    @property
    def hosts(self) -> list[str]:
        """What this attempt may wait for: hosts with their ports, topics."""
        event = self.event
        order = self.state.order(event.schedule_id, event.occurrence)
        return [kind_of(target).share(target.url) for target in order]


@dataclass(frozen=True, slots=True)
class Produced:
    """A record to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Places:
    """Topics that follow-up records go to, the frames before what is Avro, and what signs requests.

    Workers that share a secret have a key for requests of users' tenants, and one for retries.
    Usage is counted for each `metering_ms`; 0: not at all.
    """

    schedules: str
    lifecycle: str
    undelivered: str
    # What Avro records begin with: a registry's prefix, or that of single-object encoding.
    request_head: bytes
    lifecycle_head: bytes
    request_key: bytes = b""
    retry_key: bytes = b""
    metering: str = ""
    metering_ms: int = 0


def work_of(key: bytes | None, value: bytes | None, headers: Headers, decoder: Decoder) -> Work:
    """The work in a record; `NotADelivery` where there is none.

    Anybody who may write to the topic can write nonsense there, so nothing of a record is believed
    before it was decoded.
    """
    # A user may send a header of this name; belfry's own comes behind it.
    states = [given for name, given in headers if name == HEADER and given is not None]
    if value is None or not states:
        raise NotADelivery(f"the record has no value, or no header {HEADER}")
    # Without the headers: one that frames the user's payload is none of this record's.
    record = decoder.record(value)
    if record is None:
        raise NotADelivery("the record's value is no FiredEvent")
    try:
        state = decode_state(states[-1])
    except UnknownDelivery as error:
        raise NotADelivery(str(error)) from None
    kept = [
        (name, given) for name, given in headers if name == BACKFILL or not name.startswith(OURS)
    ]
    keys = [given for name, given in headers if name == KEY_HEADER]
    given_key = keys[-1] if keys else None
    return Work(key or b"", value, FiredEvent(**record), kept, state, given_key=given_key)


def follow_up(work: Work, step: Step, places: Places, now_ms: int) -> list[Produced]:
    """What is written when an attempt has ended; `now_ms` is when, epoch ms.

    A retry that would be larger than Kafka takes is given up.
    """
    if isinstance(step, Again):
        again = retry(work, step, places)
        if again is not None:
            return [again]
        return _given_up(work, TOO_LARGE, places, now_ms)
    if isinstance(step, Failed):
        return _given_up(work, step, places, now_ms)
    done = [told(work, step, places, now_ms)] if work.state.tell else []
    return [*done, acknowledgement(work, places)] if work.state.acks else done


def acknowledgement(work: Work, places: Places) -> Produced:
    """The request that lets go on what waits for this fire."""
    event = work.event
    fields = {
        "tenant": event.tenant,
        "schedule_id": event.schedule_id,
        "action": "ACK",
        "fire_id": event.fire_id,
    }
    return _request(fields, event.tenant.encode(), places)


def retry(work: Work, again: Again, places: Places) -> Produced | None:
    """The request for the next attempt: a schedule that fires the same record again.

    None where the request would be too large.
    """
    event, state = work.event, again.state
    schedule_id = f"{event.fire_id}/{state.number}/{state.attempt}"
    headers = _headers(work, state)
    fields = {
        "tenant": RETRIES,
        "schedule_id": schedule_id,
        "at": again.at_ms,
        "key": work.key,
        "payload": work.value,
        "headers": [{"name": name, "value": value} for name, value in headers],
    }
    # The key that leads straight to the retry's home.
    route = f"{RETRIES}/{crc32(schedule_id.encode()) % RETRY_SHARDS}"
    made = _request(fields, route.encode(), places)
    return made if len(made.value or b"") <= MOST_RETRY_BYTES else None


def _headers(work: Work, state: DeliveryState) -> Headers:
    """Headers of a record that the same work can be made of again, in this state."""
    key: Headers = [] if work.given_key is None else [(KEY_HEADER, work.given_key)]
    return [*work.headers, *key, (HEADER, encode_state(state))]


def _request(fields: dict[str, Any], route: bytes, places: Places) -> Produced:
    """A request of a tenant, signed where workers have a key; `route` is the key of its record."""
    value = places.request_head + catalogue.encode("ScheduleRequest", {**EMPTY, **fields})
    headers: Headers = []
    tenant = fields["tenant"]
    signing = places.retry_key if tenant == RETRIES else places.request_key
    if signing:
        shown = signature(signing, tenant, route, value, headers)
        headers = [(SIGNATURE, shown)]
    return Produced(places.schedules, route, value, headers)


def told(work: Work, step: Delivered | Failed, places: Places, now_ms: int) -> Produced:
    """The lifecycle record of a delivery's end."""
    event, answer = work.event, step.answer
    lifecycle = LifecycleEvent(
        tenant=event.tenant,
        schedule_id=event.schedule_id,
        outcome=Outcome.DELIVERED if isinstance(step, Delivered) else Outcome.FAILED,
        fire_id=event.fire_id,
        version=event.version,
        at=now_ms,
        due_at=event.due_at,
        code=answer.code or None,
        reason=answer.reason or None,
        target=answer.target or work.state.targets[0].url,
        attempt=work.state.attempt,
    )
    key = f"{event.tenant}/{event.schedule_id}".encode()
    return Produced(places.lifecycle, key, places.lifecycle_head + encode_lifecycle(lifecycle), [])


def metered(delivered: Mapping[str, int], places: Places, now_ms: int) -> list[Produced]:
    """What is written of the usage of tenants, by how many of their events were delivered."""
    if not places.metering_ms:
        return []
    from_ms, until_ms = period_of(now_ms, places.metering_ms)
    used = [
        Usage(tenant=tenant, from_ms=from_ms, until_ms=until_ms, delivered=number)
        for tenant, number in delivered.items()
    ]
    return [
        Produced(places.metering, each.tenant.encode(), encode_usage(each), []) for each in used
    ]


def _given_up(work: Work, step: Failed, places: Places, now_ms: int) -> list[Produced]:
    """What is written of a delivery that ends without having arrived."""
    headers = _headers(work, work.state)
    why = (step.answer.code, step.answer.reason)
    letter = Produced(places.undelivered, work.key, work.value, headers)
    return [told(work, step, places, now_ms), dead_letter(letter, why)]


def dead_letter(letter: Produced, why: tuple[str, str]) -> Produced:
    """A record that is not delivered, with headers that say why: a code and a sentence."""
    code, reason = why
    error: Headers = [
        ("belfry-error-code", code.encode()),
        ("belfry-error-reason", reason[:2_000].encode()),
    ]
    return replace(letter, headers=[*letter.headers, *error])
