"""Follow-up records: those that are written after the step of an attempt.

    Work ─► Answer ─► step_after ─► Step ─► follow_up ─► records, in one transaction

    step        records
    Delivered   a lifecycle event, if the tenant is told or it took several attempts; an ACK,
                if an event waits for it
    Failed      a lifecycle event; the record once more in the topic of given-up deliveries
    Again       a request for a one-shot that fires this very record at the next attempt's instant

The id of a retry is made of fire id, target and attempt, so a retry that is written twice is one
schedule. All of it is pure: records are values, and the dispatcher writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from zlib import crc32

from belfry.delivery.answers import Again, Answer, Delivered, End, Failed, Step
from belfry.delivery.work import Work
from belfry.schedules.fields import EMPTY
from belfry.schedules.outcomes import Outcome
from belfry.tenants.deliveries import (
    HEADER,
    KEY_HEADER,
    RETRIES,
    RETRY_SHARDS,
    DeliveryState,
    encode_state,
)
from belfry.wire import catalogue
from belfry.wire.claims import signature
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.metering import Usage, encode_usage, period_of
from belfry.wire.record import SIGNATURE, Headers

# Bytes of a request for a retry; one that would be larger is given up.
MOST_RETRY_BYTES: Final = 1_000_000

TOO_LARGE: Final = Failed(
    Answer(End.FINAL, "", "too_large", "A request for a retry would be larger than Kafka takes.")
)


@dataclass(frozen=True, slots=True)
class Produced:
    """A record to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Places:
    """Topics of follow-up records, the frames before Avro values, and the signer of requests.

    Workers that share a secret have a key for requests of users' tenants, and one for retries.
    Usage is counted for each `metering_ms`; 0: not at all.
    """

    schedules: str
    lifecycle: str
    undelivered: str
    # The first bytes of Avro records: a registry's prefix, or that of single-object encoding.
    request_head: bytes
    lifecycle_head: bytes
    request_key: bytes = b""
    retry_key: bytes = b""
    metering: str = ""
    metering_ms: int = 0


def follow_up(work: Work, step: Step, places: Places, now_ms: int) -> list[Produced]:
    """The records for an attempt that has ended at `now_ms`, epoch ms.

    A retry that would be larger than Kafka takes is given up.
    """
    if isinstance(step, Again):
        again = retry(work, step, places)
        if again is not None:
            return [again]
        return _given_up(work, TOO_LARGE, places, now_ms)
    if isinstance(step, Failed):
        return _given_up(work, step, places, now_ms)
    # A delivery with more than one attempt is told at every level: the last fires show it.
    is_told = work.state.tell or work.state.attempt > 1
    done = [told(work, step, places, now_ms)] if is_told else []
    return [*done, acknowledgement(work, places)] if work.state.acks else done


def acknowledgement(work: Work, places: Places) -> Produced:
    """The request that releases the event that waits for this fire."""
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
    """The records on tenants' usage, by the number of their delivered events."""
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
    """The records for a delivery that ends without having arrived."""
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
