"""A pending record without a decoder: reads of its bytes, and writes into them.

Most uses of a record need one field of it, or change one.  To take all of it apart would cost more
than the rest of the work:

    format row kind flags │ due nominal accepted │ seq life version occurrence │ definition

    is_pending                format and row
    fires_once, has_rule      all of the first four: a kind and flags that this release knows
    due_and_seq               two numbers of the head
    paused, depends, encrypted, away  bits of the flags
    same_definition           the kind, and all behind the head but the last fires
    held, resumed             another byte of flags
    next_record               other instants and another occurrence

The successor of a fire (`next_record`) has the same definition and other instants, so it is the old
bytes with a new head, and with the fire among the last ones that are kept behind it.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from belfry.schedules.rule import ONE_SHOT, RECURRING
from belfry.schedules.triggers.acknowledged import DEPENDING
from belfry.store.layout.day_reference import size_in
from belfry.store.layout.kept_fires import (
    MOST_KEPT,
    NEWER_OF_FULL,
    NO_TALLY,
    NUMBER_OF_FULL,
    SIZE_OF_FULL,
    KeptFire,
    Tally,
    fires_behind,
    size_behind,
    tally_behind,
    tally_of_fires,
    with_one_more,
    with_one_more_behind_tally,
    with_tally,
    without_tally,
)
from belfry.store.layout.pending import (
    AWAY,
    DEFINITION_AT,
    ENCRYPTED,
    FLAGS_AT,
    KIND_CODES,
    decode_row,
)
from belfry.store.layout.records import FORMAT, PENDING
from belfry.tenants.payload_keys import ENCRYPTION_BYTES

Row = tuple[bytes, bytes | None]

_SORT_KEY: Final = Struct(">4xq16xQ")
# Format to flags as they were, due, nominal, accepted to version as they were, occurrence
_NEXT: Final = Struct(">4sqq28sI")
_SEQ: Final = Struct(">Q")
_SEQ_AT: Final = 28
_OCCURRENCE: Final = Struct(">I")
_OCCURRENCE_AT: Final = 48
_KIND_AT: Final = 2
_BEHIND_INSTANTS: Final = slice(20, 48)
_OF_FULL: Final = slice(DEFINITION_AT, -SIZE_OF_FULL)
_RULE_BYTES: Final = slice(80, 84)
_PAYLOAD_BYTES: Final = slice(84, 88)

# Flags: the schedule is paused; its last fires lie behind its definition; the one that it waits for
# is not acknowledged yet; its payload is encrypted (`ENCRYPTED`), or lies in a day file (`AWAY`); a
# tally lies before its last fires.
PAUSED: Final = 1
KEPT_FIRES: Final = 2
DEPENDS: Final = 4
TALLY: Final = 16
FLAGS: Final = PAUSED | KEPT_FIRES | DEPENDS | ENCRYPTED | TALLY | AWAY
# With one of these a schedule lies where no due scan meets it.
_ASIDE: Final = PAUSED | DEPENDS
_BEHIND: Final = KEPT_FIRES | TALLY

# How records begin that need no closer look in a replay.
HEAD_OF_PENDING: Final = bytes((FORMAT, PENDING))
_NO_RULE: Final = bytes(4)
_KNOWN: Final = {
    kind: frozenset(
        bytes((FORMAT, PENDING, code, flags))
        for flags in range(FLAGS + 1)
        if (kind in RECURRING or not flags & KEPT_FIRES)
        and (kind in DEPENDING or not flags & DEPENDS)
        and flags & _BEHIND != TALLY
    )
    for kind, code in KIND_CODES.items()
}
_ONE_SHOTS: Final = frozenset[bytes]().union(*(_KNOWN[kind] for kind in ONE_SHOT))
_PLAIN_ONE_SHOTS: Final = frozenset(
    head for head in _ONE_SHOTS if not head[FLAGS_AT] & (ENCRYPTED | AWAY)
)
_RECURRING: Final = frozenset[bytes]().union(*(_KNOWN[kind] for kind in RECURRING))


# -- asked of the bytes, where the rest is not needed --------------------------------------------


def is_pending(record: bytes) -> bool:
    """Whether a row is the record of a schedule that waits."""
    return record[:2] == HEAD_OF_PENDING


def due_and_seq(record: bytes) -> tuple[int, int]:
    """Due instant (epoch ms) and sequence."""
    due_ms, seq = _SORT_KEY.unpack_from(record)
    return due_ms, seq


def kind_and_flags(record: bytes) -> tuple[int, int]:
    """Kind and flags, which may be of a later release."""
    return record[_KIND_AT], record[FLAGS_AT]


def fires_once(record: bytes) -> bool:
    """Whether it is a one-shot that says nothing about lateness or locks: it has no rule."""
    return record[:4] in _ONE_SHOTS and record[_RULE_BYTES] == _NO_RULE


def with_a_rule(rows: Iterable[Row]) -> list[Row]:
    """The pending records among rows of a changelog that need a closer look than `fires_once`."""
    return [
        row
        for row in rows
        if (record := row[1]) is not None
        and record[:2] == HEAD_OF_PENDING
        and not (record[:4] in _ONE_SHOTS and record[_RULE_BYTES] == _NO_RULE)
    ]


def is_one_shot(record: bytes) -> bool:
    """Whether it is of a kind that fires once, with flags that this release knows."""
    return record[:4] in _ONE_SHOTS


def is_plain_one_shot(record: bytes) -> bool:
    """Whether it is such a one-shot whose payload is there, and not encrypted."""
    return record[:4] in _PLAIN_ONE_SHOTS


def has_rule(record: bytes) -> bool:
    """Whether it is of a kind, with flags, that this release knows, and its rule has to be read."""
    head = record[:4]
    return head in _RECURRING or (head in _ONE_SHOTS and record[_RULE_BYTES] != _NO_RULE)


def paused(record: bytes) -> bool:
    """Whether the schedule is paused."""
    return bool(record[FLAGS_AT] & PAUSED)


def depends(record: bytes) -> bool:
    """Whether the schedule waits for an acknowledgement, so that its instant is not known yet."""
    return bool(record[FLAGS_AT] & DEPENDS)


def encrypted(record: bytes) -> bool:
    """Whether the payload is encrypted."""
    return bool(record[FLAGS_AT] & ENCRYPTED)


def away(record: bytes) -> bool:
    """Whether the payload lies in a day file."""
    return bool(record[FLAGS_AT] & AWAY)


def lies_aside(record: bytes) -> bool:
    """Whether no due scan may meet it: it is paused, or waits for an acknowledgement."""
    return bool(record[FLAGS_AT] & _ASIDE)


def payload_bytes(record: bytes) -> int | None:
    """Size of the payload, of an encrypted one before it was; None for a null one."""
    size = int.from_bytes(record[_PAYLOAD_BYTES], "big", signed=True)
    if size < 0:
        return None
    if record[FLAGS_AT] & AWAY:
        return size_in(record[-size:])
    return max(0, size - ENCRYPTION_BYTES) if encrypted(record) else size


def same_definition(one: bytes, other: bytes) -> bool:
    """Whether two records hold the same definition, whatever their instants."""
    same_kind = one[_KIND_AT] == other[_KIND_AT]
    return same_kind and _definition(one) == _definition(other)


def _definition(record: bytes) -> bytes:
    end = len(record) - (size_behind(record) if record[FLAGS_AT] & KEPT_FIRES else 0)
    return record[DEFINITION_AT:end]


def last_fires(record: bytes) -> list[KeptFire]:
    """The last fires of a schedule that recurs and waits, the oldest first."""
    if not record[FLAGS_AT] & KEPT_FIRES:
        return []
    return fires_behind(record, decode_row(record)[5], tally=bool(record[FLAGS_AT] & TALLY))


def occurrence_of(record: bytes) -> int:
    """Number of the next fire."""
    occurrence: int = _OCCURRENCE.unpack_from(record, _OCCURRENCE_AT)[0]
    return occurrence


def tally_of(record: bytes) -> Tally:
    """Failures among the occurrences of a schedule that recurs and waits."""
    if record[FLAGS_AT] & TALLY:
        return tally_behind(record)
    occurrence = occurrence_of(record)
    # Those of another rule before lie among the last fires as well, and are not counted.
    return tally_of_fires(last_fires(record)[-occurrence:], occurrence) if occurrence else NO_TALLY


# -- written into the bytes ----------------------------------------------------------------------


def with_flags(record: bytes, flags: int) -> bytes:
    """The same record with other flags."""
    return b"%b%c%b" % (record[:FLAGS_AT], flags, record[FLAGS_AT + 1 :])


def held(record: bytes) -> bytes:
    """The same record, paused."""
    return with_flags(record, record[FLAGS_AT] | PAUSED)


def resumed(record: bytes) -> bytes:
    """The same record, not paused."""
    return with_flags(record, record[FLAGS_AT] & ~PAUSED)


def with_encrypted(record: bytes, payload: bytes) -> bytes:
    """The same record with an encrypted payload in place of the one that it has, an empty one not.

    All else stays to the byte, also the bytes behind the payload.
    """
    end = len(record) - (size_behind(record) if record[FLAGS_AT] & KEPT_FIRES else 0)
    start = end - int.from_bytes(record[_PAYLOAD_BYTES], "big")
    head = with_flags(record[: _PAYLOAD_BYTES.start], record[FLAGS_AT] | ENCRYPTED)
    size = len(payload).to_bytes(4, "big")
    return b"".join((head, size, record[_PAYLOAD_BYTES.stop : start], payload, record[end:]))


def with_fires_of(before: bytes, record: bytes, *, same_rule: bool = True) -> bytes:
    """A record that has no fires yet, with those that the record of before has.

    The tally comes with them, unless another rule numbers its occurrences from 0.
    """
    flags = before[FLAGS_AT] & _BEHIND
    if not flags or not has_rule(with_flags(record, KEPT_FIRES)):
        return record
    if before[-1] > MOST_KEPT + bool(flags & TALLY):
        # A later release has written it, in a way of its own.
        return record
    behind = before[-size_behind(before) :]
    if flags & TALLY and not same_rule:
        flags, behind = KEPT_FIRES, without_tally(behind)
        if behind == b"\0":
            return record
    return with_flags(record, record[FLAGS_AT] | flags) + behind


def without_fires(record: bytes) -> bytes:
    """A record without its last fires and its tally, as a release reads it that knows of none."""
    if not record[FLAGS_AT] & KEPT_FIRES:
        return record
    return with_flags(record[: -size_behind(record)], record[FLAGS_AT] & ~_BEHIND)


def tallied(record: bytes, late_ms: int, missed: int) -> bytes:
    """The record of a recurring schedule, with a late fire or missed occurrences counted.

    Of a record that has no fires the tally says that those before were not kept.
    """
    flags = record[FLAGS_AT]
    tally = tally_of(record)
    if not flags & KEPT_FIRES:
        tally = NO_TALLY._replace(first=occurrence_of(record))
        record += b"\0"
    tally = tally.counted(late_ms, missed)
    told = with_tally(record, tally, instead=bool(flags & TALLY))
    return with_flags(told, flags | _BEHIND)


def with_seq(record: bytes, seq: int) -> bytes:
    """The same record with another sequence."""
    return b"".join((record[:_SEQ_AT], _SEQ.pack(seq), record[_SEQ_AT + _SEQ.size :]))


def next_record(
    record: bytes, due_ms: int, nominal_ms: int, occurrence: int, fire: bytes | None = b""
) -> bytes:
    """The record of the next occurrence: the successor of `fire` has it among its last fires.

    None: no fires are kept, and those that the record has are left out.
    """
    if fire is None:
        record = without_fires(record)
    head = _NEXT.pack(record[:4], due_ms, nominal_ms, record[_BEHIND_INSTANTS], occurrence)
    if not fire:
        return head + record[DEFINITION_AT:]
    behind = record[FLAGS_AT] & _BEHIND
    if not behind and occurrence > 1:
        return next_record(tallied(record, 0, 0), due_ms, nominal_ms, occurrence, fire)
    if not behind:
        return b"".join(
            (with_flags(head, head[FLAGS_AT] | KEPT_FIRES), record[DEFINITION_AT:], fire, b"\1")
        )
    if behind != KEPT_FIRES:
        return head + with_one_more_behind_tally(record, DEFINITION_AT, fire)
    if record[-1] == MOST_KEPT:
        return b"".join((head, record[_OF_FULL], record[NEWER_OF_FULL], fire, NUMBER_OF_FULL))
    return head + with_one_more(record, DEFINITION_AT, fire)
