"""Key layout of a partition's local store, and of its changelog.

Local keys are time-first for what is due and key-first for what is asked by name:

    t | minute u32 | lane | due i64 | seq u64   record   the timeline, bucket by bucket
    b | tenant \\0 | due i64 | seq u64           record   the backlog: due, but held back
    c | tenant \\0 | due i64 | seq u64           record   catching up: each late one is to fire
    p | changelog key                           record   paused: waits for no instant
    h | tenant \\0 | gate | due i64 | seq u64    record   held behind a gate that is closed
    a | until i64 | changelog key               empty    when the wait for an acknowledgement ends
    k | changelog key                           place, marker, verdict or settings
    m | name                                    what the store knows of itself

All numbers are big-endian, so that bytes sort as numbers do.  `lane` is one zero byte today: the
shared lane of a bucket; other lanes are room for tenants that crowd a bucket.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

MINUTE_MS: Final = 60_000

_TIMELINE: Final = Struct(">cIBqQ")
_BACKLOG_TAIL: Final = Struct(">qQ")
_UNTIL: Final = Struct(">q")

pack_timeline: Final = _TIMELINE.pack

TIMELINE_PREFIX: Final = b"t"
TIMELINE_END: Final = b"u"
BACKLOG_PREFIX: Final = b"b"
BACKLOG_END: Final = b"c"
CATCH_UP_PREFIX: Final = b"c"
CATCH_UP_END: Final = b"d"
GATED_PREFIX: Final = b"h"
GATED_END: Final = b"i"
UNTIL_PREFIX: Final = b"a"
UNTIL_END: Final = b"b"
PAUSED_PREFIX: Final = b"p"
PAUSED_END: Final = b"q"
NAMED_PREFIX: Final = b"k"
NAMED_END: Final = b"l"

META_LINE: Final = b"mline"
META_READABLE: Final = b"mreadable"
META_STAMP: Final = b"mstamp"
META_STATE: Final = b"mstate"
META_REPLAY: Final = b"mreplay"

# Changelog keys that are no schedule's start with a zero byte, which no tenant's name holds.
REQUEST_PREFIX: Final = b"\0r"
ZONES_KEY: Final = b"\0z"
IDENTITY_KEY: Final = b"\0i"
AWAITED_PREFIX: Final = b"\0a"
AWAITED_END: Final = b"\0b"
MANIFEST_PREFIX: Final = b"\0m"
SETTINGS_KEY: Final = b"\0s"
STATEMENT_KEY: Final = b"\0t"
MANIFEST_SLOTS: Final = 4096


def timeline_key(due_ms: int, seq: int) -> bytes:
    """Where an event due at `due_ms` lies in the timeline."""
    return _TIMELINE.pack(b"t", due_ms // MINUTE_MS, 0, due_ms, seq)


def timeline_place(key: bytes) -> tuple[int, int]:
    """Due instant (epoch ms) and acceptance sequence of a timeline key."""
    _, _, _, due_ms, seq = _TIMELINE.unpack(key)
    return due_ms, seq


def line_prefix(line: bytes, tenant: bytes) -> bytes:
    """Where a tenant's backlog, or its line of those that catch up, begins."""
    return b"%b%b\0" % (line, tenant)


def line_key(line: bytes, tenant: bytes, due_ms: int, seq: int) -> bytes:
    """Where an event lies in its tenant's backlog, or in its line of those that catch up."""
    return b"%b%b\0%b" % (line, tenant, _BACKLOG_TAIL.pack(due_ms, seq))


def line_of(key: bytes) -> bytes:
    """The line that a key lies in: its letter, then its tenant."""
    return key[: -_BACKLOG_TAIL.size - 1]


def line_due(key: bytes) -> int:
    """The due instant of a key of a line, epoch ms."""
    return line_place(key)[0]


def gated_prefix(tenant: bytes, gate: bytes) -> bytes:
    """Where what is held behind a tenant's gate begins: a letter, then what it is the gate of."""
    return b"h%b\0%b%c%b" % (tenant, gate[:1], len(gate) - 1, gate[1:])


def gated_key(tenant: bytes, gate: bytes, due_ms: int, seq: int) -> bytes:
    """Where an event lies that a tenant's gate holds back."""
    return gated_prefix(tenant, gate) + _BACKLOG_TAIL.pack(due_ms, seq)


def behind_gate(tenant: bytes, gate: bytes) -> bytes:
    """The first key behind all that a tenant's gate holds back."""
    return gated_prefix(tenant, gate) + b"\xff" * (_BACKLOG_TAIL.size + 1)


def gate_of(key: bytes) -> tuple[bytes, bytes]:
    """Tenant and gate of a key of what is held behind a gate."""
    end = key.index(b"\0")
    return key[1:end], key[end + 1 : end + 2] + key[end + 3 : -_BACKLOG_TAIL.size]


def line_place(key: bytes) -> tuple[int, int]:
    """Due instant (epoch ms) and sequence of a key of a line, or of what a gate holds back."""
    due_ms, seq = _BACKLOG_TAIL.unpack_from(key, len(key) - _BACKLOG_TAIL.size)
    return due_ms, seq


def until_key(until_ms: int, awaited: bytes) -> bytes:
    """Where it lies that the acknowledgement of this changelog key is awaited until an instant."""
    return UNTIL_PREFIX + _UNTIL.pack(until_ms) + awaited


def until_of(key: bytes) -> tuple[int, bytes]:
    """The instant of such a key, and the changelog key."""
    return _UNTIL.unpack_from(key, 1)[0], key[1 + _UNTIL.size :]


def paused_key(name: bytes) -> bytes:
    """Where the paused schedule of this changelog key lies."""
    return PAUSED_PREFIX + name


def schedule_key(tenant: str, schedule_id: str) -> bytes:
    """Changelog key of a schedule; unambiguous, for no tenant holds a slash."""
    return f"{tenant}/{schedule_id}".encode()


def request_key(tenant: str, request_id: str) -> bytes:
    """Changelog key of the verdict of a request that has an id."""
    return answer_key(tenant.encode(), request_id.encode())


def answer_key(tenant: bytes, request_id: bytes) -> bytes:
    """The same, of names that are bytes."""
    return b"%b%b/%b" % (REQUEST_PREFIX, tenant, request_id)


def awaited_key(tenant: bytes, fire_id: bytes) -> bytes:
    """Changelog key of a fire whose acknowledgement is awaited."""
    return b"%b%b/%b" % (AWAITED_PREFIX, tenant, fire_id)


def manifest_key(txn_seq: int) -> bytes:
    """Changelog key of a manifest: the last `MANIFEST_SLOTS` of them survive compaction."""
    return MANIFEST_PREFIX + (txn_seq % MANIFEST_SLOTS).to_bytes(2, "big")
