"""Both sides compared, schedule by schedule: what the changelogs hold under each name.

The source goes on while the target follows, so both are compared as of the mark. What the source
has changed behind it is counted, and not compared.

    source   a  b  c │ b'        mark at │         b is left out
    target   a  b    │                             c is missing

Sequences are offsets of a cluster, so rows are compared without them (`carried.py`). Identity and
manifests are those of a side.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from belfry.store.layout import keys
from belfry.store.layout.jobs import HEAD_OF_JOB, decode_job, encode_job
from belfry.store.layout.pending_bytes import due_and_seq, is_pending, with_seq
from belfry.store.recovery import EARLIER_INPUT


class RowDifference(NamedTuple):
    """A name under which the sides hold something else: `missing`, `surplus` or `other`."""

    kind: str
    key: bytes


class Compared(NamedTuple):
    """How many rows are the same, what differs, and how many the source has changed since."""

    same: int
    different: list[RowDifference]
    moved: int


class Digests:
    """A changelog folded to a digest under each name."""

    def __init__(self) -> None:
        self.held: dict[bytes, bytes] = {}

    def take(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Further rows, in their order."""
        for key, row in changes:
            if key.startswith(keys.MANIFEST_PREFIX) or key == keys.IDENTITY_KEY:
                continue
            if row is None:
                self.held.pop(key, None)
            else:
                self.held[key] = blake2b(_without_offsets(row), digest_size=16).digest()


def compared(source: Digests, target: Digests, moved: frozenset[bytes]) -> Compared:
    """What differs under the names that the source has not changed since."""
    theirs, mine = source.held, target.held
    different = []
    same = 0
    for key in sorted(theirs.keys() | mine.keys()):
        if key in moved:
            continue
        if theirs.get(key) == mine.get(key):
            same += 1
        else:
            kind = "missing" if key not in mine else "surplus" if key not in theirs else "other"
            different.append(RowDifference(kind, key))
    return Compared(same, different, len(moved))


def _without_offsets(row: bytes) -> bytes:
    """A row whose sequence counts from the beginning of its own input."""
    if row[:2] == HEAD_OF_JOB:
        job = decode_job(row)
        return encode_job(job._replace(offset=job.offset % EARLIER_INPUT))
    return with_seq(row, due_and_seq(row)[1] % EARLIER_INPUT) if is_pending(row) else row
