"""The verdict on a plain request with an id, kept as its parts until it is written.

Most verdicts say that a plain request was accepted. Such a verdict keeps the names as the bytes in
which they came, so an engine makes it with one tuple, and its record is joined from few pieces:

    tenant  id  ACCEPTED  request id  -  version 1  at  due  -  -  -  -  topic  partition  offset
    └ once per tenant                 └── once per step ──┘  └── once per partition ───┘

The verdict equals the `LifecycleEvent` that it stands for, and has the same fields, which are made
on request. A property test compares its record with that of the event.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from belfry.schedules.identity import generation_of
from belfry.schedules.outcomes import Outcome
from belfry.wire.lifecycle import (
    GENERATION,
    ONE_BYTE,
    LifecycleEvent,
    avro_long,
    avro_string,
    encode_lifecycle,
    upper,
)
from belfry.wire.record import Headers

# A name whose size takes one byte.
_SHORT: Final = 0x40
# The outcome, and the sign that a request id follows.
_ACCEPTED: Final = avro_long(list(Outcome).index(Outcome.ACCEPTED)) + b"\2"
# The same, and the size of that id.
_ASKED: Final = tuple(_ACCEPTED + ONE_BYTE[size << 1] for size in range(_SHORT))
# The number of values of two groups of seven bits, and their bytes with more groups behind.
_TWO_GROUPS: Final = 1 << 14
_LOWEST: Final = _TWO_GROUPS - 1
_LOWER: Final = tuple(bytes((low & 0x7F | 0x80, low >> 7 | 0x80)) for low in range(_TWO_GROUPS))


class PlainAccepted(NamedTuple):
    """ACCEPTED, of a plain request that has an id and began a schedule.

    `name` is ``tenant/schedule_id``, and `asked` are tenant, schedule and request id, as they lie
    in the record. `life` is the generation that it began, `due_ms` the due instant, `at` the
    instant of the verdict (epoch ms), and `source` the topic and partition in which the request
    came.

    No other part of the request is kept: its payload would take memory until the step is committed.
    """

    name: bytes
    asked: tuple[bytes, bytes, bytes]
    due_ms: int
    life: int
    at: int
    source: tuple[str, int]
    source_offset: int

    def __eq__(self, other: object) -> bool:
        """Whether both are verdicts with the same content."""
        return self.whole() == (other.whole() if isinstance(other, PlainAccepted) else other)

    def __ne__(self, other: object) -> bool:
        """The contrary; a tuple's own method would compare the parts."""
        return not self == other

    def __hash__(self) -> int:
        """The same hash for verdicts with the same content."""
        return hash((self.asked, self.at, self.source_offset))

    def __getattr__(self, name: str) -> Any:
        """A field of the event."""
        return getattr(self.whole(), name)

    def whole(self) -> LifecycleEvent:
        """The event that it stands for."""
        tenant, schedule_id, request_id = self.asked
        return LifecycleEvent(
            tenant=tenant.decode(),
            schedule_id=schedule_id.decode(),
            outcome=Outcome.ACCEPTED,
            request_id=request_id.decode(),
            version=1,
            at=self.at,
            due_at=self.due_ms,
            source_topic=self.source[0],
            source_partition=self.source[1],
            source_offset=self.source_offset,
            generation=generation_of(self.life),
        )


Told = LifecycleEvent | PlainAccepted


def whole(event: Told) -> LifecycleEvent:
    """An event with all of its fields."""
    return event.whole() if isinstance(event, PlainAccepted) else event


def accepted_record(head: bytes, accepted: PlainAccepted) -> tuple[bytes, bytes, Headers]:
    """Key, value and headers of its record; `head` is the frame."""
    headers: Headers = [(GENERATION, b"%d" % generation_of(accepted[3]))]
    return accepted[0], accepted_value(head, accepted), headers


def accepted_value(head: bytes, accepted: PlainAccepted) -> bytes:
    """The value of its record."""
    _, (tenant, schedule_id, request_id), due_ms, _, at, source, offset = accepted
    if not len(schedule_id) < _SHORT > len(request_id):
        return head + encode_lifecycle(accepted.whole())
    return b"".join(
        (
            _head_and_tenant(head, tenant),
            ONE_BYTE[len(schedule_id) << 1],
            schedule_id,
            _ACCEPTED,
            ONE_BYTE[len(request_id) << 1],
            request_id,
            _verdict_at(at),
            _long(due_ms),
            _source_fields(source),
            _long(offset),
        )
    )


def accepted_values(head: bytes, told: Iterable[Told]) -> list[bytes | None]:
    """The values of the records of such verdicts, in their order; None for each other outcome.

    Parts that neighbours have in common are made once: their tenant, their instant, their source,
    and the upper bits of due instants and offsets.
    """
    join, small, lower = b"".join, ONE_BYTE, _LOWER
    begun: dict[bytes, bytes] = {}
    ends: dict[int, bytes] = {}
    came: tuple[str, int] | None = None
    told_ms = block = -1
    when = offset_end = b""
    found: list[bytes | None] = []
    for event in told:
        if type(event) is not PlainAccepted:
            found.append(None)
            continue
        _, (tenant, schedule_id, request_id), due_ms, _, at, source, offset = event
        id_size, asked_size = len(schedule_id), len(request_id)
        if not id_size < _SHORT > asked_size or not due_ms > _LOWEST < offset:
            found.append(accepted_value(head, event))
            continue
        begin = begun.get(tenant)
        if begin is None:
            begin = begun[tenant] = _head_and_tenant(head, tenant)
        if at != told_ms or source is not came:
            told_ms, when, came, ends = at, _verdict_at(at), source, {}
        end = ends.get(due_ms >> 13)
        if end is None:
            end = ends[due_ms >> 13] = upper(due_ms >> 13) + _source_fields(source)
        if offset >> 13 != block:
            block = offset >> 13
            offset_end = upper(block)
        found.append(
            join(
                (begin, small[id_size << 1], schedule_id, _ASKED[asked_size], request_id, when,
                 lower[due_ms << 1 & _LOWEST], end, lower[offset << 1 & _LOWEST], offset_end)
            )
        )  # fmt: skip
    return found


def _long(number: int) -> bytes:
    """A number from 0 up, as `avro_long` writes it; most are instants and offsets."""
    number <<= 1
    if number < _TWO_GROUPS:
        return avro_long(number >> 1)
    return _LOWER[number & _LOWEST] + upper(number >> 14)


@lru_cache(maxsize=1024)
def _head_and_tenant(head: bytes, tenant: bytes) -> bytes:
    """The frame and the tenant."""
    return head + avro_string(tenant.decode())


@lru_cache(maxsize=8)
def _verdict_at(at: int) -> bytes:
    """No fire, the first version, the verdict's instant, and the sign of a due instant."""
    return b"\0\2\2%b\2" % avro_long(at)


@lru_cache(maxsize=1024)
def _source_fields(source: tuple[str, int]) -> bytes:
    """Four nulls, topic and partition, and the sign that an offset follows."""
    return b"\0\0\0\0\2%b\2%b\2" % (avro_string(source[0]), avro_long(source[1]))
