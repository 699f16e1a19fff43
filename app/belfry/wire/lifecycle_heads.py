"""The heads of lifecycle events, read by hand.

The topic has many such records and many readers, and most of them look for few.  So beside the
whole decoder (`lifecycle.py`) there are two that read only the head of what this release wrote:
`asked_in` for those that wait for a verdict, `headline` for an index.  Both walk over Avro's bytes:

    tenant  id  outcome  request id  fire id  version  at  due  …  texts that nobody looks at here
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from belfry.schedules.outcomes import Outcome


def asked_in(body: bytes, at: int = 0) -> tuple[bytes, bytes, bytes] | None:
    """Tenant, schedule and request id of an event, without reading the rest; None without an id.

    Only for what this release wrote: a reader that waits for verdicts skips all other records.
    IndexError for bytes that are no event.
    """
    tenant, at = _text(body, at)
    schedule_id, at = _text(body, at)
    _, at = _number(body, at)
    branch, at = _number(body, at)
    return None if branch == 0 else (tenant, schedule_id, _text(body, at)[0])


def _text(body: bytes, at: int) -> tuple[bytes, int]:
    size, at = _number(body, at)
    return body[at : at + size], at + size


def _number(body: bytes, at: int) -> tuple[int, int]:
    """A number of Avro's that is not negative, and where the next byte lies."""
    number = shift = 0
    while True:
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1, at
        shift += 7


class Headline(NamedTuple):
    """What the head of a lifecycle event says: all that an index of events needs.

    Names are UTF-8 as they lie in the record; instants are epoch milliseconds.
    """

    tenant: bytes
    schedule_id: bytes
    outcome: Outcome
    at_ms: int
    due_ms: int | None


_OUTCOMES: Final = tuple(Outcome)
_ODD_OR_LONG: Final = 0x81
# Bytes of an instant of the years 1987 to 2109.
_SIX: Final = 6
# An int of Avro's.
_MOST_ATTEMPTS: Final = 2**31 - 1


def headline(body: bytes) -> Headline:
    """The head of an event that this release wrote; IndexError for bytes that are none.

    The history asks it of each record, so short names and instants of six bytes, as most are, are
    taken out without a call for each field; a property test holds both ways to one answer.
    """
    try:
        id_at = 1 + (body[0] >> 1)
        outcome_at = id_at + 1 + (body[id_at] >> 1)
        outcome, at = body[outcome_at], outcome_at + 1
        odd = body[0] | body[id_at] | outcome
        for _ in ("request_id", "fire_id"):
            if body[at]:
                odd |= body[at] | body[at + 1]
                at += 1 + (body[at + 1] >> 1)
            at += 1
        if body[at]:
            odd |= body[at]
            at += 1
            while body[at] >= 0x80:
                at += 1
        at += 1
        at_ms, size = _instant_at(body[at : at + _SIX])
        at += size
        odd |= body[at]
        due_ms = _instant_at(body[at + 1 : at + 1 + _SIX])[0] if body[at] else None
        if not odd & _ODD_OR_LONG:
            tenant, schedule_id = body[1:id_at], body[id_at + 1 : outcome_at]
            return Headline(tenant, schedule_id, _OUTCOMES[outcome >> 1], at_ms, due_ms)
    except IndexError:
        pass  # Longer than that, or no event.
    return _headline(body)


@lru_cache(maxsize=256)
def _instant_at(coded: bytes) -> tuple[int, int]:
    """The instant that stands at the begin of some bytes, and its size."""
    return _number(coded, 0)


def attempt_in(body: bytes) -> int | None:
    """After how many attempts a delivery ended, of an event that this release wrote.

    None where the event is about no delivery, and where its bytes end before that is said, or say
    what is no attempt: the history reads what others may have written, and goes on.
    """
    try:
        found = _attempt_in(body)
    except IndexError:
        return None
    return None if found is None or found > _MOST_ATTEMPTS else found


def _attempt_in(body: bytes) -> int | None:
    at = _past_texts(body, 0, 2)
    _, at = _number(body, at)
    at = _past_options(body, at, 2)
    if body[at]:
        _, at = _number(body, at + 1)
    else:
        at += 1
    _, at = _number(body, at)
    if body[at]:
        _, at = _number(body, at + 1)
    else:
        at += 1
    at = _past_options(body, at, 3)
    return _number(body, at + 1)[0] if body[at] else None


def _past_texts(body: bytes, at: int, texts: int) -> int:
    for _ in range(texts):
        size, at = _number(body, at)
        at += size
    return at


def _past_options(body: bytes, at: int, texts: int) -> int:
    """Behind so many texts that may be null."""
    for _ in range(texts):
        at = _past_texts(body, at + 1, 1) if body[at] else at + 1
    return at


def _headline(body: bytes) -> Headline:
    tenant, at = _text(body, 0)
    schedule_id, at = _text(body, at)
    outcome, at = _number(body, at)
    for _ in ("request_id", "fire_id"):
        branch, at = _number(body, at)
        if branch:
            _, at = _text(body, at)
    branch, at = _number(body, at)
    if branch:
        _, at = _number(body, at)
    at_ms, at = _number(body, at)
    branch, at = _number(body, at)
    due_ms = _number(body, at)[0] if branch else None
    return Headline(tenant, schedule_id, _OUTCOMES[outcome], at_ms, due_ms)
