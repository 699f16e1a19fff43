"""The record of a schedule that waits: numbers that change from fire to fire, then the definition.

    format row kind flags │ due nominal accepted │ seq life version occurrence │ definition
    ◄───── 4 bytes ──────►│◄───── 3 × i64 ──────►│◄── 24 bytes ───────────────►│ what the user asked

Behind it lie the last fires of a recurring schedule (`kept_fires.py`), where the flags say so.

The definition is the kind and all that lies behind the number of the next fire.  Two requests ask
for the same thing exactly if these bytes are equal (`same_definition`).  The next occurrence has
the same definition: `next_record` only writes new instants and a number into the old bytes.  All
that goes without a decoder is in `pending_bytes.py`.

`Pending` is that record with names.  `decode_row` takes it apart in one call of one struct, to a
bare tuple in the same order (`PendingRow`): that is made for each event that fires, and is taken
apart at half the cost of one that has names.  `as_pending` gives names to it.

A payload may be encrypted, by a key of its tenant, or lie in a day file (`day_files.py`): then a
reference stands for it.  A flag says so at rest, and the type `Encrypted` or `Away` once it is
decoded, so that a record which is decoded and encoded again keeps the flag.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.schedules.request import PlainRequest
from belfry.schedules.triggers.registry import KINDS
from belfry.store.layout.records import FORMAT, PENDING

KIND_CODES: Final = {name: kind.code for name, kind in KINDS.items()}
AT: Final = KIND_CODES["AT"]
CRON: Final = KIND_CODES["CRON"]

# format, row, kind, flags, due, nominal, accepted, seq, life, version, occurrence
_HEAD: Final = Struct(">BBBBqqqQQII")
# The same, then when, jitter, lengths: tenant, id, group, type; key, headers, extra, payload
_BOTH: Final = Struct(">BBBBqqqQQIIqqBBBBiIIi")
DEFINITION_AT: Final = _HEAD.size
_CONTENT_AT: Final = _BOTH.size

# The flags of a record whose payload is encrypted, or lies in a day file; and where flags lie.
ENCRYPTED: Final = 8
AWAY: Final = 32
FLAGS_AT: Final = 3
_MARKED: Final = ENCRYPTED | AWAY

# The largest version, and the largest number of a fire, that has room at rest.
MOST_NUMBER: Final = (1 << 32) - 1


class Encrypted(bytes):
    """A payload that is encrypted; `tenants/payload_keys.py` has the key that opens it."""

    __slots__ = ()


class Away(bytes):
    """The reference to a payload in a day file: it is not a payload, and must never be fired."""

    __slots__ = ()


class Pending(NamedTuple):
    """A schedule that waits.  Texts are UTF-8 bytes; empty means absent for group and type.

    `when` is of AT the instant, of AFTER the delay, both as given.  `extra` holds the rule of a
    schedule that recurs or says how late it may be; most have none.
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
    """The record of a waiting schedule; the marks of its payload are set here alone."""
    (due_ms, nominal_ms, accepted_ms, seq, life, version, occurrence, kind, when, jitter_ms,
     tenant, schedule_id, group, event_type, key, headers, extra, payload) = row  # fmt: skip
    if (held := type(payload)) is Encrypted or held is Away:
        flags |= ENCRYPTED if held is Encrypted else AWAY
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
    return named(decode_row(record), record)


def named(row: PendingRow, record: bytes) -> Pending:
    """The row of a record with names, and its payload as `Encrypted` or `Away` where it is."""
    if record[FLAGS_AT] & _MARKED and row[-1] is not None:
        marked = Away if record[FLAGS_AT] & AWAY else Encrypted
        row = (*row[:-1], marked(row[-1]))
    return _new(Pending, row)


def decode_row(record: bytes) -> PendingRow:
    """The same without names; a payload that is encrypted, or away, is not marked as such."""
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
