"""All records but the pending one: what they say, and how they lie at rest.

    marker    a schedule that is over: fired, cancelled, completed; kept for a day, then a tombstone
    verdict   what became of a request that has an id; kept for an hour (older releases)
    answered  the same, with what was asked: a digest, the action, the schedule
    manifest  what one transaction did: one per transaction, numbered without gaps
    awaited   a fire that is to be acknowledged, until it is or its time-out is over
    zones     by which version of the time zone data the instants were found
    location  (local only) where the pending record of a schedule lies
    bucket    (local only) how many schedules of a tenant are due in a minute
    state     (local only) what the store is the fold of; progress: how far a replay has come

Frozen numbers: `FORMAT`, the row letters, the struct layouts.  A change of any of them is a new
`FORMAT`, and a reader that meets one that it does not know stops its partition (`UnknownFormat`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, TypeGuard

from belfry.schedules.request import PlainRequest

FORMAT: Final = 1
PENDING: Final = 1
MARKER: Final = 2
VERDICT: Final = 3
MANIFEST: Final = 4
LOCATION: Final = 5
AWAITED: Final = 6
ZONES: Final = 7
ANSWERED: Final = 8
# The row of an identity, whose codec is `store/identity.py`: JSON follows.
IDENTITY: Final = 9
# Codecs of their own: `layout/aside.py`, `layout/buckets.py` (local only), `layout/usage.py`,
# `layout/jobs.py`, `layout/calendars.py`.
ASIDE, BUCKET, USAGE, JOB, CALENDAR = 10, 11, 12, 14, 15

_OTHERS: Final = (ASIDE, USAGE, JOB, CALENDAR)
_MARKER: Final = Struct(">BBBBqqQII")
# The same, with its four first bytes in one piece.
_ENDED: Final = Struct(">4sqqQII")
_VERDICT: Final = Struct(">BBBBqqI")
# format, row, sizes of outcome and code, at, due, version, generation, digest, sizes of action, id
_ANSWERED: Final = Struct(">BBBBqqIQ16sBB")
_MANIFEST: Final = Struct(">BBHQIqqQI16s")
_LOCATION: Final = Struct(">BBBBqQ")
_WHEN: Final = Struct(">4xqQ")
_AWAITED: Final = Struct(">BBBBqqqIBB")
# changelog offset, when written; a manifest follows
_STATE: Final = Struct(">qq")
_SIZE: Final = Struct(">Q")
# offset, written, pending, gap from and to, rows since the last manifest; a manifest follows
_PROGRESS: Final = Struct(">qqqqqq")

# The largest number of a fire that has room at rest.
_MOST_NUMBER: Final = (1 << 32) - 1
# How rows begin that need no closer look in a replay.
HEAD_OF_MARKER: Final = bytes((FORMAT, MARKER))
HEAD_OF_ANSWERED: Final = bytes((FORMAT, ANSWERED))
HEAD_IN_TIMELINE: Final = bytes((FORMAT, LOCATION, 0))
# All of the head of rows that the hot path writes.
HEAD_OF_FIRED: Final = bytes((FORMAT, MARKER, 0, 0))
LOCATED_IN_TIMELINE: Final = bytes((FORMAT, LOCATION, 0, 0))

# The hot path packs by itself, and takes the layout from here.
pack_location: Final = _LOCATION.pack
# Says that an answer is about no life: 0 is the one that offset 0 of partition 0 began.
NO_LIFE: Final = 2**64 - 1
# Bytes that an answer keeps of a name.
MOST_NAMED: Final = 255
# No number of a transaction was left out so far.
NO_GAP: Final = (-1, -1)

# Where a pending record lies.
IN_TIMELINE: Final = 0
IN_BACKLOG: Final = 1
IN_PAUSED: Final = 2
IN_CATCH_UP: Final = 3
BEHIND_LOCK: Final = 4

# What a fire locks until it is acknowledged.
LOCKS_GROUP: Final = 1
LOCKS_OWN: Final = 2
ASKED_TO_END: Final = 4  # Beside what it locks: who works on it was asked to come to an end.

# Flags of a manifest.
READ_LEASE: Final = 1

ENDED_FIRED: Final = 0
ENDED_CANCELLED: Final = 1
ENDED_COMPLETED: Final = 2
ENDED_MISSED: Final = 3

# How long a marker answers that a schedule is over, and how long the id of a request is known.
MARKER_MS: Final = 24 * 3_600_000
REQUEST_ID_MS: Final = 3_600_000


class UnknownFormat(Exception):
    """A record that this version cannot read: the partition has to stop, not to guess."""


class Location(NamedTuple):
    """Where a pending record lies: in which part of the store, at which sort key.

    `lock` is the name of the ack lock that it is held behind, if there is one.
    """

    where: int
    due_ms: int
    seq: int
    lock: bytes = b""


class Marker(NamedTuple):
    """A schedule that is over: how, when it ended, and what it was."""

    how: int
    ended_ms: int
    due_ms: int
    life: int
    version: int
    occurrence: int


class VerdictRow(NamedTuple):
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
    """A fire to be acknowledged: what it locks, when, until when, with how many of its group."""

    locks: int
    fired_ms: int
    until_ms: int
    due_ms: int
    version: int
    schedule_id: bytes
    group: bytes
    at_once: int = 1


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


class StoredState(NamedTuple):
    """What the local store is the fold of: changelog offset (next to read), when, and manifest."""

    changelog_offset: int
    written_ms: int
    manifest: Manifest


class Progress(NamedTuple):
    """How far a replay has come: the next changelog offset, when, and what was met so far."""

    offset: int
    written_ms: int
    pending: int
    newest_gap: tuple[int, int] = NO_GAP
    unclosed: int = 0
    manifest: Manifest | None = None


NOTHING: Final = Progress(0, 0, 0)


def encode_marker(row: Marker) -> bytes:
    """The record of a schedule that is over.

    The number of the next fire, which nobody will see, is cut to what has room.
    """
    how, ended_ms, due_ms, life, version, occurrence = row
    occurrence = min(occurrence, _MOST_NUMBER)
    return _MARKER.pack(FORMAT, MARKER, how, 0, ended_ms, due_ms, life, version, occurrence)


def encode_fired_marker(
    ended_ms: int, due_ms: int, life: int, version: int, occurrence: int
) -> bytes:
    """The marker of a one-shot that fired: that of `encode_marker`, with less to pass on."""
    return _ENDED.pack(HEAD_OF_FIRED, ended_ms, due_ms, life, version, occurrence)


def decode_marker(record: bytes) -> Marker:
    """The end of a schedule in a record."""
    _, _, how, _, ended_ms, due_ms, life, version, occurrence = _MARKER.unpack(record)
    return Marker(how, ended_ms, due_ms, life, version, occurrence)


def is_marker(row: bytes) -> bool:
    """Whether a row under a name says that the schedule is over."""
    return row[1] == MARKER


def is_location(row: bytes | None) -> TypeGuard[bytes]:
    """Whether a row under a name says where the schedule waits."""
    return row is not None and row[1] == LOCATION


def is_answer(row: bytes) -> bool:
    """Whether a row is the verdict of a request."""
    return row[1] in (ANSWERED, VERDICT)


def encode_verdict(row: VerdictRow) -> bytes:
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


def decode_verdict(record: bytes) -> VerdictRow:
    """A request's verdict in a record, of this release or an older one."""
    if record[1] == ANSWERED:
        return _answered(record)
    _, _, size, _, at_ms, due_ms, version = _VERDICT.unpack_from(record)
    end = _VERDICT.size + size
    return VerdictRow(
        record[_VERDICT.size : end].decode(),
        at_ms,
        None if due_ms < 0 else due_ms,
        version or None,
        record[end:].decode(),
    )


def _answered(record: bytes) -> VerdictRow:
    (_, _, outcome_n, code_n, at_ms, due_ms, version, generation, digest, action_n, id_n,
    ) = _ANSWERED.unpack_from(record)  # fmt: skip
    a = _ANSWERED.size + outcome_n
    b = a + code_n
    c = b + action_n
    return VerdictRow(
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


def encode_location(location: Location) -> bytes:
    """The row of a location."""
    where, due_ms, seq, lock = location
    return _LOCATION.pack(FORMAT, LOCATION, where, 0, due_ms, seq) + lock


def decode_location(row: bytes) -> Location:
    """Where a pending record lies."""
    _, _, where, _, due_ms, seq = _LOCATION.unpack_from(row)
    return Location(where, due_ms, seq, row[_LOCATION.size :])


def timeline_location(row: bytes) -> tuple[int, int]:
    """The sort key in a row that says that a record lies in the timeline."""
    due_ms, seq = _WHEN.unpack_from(row)
    return due_ms, seq


def encode_awaited(row: Awaited) -> bytes:
    """The record of a fire that is to be acknowledged."""
    locks, fired_ms, until_ms, due_ms, version, schedule_id, group, most = row
    head = _AWAITED.pack(
        FORMAT, AWAITED, locks, most if most > 1 else 0, fired_ms, until_ms, due_ms, version,
        len(schedule_id), len(group),
    )  # fmt: skip
    return head + schedule_id + group


def decode_awaited(record: bytes) -> Awaited:
    """The fire in a record that is to be acknowledged."""
    _, _, locks, most, fired_ms, until_ms, due_ms, version, size, _ = _AWAITED.unpack_from(record)
    end = _AWAITED.size + size
    schedule_id, group = record[_AWAITED.size : end], record[end:]
    return Awaited(locks, fired_ms, until_ms, due_ms, version, schedule_id, group, most or 1)


def encode_zones(version: str) -> bytes:
    """The record of the time zone data by which a partition's instants were found."""
    return encode_text(version)


def encode_text(text: str) -> bytes:
    """A record that is a text; its key says what of."""
    return bytes((FORMAT, ZONES)) + text.encode()


def text_of(record: bytes) -> str:
    """The text of such a record."""
    return record[2:].decode()


def encode_state(state: StoredState) -> bytes:
    """What a local store says of itself."""
    head = _STATE.pack(state.changelog_offset, state.written_ms)
    return head + encode_manifest(state.manifest)


def decode_state(stored: bytes) -> StoredState:
    """What a local store says of itself."""
    offset, written_ms = _STATE.unpack_from(stored)
    return StoredState(offset, written_ms, decode_manifest(stored[_STATE.size :]))


def encode_progress(progress: Progress) -> bytes:
    """How far a replay has come."""
    head = _PROGRESS.pack(*progress[:3], *progress.newest_gap, progress.unclosed)
    return head + (b"" if progress.manifest is None else encode_manifest(progress.manifest))


def decode_progress(stored: bytes) -> Progress:
    """How far a replay has come."""
    offset, written_ms, pending, before, after, unclosed = _PROGRESS.unpack_from(stored)
    told = stored[_PROGRESS.size :]
    manifest = decode_manifest(told) if told else None
    return Progress(offset, written_ms, pending, (before, after), unclosed, manifest)


def encode_size(size: int) -> bytes:
    """The number of rows in a tenant's queue."""
    return _SIZE.pack(size)


def decode_size(stored: bytes) -> int:
    """The number of rows in a tenant's queue."""
    return int(_SIZE.unpack(stored)[0])


def check_format(record: bytes) -> int:
    """The row letter of a record; raises `UnknownFormat` for what this version cannot read."""
    known = len(record) > 1 and (PENDING <= record[1] <= ANSWERED or record[1] in _OTHERS)
    if not known or record[0] != FORMAT:
        raise UnknownFormat(
            f"A record starts with {record[:2].hex()!r}; this version reads format {FORMAT}, rows"
            f" {PENDING} to {ANSWERED}, {', '.join(map(str, _OTHERS))}. Run the"
            " version that wrote it, or a newer one."
        )
    return record[1]
