"""Keys of a partition's local store, and of its changelog.

Local keys begin with the time for due rows, and with the name for rows that are asked by name:

    t | minute u32 | lane | due i64 | seq u64   record   the timeline, bucket by bucket
    b | tenant \\0 | due i64 | seq u64           record   a tenant's backlog: due, but held back
    c | tenant \\0 | due i64 | seq u64           record   a tenant's catch-up queue: all are to fire
    b | tenant \\1 | level | due i64 | seq u64   record   the same of another priority than 0; c too
    p | changelog key                           record   paused: waits for no instant
    h | tenant \\0 | lock | due i64 | seq u64    record   held behind an ack lock
    a | until i64 | changelog key               empty    when the wait for an acknowledgement ends
    k | changelog key                           location, marker, verdict or settings
    n | tenant \\0 | minute u32                  how many wait: a minute bucket (`buckets.py`)
    e | by u8 | over i64 | offset | number      names whose rows are over then (`ends.py`)
    m | name                                    what the store knows of itself

Backlog and catch-up queue are the two per-tenant queues.  In each *level* of them, and behind each
lock, rows lie by their *sort key*: due instant, then sequence.  A level is no byte for priority 0,
else one: 1 for priority 9, up to 19 for -9.  `lane` is one zero byte today, which all tenants
share; other values are room for dividing a minute, should that ever be needed.

An event that is due at 2026-12-01T09:00:00.000Z, with sequence 7, in the timeline and in the
backlog of `shop`:

    74  01c8c69c  00  000001a230d51280  0000000000000007     "t", minute 29 935 260, lane 0
    62  73686f70  00  000001a230d51280  0000000000000007     "b", "shop", a zero byte

So a scan of the timeline from one sort key to another meets the rows due between them, in due
order, and reads nothing else.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

MINUTE_MS: Final = 60_000

_TIMELINE: Final = Struct(">cIBqQ")
_SORT_KEY: Final = Struct(">qQ")
_UNTIL: Final = Struct(">q")
# The hot path packs by itself, and takes the layout from here.
pack_sort_key: Final = _SORT_KEY.pack
pack_timeline_key: Final = _TIMELINE.pack

# Due instant (epoch ms) and sequence: the order in which events leave.
SortKey = tuple[int, int]
FIRST_SORT_KEY: Final = (0, 0)

TIMELINE_PREFIX: Final = b"t"
TIMELINE_END: Final = b"u"
BACKLOG_PREFIX: Final = b"b"
BACKLOG_END: Final = b"c"
CATCH_UP_PREFIX: Final = b"c"
CATCH_UP_END: Final = b"d"
LOCKED_PREFIX: Final = b"h"
LOCKED_END: Final = b"i"
UNTIL_PREFIX: Final = b"a"
UNTIL_END: Final = b"b"
PAUSED_PREFIX: Final = b"p"
PAUSED_END: Final = b"q"
NAMED_PREFIX: Final = b"k"
NAMED_END: Final = b"l"

META_QUEUE: Final = b"mline"
META_LEVEL: Final = b"mlevel"
META_READABLE: Final = b"mreadable"
META_TENANT: Final = b"mtenant"
META_BUCKETS: Final = b"mbuckets"
META_ENDS: Final = b"mends"
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


def timeline_sort_key(key: bytes) -> SortKey:
    """Due instant (epoch ms) and sequence of a key of the timeline."""
    _, _, _, due_ms, seq = _TIMELINE.unpack(key)
    return due_ms, seq


def queue_prefix(queue: bytes, tenant: bytes, level: bytes = b"") -> bytes:
    """Where a level of a tenant's backlog, or of its catch-up queue, begins."""
    return b"%b%b\1%b" % (queue, tenant, level) if level else b"%b%b\0" % (queue, tenant)


def queue_range(queue: bytes, tenant: bytes, level: bytes = b"") -> tuple[bytes, bytes]:
    """The keys between which a level of a tenant's queue lies."""
    prefix = queue_prefix(queue, tenant, level)
    return prefix, following(prefix)


def queue_key(queue: bytes, tenant: bytes, due_ms: int, seq: int, level: bytes = b"") -> bytes:
    """Where an event lies in its tenant's backlog, or in its catch-up queue."""
    if level:
        return queue_prefix(queue, tenant, level) + _SORT_KEY.pack(due_ms, seq)
    return b"%b%b\0%b" % (queue, tenant, _SORT_KEY.pack(due_ms, seq))


def queue_of(key: bytes) -> bytes:
    """The queue that a key lies in: its letter and tenant, then a one byte and a level, if any."""
    end = len(key) - _SORT_KEY.size
    return key[:end] if key[end - 1] else key[: end - 1]


def level_of(queue: bytes) -> tuple[bytes, bytes]:
    """Tenant and level in the name of a queue, without its letter."""
    return (queue[:-2], queue[-1:]) if queue[-2:-1] == b"\1" else (queue, b"")


def sort_key(key: bytes) -> SortKey:
    """Due instant (epoch ms) and sequence of a key of a queue, or of a row behind a lock."""
    due_ms, seq = _SORT_KEY.unpack_from(key, len(key) - _SORT_KEY.size)
    return due_ms, seq


def due_of(key: bytes) -> int:
    """The due instant of such a key, epoch ms."""
    return sort_key(key)[0]


def queue_size_key(queue: bytes) -> bytes:
    """Where the size of a queue lies that `queue_of` names; those of levels lie by themselves."""
    return (META_LEVEL if level_of(queue)[1] else META_QUEUE) + queue


def queue_sizes_range(queue: bytes, meta: bytes = META_QUEUE) -> tuple[bytes, bytes]:
    """The keys between which the sizes of backlogs, or of catch-up queues, lie.

    With `META_LEVEL` they are those of the levels for other priorities than 0.
    """
    prefix = meta + queue
    return prefix, following(prefix)


def locked_prefix(tenant: bytes, lock: bytes) -> bytes:
    """Where the rows behind a tenant's lock begin: a letter, then the name of the lock."""
    return b"h%b\0%b%c%b" % (tenant, lock[:1], len(lock) - 1, lock[1:])


def locked_key(tenant: bytes, lock: bytes, due_ms: int, seq: int) -> bytes:
    """Where an event lies that a tenant's lock holds back."""
    return locked_prefix(tenant, lock) + _SORT_KEY.pack(due_ms, seq)


def behind_lock(tenant: bytes, lock: bytes) -> bytes:
    """The first key behind all that a tenant's lock holds back."""
    return locked_prefix(tenant, lock) + b"\xff" * (_SORT_KEY.size + 1)


def lock_of(key: bytes) -> tuple[bytes, bytes]:
    """Tenant and lock of the key of a row behind a lock."""
    end = key.index(b"\0")
    return key[1:end], key[end + 1 : end + 2] + key[end + 3 : -_SORT_KEY.size]


def until_key(until_ms: int, awaited: bytes) -> bytes:
    """Where it lies that the acknowledgement of this changelog key is awaited until an instant."""
    return UNTIL_PREFIX + _UNTIL.pack(until_ms) + awaited


def until_of(key: bytes) -> tuple[int, bytes]:
    """The instant of such a key, and the changelog key."""
    return _UNTIL.unpack_from(key, 1)[0], key[1 + _UNTIL.size :]


def named_key(name: bytes) -> bytes:
    """Where the row under a changelog key is found."""
    return b"k" + name


def name_in(key: bytes) -> bytes:
    """The changelog key that such a key holds."""
    return key[1:]


def names_range(tenant: bytes) -> tuple[bytes, bytes]:
    """The keys between which the names of a tenant's schedules lie."""
    return b"k%b/" % tenant, b"k%b0" % tenant


def tenant_of(name: bytes) -> bytes:
    """The tenant in the name of a schedule."""
    return name[: name.index(b"/")]


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


def awaited_names(key: bytes) -> tuple[bytes, bytes]:
    """Tenant and id of the fire in such a key."""
    tenant, _, fire_id = key[len(AWAITED_PREFIX) :].rpartition(b"/")
    return tenant, fire_id


def manifest_key(txn_seq: int) -> bytes:
    """Changelog key of a manifest: the last `MANIFEST_SLOTS` of them survive compaction."""
    return MANIFEST_PREFIX + (txn_seq % MANIFEST_SLOTS).to_bytes(2, "big")


def following(prefix: bytes) -> bytes:
    """The first key behind all those with a prefix, whose last byte is not 255."""
    return prefix[:-1] + bytes((prefix[-1] + 1,))
