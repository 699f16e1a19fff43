"""Where the verification of a partition stands, and a transaction as it lies in the log.

A run reads some stretch of a changelog, and the next run goes on where it ended:

    run 1    manifests 1 … 820, next offset 3 400, 12 schedules wait; kept in a file as `Standing`
    run 2    begins at offset 3 400: manifest 821 has to follow 820, and 12 have to wait before it

These values are shared by the checks of a partition (`partition`), the order of its manifests
(`sequence`) and its waiting schedules (`waiting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from belfry.verification.awaited import AWAITED_KEY, locks
from belfry.verification.key_groups import GROUP_KEY, HELD_KEY, check_group, held_offset
from belfry.verification.rows import (
    ASIDE_KEY,
    FILLER_KEY,
    JOB_KEY,
    MANIFEST_KEY,
    OWN_KEY,
    Logged,
    NotReadable,
    Over,
    Sealed,
    WaitingRow,
    aside_offset,
    job,
    manifest,
    schedule,
)

NEVER: Final = -1
# Records of one transaction have timestamps that lie no further apart.
APART_MS: Final = 5_000
# Requests of one transaction; a recovery may leave out more.
MOST_TAKEN: Final = 100_000
# A partition was left alone if its next owner's first transaction comes so long after the last one.
LEFT_ALONE_MS: Final = 60_000


@dataclass(slots=True)
class Standing:
    """Where the verification of a partition stands: a later run goes on from here.

    `whole_from` is the offset behind which nothing is missing (`NEVER`: not known), `older` and
    `newer` are the pair that shows it.  Strangers' records up to `told_to` were told of.
    `unread`: events of schedules here may go to a topic that is not read.
    It was read last at `read_ms`, which the owner sets.
    `jobs` are how far bulk jobs have come that go on, by their keys.
    `ends` is how many transactions have an end that was not met yet, `trusted` the latest holes
    that were taken for ends, and that the log was not asked about (`wholeness.py`).
    `blind_until_ms` is the timestamp of the last transaction that could not be checked, `last_ms`
    that of the last one of all, and `owned_ms` that of the first one since the partition was left
    alone (`NEVER`: not known, which counts as owned all the time).
    """

    next_offset: int = 0
    sealed: Sealed | None = None
    manifest_at: int = -2
    contiguous: bool = True
    older: int = NEVER
    newer: int = NEVER
    generation: int = 0
    waiting: int = 0
    drift: int = 0
    told_to: int = NEVER
    unread: bool = False
    blind_until_ms: int = NEVER
    last_ms: int = NEVER
    owned_ms: int = NEVER
    read_ms: int = NEVER
    jobs: dict[str, tuple[str, int]] = field(default_factory=dict)
    ends: int = 0
    trusted: list[tuple[int, int]] = field(default_factory=list)

    def pass_over(self, timestamp_ms: int) -> None:
        """A transaction of this instant (epoch ms) could not be checked."""
        self.blind_until_ms = timestamp_ms + APART_MS

    def go_on(self, sealed: Sealed, timestamp_ms: int) -> None:
        """The next transaction has this manifest, and lies there since this instant.

        One owner may have nothing to do for hours, so a pause before another one counts alone.
        """
        another = self.sealed is None or self.sealed.epoch != sealed.epoch
        if another and timestamp_ms - self.last_ms > LEFT_ALONE_MS:
            self.owned_ms = timestamp_ms
        self.sealed, self.last_ms = sealed, max(self.last_ms, timestamp_ms)


def seen_until(hidden: Iterable[Standing]) -> int | None:
    """Up to which instant all transactions can be seen, by the partitions that hide some.

    A transaction that is open hides all behind it, and what they fired may be seen.  None where
    nothing hides.
    """
    return min((each.last_ms - APART_MS for each in hidden), default=None)


class Cut(NamedTuple):
    """A transaction as it lies in the log: rows, the record of its manifest, and what that says.

    `holes` are the offsets, from and to, that were not read between its `first` record, be it a
    stranger's, and the manifest.
    """

    rows: list[Logged]
    last: Logged
    sealed: Sealed
    first: int
    holes: tuple[tuple[int, int], ...]


def cut_of(records: Sequence[Logged], sealed: Sealed) -> Cut:
    """A transaction of the records up to its manifest."""
    rows = [record for record in records[:-1] if not record.stranger]
    first, last = records[0].offset, records[-1]
    holes: tuple[tuple[int, int], ...] = ()
    if last.offset - first != len(records) - 1:
        places = [record.offset for record in records]
        holes = tuple((at + 1, to) for at, to in pairwise(places) if to > at + 1)
    return Cut(rows, last, sealed, first, holes)


def taken_in(before: Sealed | None, cut: Cut) -> list[int] | None:
    """Offsets of the requests that a transaction took in; None where there are too many.

    `before` is the manifest before.
    """
    end = cut.sealed.position
    first = end if before is None else before.position
    return taken_of(range(first, end), cut.rows) if 0 <= end - first < MOST_TAKEN else None


def taken_of(read: range, rows: Sequence[Logged]) -> list[int]:
    """Offsets of the requests that a transaction took in, of those that it read.

    Without those that wait as rows from then on, and with those that had waited so until then.
    """
    gone = _waiting_offsets(record.key for record in rows if record.value is None)
    kept = set(_waiting_offsets(record.key for record in rows if record.value is not None))
    return [offset for offset in (*read, *gone) if offset not in kept]


def _waiting_offsets(names: Iterable[bytes]) -> list[int]:
    keys = list(names)
    found = [aside_offset(key) for key in keys if key.startswith(ASIDE_KEY)]
    return found + [held_offset(key) for key in keys if key.startswith(HELD_KEY)]


def row_of(record: Logged) -> WaitingRow | Over | None:
    return None if record.value is None else schedule(record.value)


def is_filler(record: Logged) -> bool:
    """Whether a record only takes up an offset, as workers that sign write such."""
    return record.key == FILLER_KEY and record.value is None


def is_row(record: Logged) -> bool:
    """Whether a worker wrote a record, laid out as specified as far as it is looked at."""
    try:
        if record.value is not None and record.key.startswith(MANIFEST_KEY):
            manifest(record.value)
        elif record.value is not None and record.key.startswith(JOB_KEY):
            job(record.key, record.value)
        elif record.value is not None and record.key.startswith(AWAITED_KEY):
            locks(record.key, record.value)
        elif record.value is not None and record.key.startswith(GROUP_KEY):
            check_group(record.key, record.value)
        elif record.value is not None and not record.key.startswith(OWN_KEY):
            return schedule(record.value) is not None and not record.stranger
    except NotReadable:
        return False
    return not record.stranger
