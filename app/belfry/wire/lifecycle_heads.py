"""The heads of lifecycle events, read by hand.

The topic has many such records and many readers, and most readers need few of the records. So
beside the whole decoder (`lifecycle.py`) there are some that read only the head of an event that
this release wrote: `asked_in` for readers that wait for a verdict, `headline` and `kept_head` for
an index. They walk over Avro's bytes:

    tenant  id  outcome  request id  fire id  version  at  due  …  texts that are not read here
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from belfry.schedules.outcomes import Outcome


def asked_in(body: bytes, at: int = 0) -> tuple[bytes, bytes, bytes] | None:
    """Tenant, schedule and request id of an event, without reading the rest; None without an id.

    Only for events that this release wrote: a reader that waits for verdicts skips all other
    records. IndexError for bytes that are not an event.
    """
    tenant, at = _text(body, at)
    schedule_id, at = _text(body, at)
    _, at = number_at(body, at)
    branch, at = number_at(body, at)
    return None if branch == 0 else (tenant, schedule_id, _text(body, at)[0])


def _text(body: bytes, at: int) -> tuple[bytes, int]:
    size, at = number_at(body, at)
    return body[at : at + size], at + size


def number_at(body: bytes, at: int) -> tuple[int, int]:
    """A number of Avro's from 0 up, and the place of the next byte.

    IndexError for a number of more than 64 bits: a megabyte of such bytes would take a minute.
    """
    number = shift = 0
    while shift < _MOST_BITS:
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1, at
        shift += 7
    raise IndexError


class Headline(NamedTuple):
    """The head of a lifecycle event: all that an index of events needs.

    Names are UTF-8 as they lie in the record; instants are epoch milliseconds.
    """

    tenant: bytes
    schedule_id: bytes
    outcome: Outcome
    at_ms: int
    due_ms: int | None


_OUTCOMES: Final = tuple(Outcome)
# Ten bytes of seven bits hold 64.
_MOST_BITS: Final = 70
_FIRED: Final = 2 * _OUTCOMES.index(Outcome.FIRED)
_ODD_OR_LONG: Final = 0x81
# The branch of a field that may be null: it has a value.
_GIVEN: Final = 2
# Bytes of an instant of the years 1987 to 2109.
_SIX: Final = 6
# Functions that take a shape apart, made as shapes are met. A shape: the sizes of tenant and id,
# whether there is a request id, and its size or that of the fire's id.
_MOST_KEPT: Final = 8192
_Shape = tuple[int, int, int, int]
_shapes: dict[_Shape, Callable[[bytes], tuple[Any, ...]]] = {}
_new: Final = tuple.__new__
# An int of Avro's.
_MOST_ATTEMPTS: Final = 2**31 - 1


def headline(body: bytes) -> Headline:
    """The head of an event that this release wrote; IndexError for bytes that are not one.

    The history calls this for each record. Most records have short names, a request id or a fire's
    id, a short version and instants of six bytes: one call takes such a head apart. A property test
    checks that both ways give one answer.
    """
    try:
        asked, (tenant, schedule_id, outcome, fired, versioned, version, at, due, due_at) = _fields(
            body
        )
        at_ms, due_ms = _instant_of(at), _instant_of(due_at)
        if (
            fired == _GIVEN - asked
            and versioned == due == _GIVEN
            and not (outcome | version) & _ODD_OR_LONG
            and at_ms is not None is not due_ms
        ):
            said = (tenant, schedule_id, _OUTCOMES[outcome >> 1], at_ms, due_ms)
            return _new(Headline, said)
    except (IndexError, struct.error):
        pass  # Another shape, or not an event.
    return _headline(body)


def kept_head(body: bytes) -> Headline:
    """The same for an event that is kept; without the due instant, unless the event is a fire.

    The bytes behind the event's own instant are not read then: due instants differ from record to
    record, so each would have to be read by itself.
    """
    try:
        asked, (tenant, schedule_id, outcome, fired, versioned, version, at, _, _) = _fields(body)
        if (
            outcome != _FIRED
            and fired == _GIVEN - asked
            and versioned == _GIVEN
            and not (outcome | version) & _ODD_OR_LONG
            and (at_ms := _instant_of(at)) is not None
        ):
            return _new(Headline, (tenant, schedule_id, _OUTCOMES[outcome >> 1], at_ms, None))
    except (IndexError, struct.error):
        pass  # Another shape, or not an event.
    return headline(body)


def _fields(body: bytes) -> tuple[int, tuple[Any, ...]]:
    """Whether a head has a request id (2 or 0), and its nine fields.

    IndexError or struct.error for a head without the shape of short heads.
    """
    id_at = 1 + (body[0] >> 1)
    outcome_at = id_at + 1 + (body[id_at] >> 1)
    asked = body[outcome_at + 1]
    size = body[outcome_at + 2] if asked else body[outcome_at + 3]
    shape = (body[0], body[id_at], asked, size)
    return asked, (_shapes.get(shape) or _learn(shape))(body)


def _learn(shape: _Shape) -> Callable[[bytes], tuple[Any, ...]]:
    """The function that takes a shape apart, made once; IndexError if no such function fits."""
    tenant, schedule_id, asked, size = shape
    if (tenant | schedule_id | asked | size) & _ODD_OR_LONG or asked not in (0, _GIVEN):
        raise IndexError
    named = f"xx{size >> 1}xB" if asked else f"xBx{size >> 1}x"
    if len(_shapes) >= _MOST_KEPT:
        _shapes.clear()
    layout = struct.Struct(f"<x{tenant >> 1}sx{schedule_id >> 1}sB{named}BB{_SIX}sB{_SIX}s")
    take_apart: Callable[[bytes], tuple[Any, ...]] = layout.unpack_from
    _shapes[shape] = take_apart
    return take_apart


@lru_cache(maxsize=1024)
def _instant_of(coded: bytes) -> int | None:
    """The instant in exactly these bytes; None if it is shorter or longer."""
    if coded[-1] >= 0x80:
        return None
    number, size = number_at(coded, 0)
    return number if size == len(coded) else None


def attempt_in(body: bytes) -> int | None:
    """The number of attempts after which a delivery ended, in an event that this release wrote.

    None if the event is not about a delivery, or its bytes end before the number, or have none that
    is valid: the history reads records that other producers may have written, and goes on.
    """
    try:
        found = _attempt_in(body)
    except IndexError:
        return None
    return None if found is None or found > _MOST_ATTEMPTS else found


def reason_in(body: bytes) -> bytes | None:
    """The reason of an event that this release wrote, in UTF-8; None without one or for others."""
    try:
        at = _past_options(body, _behind_due(body), 1)
        return _text(body, at + 1)[0] if body[at] else None
    except IndexError:
        return None


def _attempt_in(body: bytes) -> int | None:
    at = _past_options(body, _behind_due(body), 3)
    return number_at(body, at + 1)[0] if body[at] else None


def _behind_due(body: bytes) -> int:
    """The place of the code, which is behind the due instant."""
    at = _past_texts(body, 0, 2)
    _, at = number_at(body, at)
    at = _past_number(body, _past_options(body, at, 2))
    _, at = number_at(body, at)
    return _past_number(body, at)


def _past_number(body: bytes, at: int) -> int:
    """The place behind a number that may be null."""
    return number_at(body, at + 1)[1] if body[at] else at + 1


def _past_texts(body: bytes, at: int, texts: int) -> int:
    for _ in range(texts):
        size, at = number_at(body, at)
        at += size
    return at


def _past_options(body: bytes, at: int, texts: int) -> int:
    """The place behind so many texts that may be null."""
    for _ in range(texts):
        at = _past_texts(body, at + 1, 1) if body[at] else at + 1
    return at


def _headline(body: bytes) -> Headline:
    tenant, at = _text(body, 0)
    schedule_id, at = _text(body, at)
    outcome, at = number_at(body, at)
    at = _past_number(body, _past_options(body, at, 2))
    at_ms, at = number_at(body, at)
    branch, at = number_at(body, at)
    due_ms = number_at(body, at)[0] if branch else None
    return Headline(tenant, schedule_id, _OUTCOMES[outcome], at_ms, due_ms)
