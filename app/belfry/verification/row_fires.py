"""The fires that the rows of a transaction tell, by the facts before and after.

A row tells of a fire only by what it replaces.  For a schedule that waited:

    what follows, of the same life and version      so many fires as its number is higher
    a marker, of the same life and version          the same
    a tombstone, another version, another life      it may have fired before that, in the same step

A tombstone also stands for the end of a schedule of a tenant that remembers none.  Retries of
webhooks are never cancelled, so one of those has fired.

A fire leaves before requests are taken in, so a schedule does not fire in the step of its request.

A fired schedule was due when the step looked at the clock. A marker has that instant. Without one
it was not before the watermark, and not after the row was written.  A step may fire events behind
its watermark, since that stays before the first row that a step has left (`engine/gathering.py`).

    known before                  row now                       fired
    waits, life 7 v1, number 4    waits, life 7 v1, number 6    twice
    waits, life 7 v1, number 4    waits, life 7 v1, number 4    not at all: moved, or paused
    waits, life 7 v1, due 12:00   tombstone, written 11:59      not at all: it was not due
    waits, life 7 v1, due 12:00   tombstone, written 12:00      perhaps, before it was cancelled
    nothing                       marker, how: fired            somebody's fault: `Unfounded`
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.verification.awaited import group_lock
from belfry.verification.coverage import tenant_of
from belfry.verification.memory import Remembered, Stands
from belfry.verification.rows import ENDED_FIRED, ONE_SHOTS, Logged, Over, WaitingRow

# The watermark stays one below an instant whose events have not all left.
WITHIN_AN_INSTANT_MS: Final = 1
# By so much the clock of a worker may be ahead of that of the broker, which stamps its rows.
CLOCKS_APART_MS: Final = 1_000
# How names of retries of webhooks begin, which come out among deliveries.
RETRIES: Final = b"belfry-deliveries/"


class RowFire(NamedTuple):
    """A schedule that fired by its rows: `times`, or None where they do not tell.

    `early` says that it did so before its instant.
    """

    name: bytes
    before: Remembered
    times: int | None
    early: bool
    offset: int

    @property
    def one_shot(self) -> bool:
        """Whether it has one instant, which the row says."""
        return self.before.kind in ONE_SHOTS


class Unfounded(NamedTuple):
    """A marker of a fire without a request for it."""

    name: bytes
    row: Over
    offset: int


Row = WaitingRow | Over | None


def row_fire_of(
    record: Logged, before: Remembered | None, row: Row, watermark_ms: int
) -> RowFire | Unfounded | None:
    """The fire that a row tells, as its record says it; None if it tells of none."""
    name, offset = record.key, record.offset
    if before is None or before.stands is not Stands.WAITS or not _goes_on(before, row):
        if isinstance(row, Over) and row.how == ENDED_FIRED and not _is_copy(before, row):
            return Unfounded(name, row, offset)
        if before is None or before.stands is not Stands.WAITS:
            return None
        if before.due_ms > _latest_ms(record, watermark_ms):
            return None
        times = 1 if row is None and name.startswith(RETRIES) else None
        return RowFire(name, before, times, early=False, offset=offset)
    assert row is not None
    times = row.occurrence - before.occurrence
    if times <= 0:
        return None
    if isinstance(row, Over):
        early = row.ended_ms < max(before.due_ms, row.due_ms if row.how == ENDED_FIRED else 0)
    else:
        early = before.due_ms > _latest_ms(record, watermark_ms)
    return RowFire(name, before, times, early, offset)


def _latest_ms(record: Logged, watermark_ms: int) -> int:
    """When its step looked at the clock at the latest."""
    return max(watermark_ms + WITHIN_AN_INSTANT_MS, record.timestamp_ms + CLOCKS_APART_MS)


def _goes_on(before: Remembered, row: Row) -> bool:
    """Whether a row is of the same life and version as the row before."""
    return row is not None and (row.life, row.version) == (before.life, before.version)


def _is_copy(before: Remembered | None, row: Over) -> bool:
    """Whether a marker was there before: owners that begin to sign write their rows once more."""
    return before is not None and before.stands is Stands.OVER and _goes_on(before, row)


def remembered(record: Logged, row: Row, before: Remembered | None) -> Remembered | None:
    """The facts on a schedule after a row; None if there are none."""
    if isinstance(row, WaitingRow):
        tenant = tenant_of(record.key)
        return Remembered(
            Stands.PAUSED if row.paused else Stands.WAITS,
            row.kind,
            row.due_ms,
            row.nominal_ms,
            row.life,
            row.version,
            row.occurrence,
            record.offset,
            max(row.due_ms, record.timestamp_ms),
            tenant,
            group_lock(tenant.encode(), row.group) if row.group else 0,
        )
    if isinstance(row, Over):
        kind, nominal_ms = (0, row.due_ms) if before is None else (before.kind, before.nominal_ms)
        known = row.due_ms, nominal_ms, row.life, row.version, row.occurrence, record.offset
        return Remembered(Stands.OVER, kind, *known)
    if before is None or before.stands is Stands.OVER:
        return None
    return before._replace(stands=Stands.GONE, offset=record.offset)


def counts(known: Remembered | None) -> int:
    """1 for a schedule that waits, as manifests count."""
    return int(known is not None and known.stands in (Stands.WAITS, Stands.PAUSED))
