"""Manifests, and the state of a local store by them.

    manifest   what one transaction did: one per transaction, numbered without gaps
    state      (local only) the changelog offset that the store goes up to, when, and the manifest
    progress   (local only) the same while a replay is under way, with what it has counted so far

A manifest is the last record of its transaction, so rows behind the last one belong to nothing.  A
store has either a state or progress, never both:

    empty ── replay ──► progress ── the end is checked ──► state ── steps ──► state
                           ▲                                 │
                           └──────────── replay ─────────────┘
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.store.layout.records import FORMAT, GROUPED, MANIFEST, check_format

_MANIFEST: Final = Struct(">BBHQIqqQI16s")
# changelog offset, when written; a manifest follows
_STATE: Final = Struct(">qq")
# offset, written, pending, gap from and to, rows since the last manifest; a manifest follows
_PROGRESS: Final = Struct(">qqqqqq")

# No number of a transaction was left out so far.
NO_GAP: Final = (-1, -1)
# Flags of a manifest.
READ_LEASE: Final = 1
SENT_ON: Final = 2


class Manifest(NamedTuple):
    """The changes of one transaction, and where the partition stands after it.

    `grouped` says that the partition has rows of key groups which are not simply at home.  Such a
    manifest has a letter of its own, so that no release goes on from it, or from a local store that
    ends with it, which knows nothing of them.  `sent_on` says that the transaction also wrote to
    the topic of requests, for other partitions or its own: a mirror carries that first.
    """

    txn_seq: int
    owner_epoch: int
    position: int
    watermark_ms: int
    pending: int
    fired: int
    digest: bytes
    read_lease: bool = False
    grouped: bool = False
    sent_on: bool = False


class StoredState(NamedTuple):
    """The point that a local store is the fold of: changelog offset (next), when, manifest."""

    changelog_offset: int
    written_ms: int
    manifest: Manifest


class Progress(NamedTuple):
    """How far a replay has come: the next changelog offset, when, and the counts so far."""

    offset: int
    written_ms: int
    pending: int
    newest_gap: tuple[int, int] = NO_GAP
    unclosed: int = 0
    manifest: Manifest | None = None


NOTHING: Final = Progress(0, 0, 0)


def encode_manifest(row: Manifest) -> bytes:
    """The record of a transaction."""
    letter = GROUPED if row.grouped else MANIFEST
    flags = READ_LEASE * row.read_lease | SENT_ON * row.sent_on
    return _MANIFEST.pack(FORMAT, letter, flags, *row[:7])


def decode_manifest(record: bytes) -> Manifest:
    """The transaction in a record."""
    letter = check_format(record)
    _, _, flags, *fields = _MANIFEST.unpack(record)
    told = bool(flags & READ_LEASE), letter == GROUPED, bool(flags & SENT_ON)
    return Manifest._make((*fields, *told))


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
