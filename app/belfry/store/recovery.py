"""The writes of a recovery: changelog records that make a store's content the partition's state.

The records of one recovery are one transaction.  Where other transactions lie before it, its number
is so much higher than theirs that a replay takes the gap for one that compaction has left.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from belfry.store.layout import keys
from belfry.store.layout.jobs import HEAD_OF_JOB, decode_job, encode_job
from belfry.store.layout.locations import is_location
from belfry.store.layout.manifests import Manifest
from belfry.store.layout.pending_bytes import due_and_seq, is_pending, with_seq
from belfry.store.overlaid import Overlaid

# Further than manifests are kept: a replay cannot ask for those between.
SKIPPED: Final = keys.MANIFEST_SLOTS + 1
# Offsets never grow so far, so a sequence beyond it is that of a request of an earlier input.
EARLIER_INPUT: Final = 1 << 56
_MOST_SEQ: Final = (1 << 64) - 1

Row = tuple[bytes, bytes]


def changelog_rows(store: Overlaid) -> Iterator[Row]:
    """Every record of the changelog that a store is the fold of, but identity and manifests."""
    for name, row in store.all_names():
        if name == keys.IDENTITY_KEY:
            continue
        yield name, store.pending_at(name, row) if is_location(row) else row


def of_earlier_input(row: bytes) -> bytes:
    """The same record with a sequence that no offset of the present input will meet.

    Sequences are offsets, and keep events of one instant apart.  Among such events those of an
    earlier input leave last.
    """
    if row[:2] == HEAD_OF_JOB:
        job = decode_job(row)
        return encode_job(job._replace(offset=job.offset + EARLIER_INPUT))
    if not is_pending(row):
        return row
    moved = due_and_seq(row)[1] + EARLIER_INPUT
    assert moved <= _MOST_SEQ, "the input was made anew more often than sequences can tell"
    return with_seq(row, moved)


def age_of(seq: int) -> tuple[int, int]:
    """The key that sorts sequences of any inputs in the order in which they were asked for."""
    return -(seq // EARLIER_INPUT), seq


def manifest_after(
    base: Manifest | None, logged: Manifest | None, position: int, pending: int
) -> Manifest:
    """The manifest of a recovery: `base` is the recovered one, `logged` the one before it."""
    known = [each for each in (base, logged) if each is not None]
    newest = max((each.txn_seq for each in known), default=0)
    return Manifest(
        txn_seq=newest + (1 if logged is None else SKIPPED),
        owner_epoch=max((each.owner_epoch for each in known), default=0) + 1,
        position=position,
        watermark_ms=0 if base is None else base.watermark_ms,
        pending=pending,
        fired=0,
        digest=blake2b(b"", digest_size=16).digest(),
        grouped=any(each.grouped for each in known),
    )


def fence_manifest(last: Manifest | None, position: int) -> Manifest:
    """The last manifest of a side that gives a partition up; `position` where it had none."""
    if last is None:
        return manifest_after(None, None, position, 0)
    return manifest_after(last, None, last.position, last.pending)


def activation_manifest(last: Manifest, position: int) -> Manifest:
    """The first manifest of a side that takes over, from this offset of its own requests on."""
    return manifest_after(last, last, position, last.pending)
