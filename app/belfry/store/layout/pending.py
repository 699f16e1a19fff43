"""The record of a schedule that waits: numbers that change from fire to fire, then the definition.

    format row kind flags │ due nominal accepted │ seq life version occurrence │ definition
    ◄───── 4 bytes ──────►│◄───── 3 × i64 ──────►│◄── 24 bytes ───────────────►│ what the user asked

Behind it lie the last fires of what recurs (`kept_fires.py`), where the flags say so.

The definition is the kind and all that lies behind the number of the next fire.  Two requests ask
for the same thing exactly if these bytes are equal (`same_definition`).  The next occurrence has
the same definition: `next_record` only writes new instants and a number into the old bytes.

`Pending` is that record with names.  `decode_row` takes it apart in one call of one struct, to a
bare tuple in the same order (`PendingRow`): that is made for each event that fires, and is taken
apart at half the cost of one that has names.  `as_pending` gives names to it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.schedules.request import PlainRequest
from belfry.schedules.rule import ONE_SHOT, RECURRING
from belfry.schedules.triggers.registry import KINDS
from belfry.store.layout.kept_fires import (
    MOST_KEPT,
    NEWER_OF_FULL,
    NUMBER_OF_FULL,
    SIZE_OF_FULL,
    KeptFire,
    fires_behind,
    size_behind,
    with_one_more,
)
from belfry.store.layout.records import FORMAT, PENDING

KIND_CODES: Final = {name: kind.code for name, kind in KINDS.items()}
AT: Final = KIND_CODES["AT"]
CRON: Final = KIND_CODES["CRON"]

# format, row, kind, flags, due, nominal, accepted, seq, life, version, occurrence
_HEAD: Final = Struct(">BBBBqqqQQII")
# The same, then when, jitter, lengths: tenant, id, group, type; key, headers, extra, payload
_BOTH: Final = Struct(">BBBBqqqQQIIqqBBBBiIIi")
_DEFINITION_AT: Final = _HEAD.size
_CONTENT_AT: Final = _BOTH.size
_SORT_KEY: Final = Struct(">4xq16xQ")
# Format to flags as they were, due, nominal, accepted to version as they were, occurrence
_NEXT: Final = Struct(">4sqq28sI")
_SEQ: Final = Struct(">Q")
_SEQ_AT: Final = 28
_KIND_AT: Final = 2
_FLAGS_AT: Final = 3
_BEHIND_INSTANTS: Final = slice(20, 48)
_OF_FULL: Final = slice(_DEFINITION_AT, -SIZE_OF_FULL)
_RULE_BYTES: Final = slice(80, 84)
_PAYLOAD_BYTES: Final = slice(84, 88)

# The largest version, and the largest number of a fire, that has room at rest.
MOST_NUMBER: Final = (1 << 32) - 1

# Flags: the schedule is paused; its last fires lie behind its definition.
PAUSED: Final = 1
KEPT_FIRES: Final = 2
FLAGS: Final = PAUSED | KEPT_FIRES

# How records begin that need no closer look in a replay.
HEAD_OF_PENDING: Final = bytes((FORMAT, PENDING))
_NO_RULE: Final = bytes(4)
_KNOWN: Final = {
    kind: frozenset(
        bytes((FORMAT, PENDING, code, flags))
        for flags in range(FLAGS + 1)
        if kind in RECURRING or not flags & KEPT_FIRES
    )
    for kind, code in KIND_CODES.items()
}
_ONE_SHOTS: Final = frozenset[bytes]().union(*(_KNOWN[kind] for kind in ONE_SHOT))
_RECURRING: Final = frozenset[bytes]().union(*(_KNOWN[kind] for kind in RECURRING))


class Pending(NamedTuple):
    """A schedule that waits.  Texts are UTF-8 bytes; empty means absent for group and type.

    `when` is of AT the instant, of AFTER the delay, both as given.  `extra` holds the rule of what
    recurs or says how late it may be; most have none.
    """

    due_ms: int
    nominal_ms: int
    accepted_ms: int
    seq: int
    life: int
    version: int
    occurrence: int
    kind: int
    when: int
    jitter_ms: int
    tenant: bytes
    schedule_id: bytes
    group: bytes
    event_type: bytes
    key: bytes | None
    headers: bytes
    extra: bytes
    payload: bytes | None

    @property
    def name(self) -> bytes:
        """The changelog key of the schedule."""
        return b"%b/%b" % (self.tenant, self.schedule_id)

    @property
    def sort_key(self) -> tuple[int, int]:
        """Due instant and sequence: the order in which events leave."""
        return self.due_ms, self.seq

    @property
    def once_as(self) -> tuple[int, int, int]:
        """Kind, instant or delay, and jitter: when a one-shot is due."""
        return self.kind, self.when, self.jitter_ms

    def at(self, due_ms: int, nominal_ms: int) -> Pending:
        """The same occurrence at other instants."""
        return _new(Pending, (due_ms, nominal_ms, *self[2:]))

    def following(self, due_ms: int, nominal_ms: int, occurrence: int) -> Pending:
        """The occurrence of this number, which follows."""
        return _new(Pending, (due_ms, nominal_ms, *self[2:6], occurrence, *self[7:]))


# The fields of `Pending` in their order, without names.
PendingRow = tuple[
    int, int, int, int, int, int, int, int, int, int,
    bytes, bytes, bytes, bytes, bytes | None, bytes, bytes, bytes | None,
]  # fmt: skip

_new: Final = tuple.__new__


def as_pending(row: PendingRow) -> Pending:
    """The same row with names, made without the class's constructor."""
    return _new(Pending, row)


def encode_pending(row: Pending, flags: int = 0) -> bytes:
    """The record of a waiting schedule."""
    (due_ms, nominal_ms, accepted_ms, seq, life, version, occurrence, kind, when, jitter_ms,
     tenant, schedule_id, group, event_type, key, headers, extra, payload) = row  # fmt: skip
    head = _BOTH.pack(
        FORMAT, PENDING, kind, flags, due_ms, nominal_ms, accepted_ms, seq, life, version,
        occurrence, when, jitter_ms, len(tenant), len(schedule_id), len(group), len(event_type),
        -1 if key is None else len(key), len(headers), len(extra),
        -1 if payload is None else len(payload),
    )  # fmt: skip
    return b"".join(
        (head, tenant, schedule_id, group, event_type, key or b"", headers, extra, payload or b"")
    )


def encode_plain(request: PlainRequest, accepted_ms: int, seq: int, life: int) -> bytes:
    """The record of a plain request's schedule: that of `encode_pending`, with less to pass on."""
    tenant, schedule_id, due_ms, event_type, group, key, payload, _ = request
    group, event_type = group or b"", event_type or b""
    head = _BOTH.pack(
        FORMAT, PENDING, AT, 0, due_ms, due_ms, accepted_ms, seq, life, 1, 0, due_ms, 0,
        len(tenant), len(schedule_id), len(group), len(event_type),
        -1 if key is None else len(key), 0, 0, -1 if payload is None else len(payload),
    )  # fmt: skip
    return b"".join((head, tenant, schedule_id, group, event_type, key or b"", payload or b""))


def decode_pending(record: bytes) -> Pending:
    """The waiting schedule in a record."""
    return _new(Pending, decode_row(record))


def decode_row(record: bytes) -> PendingRow:
    """The same without names."""
    (_, _, kind, _, due, nominal, accepted, seq, life, version, occurrence, when, jitter,
     tenant_n, id_n, group_n, type_n, key_n, headers_n, extra_n, payload_n,
    ) = _BOTH.unpack_from(record)  # fmt: skip
    a = _CONTENT_AT + tenant_n
    b = a + id_n
    c = b + group_n
    d = c + type_n
    e = d + (key_n if key_n > 0 else 0)
    f = e + headers_n
    g = f + extra_n
    return (
        due, nominal, accepted, seq, life, version, occurrence, kind, when, jitter,
        record[_CONTENT_AT:a], record[a:b],
        record[b:c] if group_n else b"", record[c:d] if type_n else b"",
        None if key_n < 0 else record[d:e], record[e:f] if headers_n else b"",
        record[f:g] if extra_n else b"", None if payload_n < 0 else record[g : g + payload_n],
    )  # fmt: skip


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
    return record[_KIND_AT], record[_FLAGS_AT]


def fires_once(record: bytes) -> bool:
    """Whether it is a one-shot that says nothing about lateness or locks: it has no rule."""
    return record[:4] in _ONE_SHOTS and record[_RULE_BYTES] == _NO_RULE


def is_one_shot(record: bytes) -> bool:
    """Whether it is of a kind that fires once, with flags that this release knows."""
    return record[:4] in _ONE_SHOTS


def has_rule(record: bytes) -> bool:
    """Whether it is of a kind, with flags, that this release knows, and its rule has to be read."""
    head = record[:4]
    return head in _RECURRING or (head in _ONE_SHOTS and record[_RULE_BYTES] != _NO_RULE)


def paused(record: bytes) -> bool:
    """Whether the schedule is paused."""
    return bool(record[_FLAGS_AT] & PAUSED)


def payload_bytes(record: bytes) -> int | None:
    """Size of the payload; None for a null one."""
    size = int.from_bytes(record[_PAYLOAD_BYTES], "big", signed=True)
    return None if size < 0 else size


def same_definition(one: bytes, other: bytes) -> bool:
    """Whether two records hold the same definition, whatever their instants."""
    same_kind = one[_KIND_AT] == other[_KIND_AT]
    return same_kind and _definition(one) == _definition(other)


def _definition(record: bytes) -> bytes:
    end = len(record) - (size_behind(record) if record[_FLAGS_AT] & KEPT_FIRES else 0)
    return record[_DEFINITION_AT:end]


def last_fires(record: bytes) -> list[KeptFire]:
    """The last fires of a schedule that recurs and waits, the oldest first."""
    if not record[_FLAGS_AT] & KEPT_FIRES:
        return []
    return fires_behind(record, decode_row(record)[5])


# -- written into the bytes ----------------------------------------------------------------------


def with_flags(record: bytes, flags: int) -> bytes:
    """The same record with other flags."""
    return b"%b%c%b" % (record[:_FLAGS_AT], flags, record[_FLAGS_AT + 1 :])


def held(record: bytes) -> bytes:
    """The same record, paused."""
    return with_flags(record, record[_FLAGS_AT] | PAUSED)


def resumed(record: bytes) -> bytes:
    """The same record, not paused."""
    return with_flags(record, record[_FLAGS_AT] & ~PAUSED)


def with_fires_of(before: bytes, record: bytes) -> bytes:
    """A record that has no fires yet, with those that the record of before has."""
    if not before[_FLAGS_AT] & KEPT_FIRES or not has_rule(with_flags(record, KEPT_FIRES)):
        return record
    if before[-1] > MOST_KEPT:
        # A later release has written it, in a way of its own.
        return record
    behind = before[-size_behind(before) :]
    return with_flags(record, record[_FLAGS_AT] | KEPT_FIRES) + behind


def without_fires(record: bytes) -> bytes:
    """A record without its last fires, as a release reads it that knows of none."""
    if not record[_FLAGS_AT] & KEPT_FIRES:
        return record
    return with_flags(record[: -size_behind(record)], record[_FLAGS_AT] & ~KEPT_FIRES)


def with_seq(record: bytes, seq: int) -> bytes:
    """The same record with another sequence."""
    return b"".join((record[:_SEQ_AT], _SEQ.pack(seq), record[_SEQ_AT + _SEQ.size :]))


def next_record(
    record: bytes, due_ms: int, nominal_ms: int, occurrence: int, fire: bytes | None = b""
) -> bytes:
    """The record of an occurrence that follows: what follows `fire` has it among its last fires.

    None: no fires are kept, and those that the record has are left out.
    """
    if fire is None:
        record = without_fires(record)
    head = _NEXT.pack(record[:4], due_ms, nominal_ms, record[_BEHIND_INSTANTS], occurrence)
    if not fire:
        return head + record[_DEFINITION_AT:]
    if not record[_FLAGS_AT] & KEPT_FIRES:
        return b"".join(
            (with_flags(head, head[_FLAGS_AT] | KEPT_FIRES), record[_DEFINITION_AT:], fire, b"\1")
        )
    if record[-1] == MOST_KEPT:
        return b"".join((head, record[_OF_FULL], record[NEWER_OF_FULL], fire, NUMBER_OF_FULL))
    return head + with_one_more(record, _DEFINITION_AT, fire)


# -- the user's headers --------------------------------------------------------------------------


def encode_headers(headers: list[tuple[bytes, bytes | None]]) -> bytes:
    """User headers: for each the name's length, the name, the value's length (-1: null), it."""
    parts: list[bytes] = []
    for name, value in headers:
        size = -1 if value is None else len(value)
        parts += (len(name).to_bytes(2, "big"), name, size.to_bytes(4, "big", signed=True))
        if value:
            parts.append(value)
    return b"".join(parts)


def decode_headers(encoded: bytes) -> list[tuple[str, bytes | None]]:
    """User headers in their order, repeats and nulls kept."""
    headers: list[tuple[str, bytes | None]] = []
    at = 0
    while at < len(encoded):
        start = at + 2
        at = start + int.from_bytes(encoded[at:start], "big")
        name = encoded[start:at].decode()
        size = int.from_bytes(encoded[at : at + 4], "big", signed=True)
        at += 4
        headers.append((name, None if size < 0 else encoded[at : at + size]))
        at += max(size, 0)
    return headers
