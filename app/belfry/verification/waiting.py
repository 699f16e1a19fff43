"""The schedules that wait in a partition, and the bulk jobs that go on, row by row.

    row of a, waits         1 waits         memory: a waits, number 0, offset 3
    row of b, waits         2 wait
    marker of a             1 waits         memory: a is over
    manifest: 1 waits       right

The row before proves that a fire was asked for (`row_fires`), so each row is folded into memory
only after its transaction was judged.

Two rows of one schedule also tell how far compaction has come: if the older one of such a *pair* is
still there, no row is missing behind the younger one.  The first pair of a round is looked for on
the way.

How many wait is compared with each manifest.  A difference is told once, and kept as a drift: a
fault in one transaction must not be found again in each later one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from belfry.verification.awaited import AWAITED_KEY, locks
from belfry.verification.extras import JobRange
from belfry.verification.findings import Breach, Breached, Spot
from belfry.verification.key_groups import GROUP_KEY, MovedInStep, MovingGroups
from belfry.verification.memory import Memory, Remembered, short
from belfry.verification.moves import MoveLedger
from belfry.verification.row_fires import counts, remembered
from belfry.verification.rows import JOB_KEY, OWN_KEY, Logged, job
from belfry.verification.standing import NEVER, Cut, Standing, row_of


class Change(NamedTuple):
    """The change of a schedule by a row at this offset: the facts before, and the facts now."""

    name: int
    offset: int
    before: Remembered | None
    now: Remembered | None


class WaitingSchedules:
    """Folds the rows of a partition; `standing` has how many wait, and how far jobs have come."""

    def __init__(self, place: Spot, memory: Memory, standing: Standing) -> None:
        """`place` names topic and partition."""
        self._place = place
        self._memory = memory
        self._standing = standing
        self._run_from = self._whole_from = NEVER
        self.moving = MovingGroups(memory, 1)
        self.ledger = MoveLedger(memory, place.partition, 1)

    def move_among(self, partitions: int) -> None:
        """Say how many partitions there are, among which key groups move."""
        self.moving = MovingGroups(self._memory, partitions)
        self.ledger = MoveLedger(self._memory, self._place.partition, partitions)

    def begin(self, *, pair_holds: bool) -> None:
        """A round begins; `pair_holds` says that the older row of the last pair is still there."""
        self._run_from = self._standing.next_offset
        self._whole_from = self._standing.newer if pair_holds else NEVER

    def is_whole(self, offset: int) -> bool:
        """Whether a pair shows that no row is missing from this offset on."""
        return NEVER < self._whole_from < offset

    def moved(self, rows: Sequence[Logged]) -> MovedInStep:
        """The key groups that came and left by these rows; ask before they are folded."""
        return self.moving.step(self._place.partition, rows)

    def changes(self, rows: Sequence[Logged]) -> list[Change]:
        """The changes by rows, one by one; schedules that left with their group are unknown."""
        partition, moved = self._place.partition, self.moved(rows)
        found, known = list[Change](), dict[int, Remembered | None]()
        for record in rows:
            if record.key.startswith(OWN_KEY):
                continue
            name, now = short(record.key), None
            before = known[name] if name in known else self._memory.schedule(partition, name)
            if not moved.left(record):
                now = remembered(record, row_of(record), before)
            found.append(Change(name, record.offset, before, now))
            known[name] = now
        return found

    def fold(
        self, rows: Sequence[Logged], changes: Sequence[Change], *, whole: bool = False
    ) -> None:
        """Remember rows and their changes.

        `whole`: none of them is missing, nor any before them.
        """
        self.ledger.take(rows, whole=whole)
        for record in rows:
            if record.key.startswith(JOB_KEY):
                self._fold_job(record)
            if record.key.startswith(AWAITED_KEY):
                self._fold_awaited(record)
            if record.key.startswith(GROUP_KEY):
                self.moving.fold(self._place.partition, record)
        for each in changes:
            self._fold_change(each)

    def _fold_change(self, each: Change) -> None:
        standing, before = self._standing, each.before
        if before is not None and before.offset >= self._run_from:
            standing.older, standing.newer = before.offset, each.offset
            if self._whole_from == NEVER:
                self._whole_from = each.offset
        standing.waiting += counts(each.now) - counts(before)
        self._memory.put(self._place.partition, each.name, each.now)

    def _fold_job(self, record: Logged) -> None:
        """Remember how far a job has come that goes on."""
        found = None if record.value is None else job(record.key, record.value)
        if found is not None and found.runs:
            name, at_ms = found.reached
            self._standing.jobs[_text(record.key)] = name.decode(), at_ms
        else:
            self._standing.jobs.pop(_text(record.key), None)

    def _fold_awaited(self, record: Logged) -> None:
        """Remember the locks of a fire until it is acknowledged."""
        held = [] if record.value is None else locks(record.key, record.value)
        self._memory.lock(self._place.partition, short(record.key), held)

    def stretches(self, cut: Cut) -> Iterator[JobRange]:
        """Possible fires of a transaction for bulk jobs: it writes the rows of these anew."""
        for record in cut.rows:
            if record.key.startswith(JOB_KEY) and record.value is not None:
                name, since_ms = self._standing.jobs.get(_text(record.key), ("", 0))
                yield JobRange(job(record.key, record.value), (name.encode(), since_ms))

    def will_differ(self, cut: Cut, changes: Sequence[Change]) -> bool:
        """Whether `compare` will find something, once this is folded."""
        more = sum(counts(each.now) - counts(each.before) for each in changes)
        return cut.sealed.pending - self._standing.waiting - more != self._standing.drift

    def compare(self, cut: Cut, *, whole: bool, recovered: bool) -> Iterator[Breached]:
        """Compare the number of pending schedules with the manifest; once for each difference."""
        standing = self._standing
        differs = cut.sealed.pending - standing.waiting
        if whole and not recovered and differs != standing.drift:
            by_rows = standing.waiting + standing.drift
            said = f"{cut.sealed.pending} schedules wait by the manifest"
            spot = self._place._replace(offset=cut.last.offset)
            yield Breached(Breach.PENDING, spot, said, f"{by_rows}, by the rows")
        # Rows of a thinned-out log are not what an older manifest counted.
        standing.drift = differs if whole else 0


def _text(key: bytes) -> str:
    return key.decode(errors="backslashreplace")
