"""Records of the changelog and the local store; a version byte first, in every one.

    pending   a schedule that waits: the head (numbers), the definition (what the user asked for)
    marker    a schedule that is over: fired, cancelled, completed; kept for a day, then a tombstone
    verdict   what became of a request that has an id; kept for an hour (older releases)
    answered  the same, with what was asked: a digest, the action, the schedule
    manifest  what one transaction did: one per transaction, numbered without gaps
    awaited   a fire that is to be acknowledged, until it is or its time-out is over
    zones     by which version of the time zone data the instants were found
    place     (local only) where the pending record of a schedule lies

Frozen numbers: `FORMAT`, the row letters, the struct layouts.  A change of any of them is a new
`FORMAT`, and a reader that meets one that it does not know stops its partition (`UnknownFormat`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.schedules.request import PlainRequest
from belfry.schedules.triggers.registry import KINDS

FORMAT: Final = 1
PENDING: Final = 1
MARKER: Final = 2
VERDICT: Final = 3
MANIFEST: Final = 4
PLACE: Final = 5
AWAITED: Final = 6
ZONES: Final = 7
ANSWERED: Final = 8

KIND_CODES: Final = {name: kind.code for name, kind in KINDS.items()}

AT: Final = KIND_CODES["AT"]

# format, row, kind, flags, due, nominal, accepted, seq, life, version, occurrence
_HEAD: Final = Struct(">BBBBqqqQQII")
# when, jitter, lengths: tenant, id, group, type; then key, headers, extra, payload
_DEFINITION: Final = Struct(">qqBBBBiIIi")
_BOTH: Final = Struct(">BBBBqqqQQIIqqBBBBiIIi")
DEFINITION_AT: Final = _HEAD.size
_INSTANTS: Final = Struct(">qq")
CONTENT_AT: Final = _BOTH.size
_MARKER: Final = Struct(">BBBBqqQII")
_VERDICT: Final = Struct(">BBBBqqI")
# format, row, sizes of outcome and code, at, due, version, generation, digest, sizes of action, id
_ANSWERED: Final = Struct(">BBBBqqIQ16sBB")
_MANIFEST: Final = Struct(">BBHQIqqQI16s")
_PLACE: Final = Struct(">BBBBqQ")
_WHEN: Final = Struct(">4xqQ")
_AWAITED: Final = Struct(">BBBBqqqIBB")

# The largest version, and the largest number of a fire, that has room at rest.
MOST_NUMBER: Final = (1 << 32) - 1

pack_place: Final = _PLACE.pack
# Says that an answer is about no life: 0 is the one that offset 0 of partition 0 began.
NO_LIFE: Final = 2**64 - 1
# Bytes that an answer keeps of a name.
MOST_NAMED: Final = 255

IN_TIMELINE: Final = 0
IN_BACKLOG: Final = 1
IN_PAUSED: Final = 2
IN_CATCH_UP: Final = 3
IN_GATED: Final = 4

# What a fire keeps closed until it is acknowledged.
CLOSES_GROUP: Final = 1
CLOSES_OWN: Final = 2

# Flags of a pending record.
PAUSED: Final = 1
FLAGS_AT: Final = 3

# Flags of a manifest.
READ_LEASE: Final = 1

ENDED_FIRED: Final = 0
ENDED_CANCELLED: Final = 1
ENDED_COMPLETED: Final = 2
ENDED_MISSED: Final = 3


class UnknownFormat(Exception):
    """A record that this version cannot read: the partition has to stop, not to guess."""


class Pending(NamedTuple):
    """A schedule that waits.  Texts are UTF-8 bytes; empty means absent for group and type."""

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


# A `Pending` without its name: made once per event, where building the class would show.
PendingRow = tuple[
    int, int, int, int, int, int, int, int, int, int,
    bytes, bytes, bytes, bytes, bytes | None, bytes, bytes, bytes | None,
]  # fmt: skip


class Marker(NamedTuple):
    """A schedule that is over: how, when it ended, and what it was."""

    how: int
    ended_ms: int
    due_ms: int
    life: int
    version: int
    occurrence: int


class Verdict(NamedTuple):
    """What became of a request that has an id: `outcome` is the outcome's name.

    An empty `digest` says that an older release wrote it, which did not keep what was asked.
    """

    outcome: str
    at_ms: int
    due_ms: int | None
    version: int | None
    code: str
    digest: bytes = b""
    action: str = ""
    schedule_id: str = ""
    generation: int | None = None


class Awaited(NamedTuple):
    """A fire that is to be acknowledged: what it keeps closed, when it fired, and until when."""

    closes: int
    fired_ms: int
    until_ms: int
    due_ms: int
    version: int
    schedule_id: bytes
    group: bytes


class Manifest(NamedTuple):
    """What one transaction did, and where the partition stands after it."""

    txn_seq: int
    owner_epoch: int
    position: int
    watermark_ms: int
    pending: int
    fired: int
    digest: bytes
    read_lease: bool = False


def encode_pending(row: PendingRow, flags: int = 0) -> bytes:
    """The record of a waiting schedule; a plain tuple in the order of `Pending` will do."""
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


def decode_row(record: bytes) -> PendingRow:
    """The waiting schedule in a record, as a plain tuple in the order of `Pending`."""
    (_, _, kind, _, due, nominal, accepted, seq, life, version, occurrence, when, jitter,
     tenant_n, id_n, group_n, type_n, key_n, headers_n, extra_n, payload_n,
    ) = _BOTH.unpack_from(record)  # fmt: skip
    a = CONTENT_AT + tenant_n
    b = a + id_n
    c = b + group_n
    d = c + type_n
    e = d + (key_n if key_n > 0 else 0)
    f = e + headers_n
    g = f + extra_n
    return (
        due, nominal, accepted, seq, life, version, occurrence, kind, when, jitter,
        record[CONTENT_AT:a], record[a:b], record[b:c], record[c:d],
        None if key_n < 0 else record[d:e], record[e:f], record[f:g],
        None if payload_n < 0 else record[g:],
    )  # fmt: skip


def decode_pending(record: bytes) -> Pending:
    """The waiting schedule in a record."""
    return Pending._make(decode_row(record))


def paused(record: bytes) -> bool:
    """Whether the schedule in a pending record is paused."""
    return bool(record[FLAGS_AT] & PAUSED)


def with_flags(record: bytes, flags: int) -> bytes:
    """The same pending record with other flags."""
    return b"%b%c%b" % (record[:FLAGS_AT], flags, record[FLAGS_AT + 1 :])


def next_record(record: bytes, due_ms: int, nominal_ms: int, occurrence: int) -> bytes:
    """The same pending record, of an occurrence that follows."""
    instants, number = _INSTANTS.pack(due_ms, nominal_ms), occurrence.to_bytes(4, "big")
    return b"".join((record[:4], instants, record[20:48], number, record[DEFINITION_AT:]))


def same_definition(one: bytes, other: bytes) -> bool:
    """Whether two pending records hold the same definition, whatever their instants."""
    return one[2] == other[2] and one[DEFINITION_AT:] == other[DEFINITION_AT:]


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


def encode_marker(row: tuple[int, int, int, int, int, int]) -> bytes:
    """The record of a schedule that is over; a plain tuple in the order of `Marker` will do.

    The number of the next fire, which nobody will see, is cut to what has room.
    """
    how, ended_ms, due_ms, life, version, occurrence = row
    occurrence = min(occurrence, MOST_NUMBER)
    return _MARKER.pack(FORMAT, MARKER, how, 0, ended_ms, due_ms, life, version, occurrence)


def decode_marker(record: bytes) -> Marker:
    """The end of a schedule in a record."""
    _, _, how, _, ended_ms, due_ms, life, version, occurrence = _MARKER.unpack(record)
    return Marker(how, ended_ms, due_ms, life, version, occurrence)


def encode_verdict(row: Verdict) -> bytes:
    """The record of a request's verdict."""
    outcome, code = row.outcome.encode(), row.code.encode()
    due_ms = -1 if row.due_ms is None else row.due_ms
    if not row.digest:
        head = _VERDICT.pack(FORMAT, VERDICT, len(outcome), 0, row.at_ms, due_ms, row.version or 0)
        return head + outcome + code
    # What a refused request names may have any length.
    action = row.action.encode(errors="replace")[:MOST_NAMED]
    schedule_id = row.schedule_id.encode(errors="replace")[:MOST_NAMED]
    head = _ANSWERED.pack(
        FORMAT, ANSWERED, len(outcome), len(code), row.at_ms, due_ms, row.version or 0,
        NO_LIFE if row.generation is None else row.generation, row.digest, len(action),
        len(schedule_id),
    )  # fmt: skip
    return b"".join((head, outcome, code, action, schedule_id))


def encode_accepted(request: PlainRequest, at_ms: int, generation: int, digest: bytes) -> bytes:
    """The record of the verdict on a plain request that began a schedule: that of `encode_verdict`,
    with less to pass on."""
    schedule_id = request[1]
    head = _ANSWERED.pack(
        FORMAT, ANSWERED, 8, 0, at_ms, request[2], 1, generation, digest, 6, len(schedule_id)
    )
    return b"%bACCEPTEDUPSERT%b" % (head, schedule_id)


def decode_verdict(record: bytes) -> Verdict:
    """A request's verdict in a record, of this release or an older one."""
    if record[1] == ANSWERED:
        return _answered(record)
    _, _, size, _, at_ms, due_ms, version = _VERDICT.unpack_from(record)
    end = _VERDICT.size + size
    return Verdict(
        record[_VERDICT.size : end].decode(),
        at_ms,
        None if due_ms < 0 else due_ms,
        version or None,
        record[end:].decode(),
    )


def _answered(record: bytes) -> Verdict:
    (_, _, outcome_n, code_n, at_ms, due_ms, version, generation, digest, action_n, id_n,
    ) = _ANSWERED.unpack_from(record)  # fmt: skip
    a = _ANSWERED.size + outcome_n
    b = a + code_n
    c = b + action_n
    return Verdict(
        record[_ANSWERED.size : a].decode(),
        at_ms,
        None if due_ms < 0 else due_ms,
        version or None,
        record[a:b].decode(),
        digest,
        record[b:c].decode(errors="replace"),
        record[c : c + id_n].decode(errors="replace"),
        None if generation == NO_LIFE else generation,
    )


def encode_manifest(row: Manifest) -> bytes:
    """The record of a transaction."""
    return _MANIFEST.pack(FORMAT, MANIFEST, READ_LEASE * row.read_lease, *row[:7])


def decode_manifest(record: bytes) -> Manifest:
    """The transaction in a record."""
    check_format(record)
    _, _, flags, *fields = _MANIFEST.unpack(record)
    return Manifest._make((*fields, bool(flags & READ_LEASE)))


def encode_place(where: int, due_ms: int, seq: int, gate: bytes = b"") -> bytes:
    """Where a pending record lies, its due instant and sequence; behind which gate, if any."""
    return _PLACE.pack(FORMAT, PLACE, where, 0, due_ms, seq) + gate


def decode_place(record: bytes) -> tuple[int, int, int]:
    """Where, due instant (epoch ms), sequence."""
    _, _, where, _, due_ms, seq = _PLACE.unpack_from(record)
    return where, due_ms, seq


def place_in_timeline(record: bytes) -> tuple[int, int]:
    """Due instant (epoch ms) and sequence of a row that says where a record lies."""
    due_ms, seq = _WHEN.unpack_from(record)
    return due_ms, seq


def gate_in(place: bytes) -> bytes:
    """The gate behind which a record at this place is held."""
    return place[_PLACE.size :]


def encode_awaited(row: Awaited) -> bytes:
    """The record of a fire that is to be acknowledged."""
    closes, fired_ms, until_ms, due_ms, version, schedule_id, group = row
    head = _AWAITED.pack(
        FORMAT, AWAITED, closes, 0, fired_ms, until_ms, due_ms, version, len(schedule_id),
        len(group),
    )  # fmt: skip
    return head + schedule_id + group


def decode_awaited(record: bytes) -> Awaited:
    """The fire in a record that is to be acknowledged."""
    _, _, closes, _, fired_ms, until_ms, due_ms, version, size, _ = _AWAITED.unpack_from(record)
    end = _AWAITED.size + size
    schedule_id, group = record[_AWAITED.size : end], record[end:]
    return Awaited(closes, fired_ms, until_ms, due_ms, version, schedule_id, group)


def encode_zones(version: str) -> bytes:
    """The record of the time zone data by which a partition's instants were found."""
    return bytes((FORMAT, ZONES)) + version.encode()


def check_format(record: bytes) -> int:
    """The row letter of a record; raises `UnknownFormat` for what this version cannot read."""
    if len(record) < 2 or record[0] != FORMAT or not PENDING <= record[1] <= ANSWERED:
        raise UnknownFormat(
            f"A record starts with {record[:2].hex()!r}; this version reads format {FORMAT}, rows"
            f" {PENDING} to {ANSWERED}. Run the version that wrote it, or a newer one."
        )
    return record[1]
