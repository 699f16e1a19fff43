"""Both sides compared, schedule by schedule: the rows of both changelogs under each name.

The source goes on while the target follows, so both are compared as of the mark. Later changes of
the source are counted, and not compared.

    source   a  b  c │ b'        mark at │         b is left out
    target   a  b    │                             c is missing

A schedule that moved from one partition to another is compared in the partition where each side has
it. And each group, and each schedule of one, has to lie in one partition of the target alone
(`Owners`): as of the marks, which fit together, no schedule lies in two places.

Sequences are offsets of a cluster, so rows are compared without them (`carried.py`). Identity and
manifests are those of a side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from belfry.placement.key_groups import KeyGroups
from belfry.store.layout import keys
from belfry.store.layout.groups import HERE, LIES_PREFIX, decode_group, group_of
from belfry.store.layout.jobs import HEAD_OF_JOB, decode_job, encode_job
from belfry.store.layout.pending_bytes import due_and_seq, is_pending, with_seq
from belfry.store.recovery import EARLIER_INPUT


class RowDifference(NamedTuple):
    """A name under which the sides hold something else: `missing`, `surplus` or `other`.

    `doubled` are names that lie in two partitions of the target.
    """

    kind: str
    key: bytes


class Compared(NamedTuple):
    """How many rows are the same, which differ, and how many the source has changed since."""

    same: int
    different: list[RowDifference]
    moved: int


class Digests:
    """A changelog folded to a digest under each name."""

    def __init__(self) -> None:
        self.held: dict[bytes, bytes] = {}
        # Pending schedules, and the key groups that are here as a whole or are to leave.
        self.waits: set[bytes] = set()
        self.groups: dict[int, int] = {}

    def take(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Further rows, in their order."""
        for key, row in changes:
            if key.startswith(keys.MANIFEST_PREFIX) or key == keys.IDENTITY_KEY:
                continue
            self._see(key, row)
            if row is None:
                self.held.pop(key, None)
            else:
                self.held[key] = blake2b(_without_offsets(row), digest_size=16).digest()

    def _see(self, key: bytes, row: bytes | None) -> None:
        """Note pending schedules, and the groups that lie here."""
        if key.startswith(LIES_PREFIX):
            if row is None:
                self.groups.pop(group_of(key), None)
            else:
                self.groups[group_of(key)] = decode_group(row).phase
        elif row is not None and is_pending(row):
            self.waits.add(key)
        else:
            self.waits.discard(key)


class Owners:
    """Checks that no schedule of a moved group lies in two partitions of the target."""

    def __init__(self, homes: int) -> None:
        """`homes` is the number of partitions that are tenants' homes."""
        self._of = KeyGroups(homes).of
        self._sides: list[tuple[set[bytes], dict[int, int]]] = []

    def take(self, held: Digests) -> None:
        """A further partition, as it is folded. Its digests are not kept."""
        self._sides.append((held.waits, held.groups))

    def doubled(self) -> list[RowDifference]:
        """Names that lie in two partitions: groups, and schedules of groups that moved."""
        phases = [(group, phase) for _, groups in self._sides for group, phase in groups.items()]
        whole = Counter(group for group, phase in phases if phase == HERE)
        found = [b"key group %d" % group for group, times in whole.items() if times > 1]
        moved = {group for group, _ in phases}
        if moved:
            names = Counter(name for waits, _ in self._sides for name in waits)
            found += [
                name
                for name, times in names.items()
                if times > 1 and self._of(keys.tenant_of(name).decode()) in moved
            ]
        return [RowDifference("doubled", key) for key in sorted(found)]


def compared(source: Digests, target: Digests, moved: frozenset[bytes]) -> Compared:
    """The differences under the names that the source has not changed since."""
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
