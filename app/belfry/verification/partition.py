"""One partition of a changelog, transaction by transaction, against the specification.

    records ─► rows up to a manifest ─► numbers, epoch, position, watermark
                                    ─► fires (`fires.py`) against what waited and what came out
                                    ─► the schedules that wait now, and how many

A changelog is compacted, so in its older part rows are missing that a later one has replaced.  What
is known to be whole:

    from the beginning    while no offset is missing
    behind a pair         where a row and the one that replaced it were both read, compaction has
                          not come beyond the second: behind it nothing is missing

A transaction that is neither is folded, and counted as not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from belfry.verification.coverage import Coverage
from belfry.verification.extras import Ask, JobRange
from belfry.verification.findings import Breach, Breached, CheckCounts, Spot
from belfry.verification.fires import FireJudge, FiresJudged
from belfry.verification.memory import Memory, short
from belfry.verification.row_fires import RowFire, Unfounded, counts, remembered, row_fire_of
from belfry.verification.rows import (
    ASIDE_KEY,
    IDENTITY_KEY,
    JOB_KEY,
    MANIFEST_KEY,
    MANIFESTS_KEPT,
    OWN_KEY,
    RECOVERY_JUMP,
    Logged,
    NotReadable,
    Over,
    Sealed,
    WaitingRow,
    aside_offset,
    generation,
    job,
    manifest,
    schedule,
)

# Rows without a manifest that are kept; more are folded, as those of a compacted log.
MOST_OPEN: Final = 100_000
# Requests of one transaction; a recovery may leave out more.
MOST_TAKEN: Final = 100_000
# Records of one transaction have timestamps that lie no further apart.
APART_MS: Final = 5_000
NEVER: Final = -1


@dataclass(slots=True)
class Standing:
    """Where the verification of a partition stands: what a later run goes on from.

    `whole_from` is the offset behind which nothing is missing (`NEVER`: not known), `older` and
    `newer` are the pair that shows it.  Strangers' records up to `told_to` were told of.
    `unread`: events of schedules here may go to a topic that is not read.
    It was read last at `read_ms`, which the owner sets.
    `jobs` are how far bulk jobs have come that go on, by their keys.
    `blind_until_ms` is the timestamp of the last transaction that could not be checked.
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
    read_ms: int = NEVER
    jobs: dict[str, tuple[str, int]] = field(default_factory=dict)


class Cut(NamedTuple):
    """A transaction as it lies in the log: rows, the record of its manifest, and what that says.

    `lying` is how many records were read between the `first` of them and the manifest, strangers'
    included.
    """

    rows: list[Logged]
    last: Logged
    sealed: Sealed
    first: int
    lying: int


class PartitionVerifier:
    """Checks one partition; `findings` are what it found, `standing` where it is.

    `begin` a round, `feed` records in the order of their offsets, `go_on` as far as outputs were
    read, and `end`.
    """

    def __init__(self, spot: Spot, memory: Memory, counts: CheckCounts, standing: Standing) -> None:
        """`spot` names topic and partition."""
        self.findings: list[Breached] = []
        self.standing = standing
        self.fed_to = standing.next_offset
        self._topic, self._partition = spot.topic, spot.partition
        self._memory = memory
        self._counts = counts
        self._open: list[Logged] = []
        self._cuts: list[Cut] = []
        self._gaps: list[tuple[int, Breached]] = []
        self._run_from = self._whole_from = NEVER
        self._judge = FireJudge(memory, Coverage("", {}))

    # -- a round -----------------------------------------------------------------------------------

    def begin(self, coverage: Coverage, *, pair_holds: bool = False) -> None:
        """A round begins; `pair_holds` says that the record at `standing.older` is still there."""
        standing = self.standing
        self._judge = FireJudge(self._memory, coverage)
        self._open, self._cuts = [], []
        self._run_from = self.fed_to = standing.next_offset
        self._whole_from = standing.newer if pair_holds else NEVER

    def renew(self, coverage: Coverage) -> None:
        """Outputs were read further within a round."""
        self._judge = FireJudge(self._memory, coverage)

    def feed(self, records: Sequence[Logged]) -> None:
        """The next records, up to the last stable offset."""
        for record in records:
            self.fed_to = record.offset + 1
            whose = record if self._is_row(record) else record._replace(stranger=True)
            self._open.append(whose)
            if whose.stranger:
                self._tell_stranger(record)
            elif record.key.startswith(MANIFEST_KEY) and record.value is not None:
                self._cuts.append(_cut(self._open, manifest(record.value)))
                self._open = []
            if len(self._open) > MOST_OPEN and not self._cuts:
                self._fold_open()

    def go_on(self, *, final: bool) -> bool:
        """Check transactions whose fires can be seen; whether that were all that were fed.

        `final` says that nothing more can come, so that an event which is missing in the outputs is
        a finding.
        """
        while self._cuts:
            if not self._check(self._cuts[0], final=final):
                return False
            del self._cuts[0]
        return True

    def end(self, *, hidden: bool = False) -> None:
        """The round is over; with `hidden` an open transaction holds back what follows."""
        sealed = self.standing.sealed
        for number, found in self._gaps:
            if sealed is not None and number > sealed.number - MANIFESTS_KEPT:
                self.findings.append(found)
        self._gaps = []
        rows = [record for record in self._open if not record.stranger]
        if rows and not hidden:
            self._find(Breach.TORN, rows[-1].offset, f"{len(rows)} rows at the end", "a manifest")
            self._pass_open()

    # -- transactions ------------------------------------------------------------------------------

    def _tell_stranger(self, record: Logged) -> None:
        """Tell of a record once, also where a later round reads it again."""
        if record.offset > self.standing.told_to:
            self.standing.told_to = record.offset
            self._find(Breach.STRANGER, record.offset, _named(record), "rows of workers alone")

    def _is_row(self, record: Logged) -> bool:
        """Whether a worker wrote a record, laid out as specified as far as it is looked at."""
        try:
            if record.value is not None and record.key.startswith(MANIFEST_KEY):
                manifest(record.value)
            elif record.value is not None and record.key.startswith(JOB_KEY):
                job(record.key, record.value)
            elif record.value is not None and not record.key.startswith(OWN_KEY):
                return schedule(record.value) is not None and not record.stranger
        except NotReadable:
            return False
        return not record.stranger

    def _check(self, cut: Cut, *, final: bool) -> bool:
        """Check a transaction and fold it; False where an output may show yet what is missing."""
        standing = self.standing
        contiguous = standing.contiguous and cut.first == standing.manifest_at + 2
        contiguous = contiguous and cut.last.offset - cut.first == cut.lying
        whole = contiguous or NEVER < self._whole_from < cut.first
        recovered = self._recovered(cut)
        judged = None
        if whole and not recovered:
            judged = self._judged(cut)
            if judged.waits and not final:
                return False
        standing.contiguous = contiguous
        self._counts.transactions += 1
        self._sequence(cut, recovered=recovered, whole=whole)
        self._fold(cut.rows)
        if judged is not None:
            self._report(cut, judged)
        else:
            self._pass_over(cut, recovered=recovered)
        self._count(cut, whole=whole, recovered=recovered)
        standing.sealed, standing.manifest_at = cut.sealed, cut.last.offset
        standing.next_offset = cut.last.offset + 1
        return True

    def _pass_over(self, cut: Cut, *, recovered: bool) -> None:
        """A transaction whose fires cannot be checked."""
        self.standing.blind_until_ms = cut.last.timestamp_ms + APART_MS
        if recovered:
            self._counts.recoveries += 1
        else:
            self._counts.compacted += 1

    def _recovered(self, cut: Cut) -> bool:
        """Whether a recovery wrote this, which begins anew under a higher number."""
        before = self.standing.generation
        for record in cut.rows:
            if record.key == IDENTITY_KEY and record.value is not None:
                try:
                    self.standing.generation = max(before, generation(record.value))
                except NotReadable:
                    continue
        return self.standing.generation > before

    def _sequence(self, cut: Cut, *, recovered: bool, whole: bool) -> None:
        """What manifests may say one after the other."""
        before, sealed, offset = self.standing.sealed, cut.sealed, cut.last.offset
        if before is None:
            if whole and not recovered and sealed.number != 1:
                self._find(Breach.NUMBER, offset, f"number {sealed.number}", "1, the first")
            return
        jump = RECOVERY_JUMP if recovered else 1
        wanted = before.number + jump
        if sealed.number < wanted or (sealed.number > wanted and not recovered):
            least = f"{wanted}, behind {before.number}" + (" or more" if recovered else "")
            found = self._breached(Breach.NUMBER, offset, f"number {sealed.number}", least)
            if whole or sealed.number < wanted:
                self.findings.append(found)
            else:
                self._gaps.append((sealed.number - 1, found))
        self._no_less(Breach.EPOCH, offset, sealed.epoch, before.epoch)
        if not recovered:
            self._no_less(Breach.POSITION, offset, sealed.position, before.position)
            self._no_less(Breach.WATERMARK, offset, sealed.watermark_ms, before.watermark_ms)

    def _no_less(self, breach: Breach, offset: int, now: int, before: int) -> None:
        if now < before:
            self._find(breach, offset, f"{breach} {now}", f"{before} or more")

    # -- fires -------------------------------------------------------------------------------------

    def _judged(self, cut: Cut) -> FiresJudged:
        row_fires: list[RowFire | Unfounded] = []
        versions: dict[bytes, list[tuple[int, int]]] = {}
        asides: list[int] = []
        for record in cut.rows:
            if record.key.startswith(ASIDE_KEY) and record.value is None:
                asides.append(aside_offset(record.key))
            if record.key.startswith(OWN_KEY):
                continue
            row = _row_of(record)
            known = self._memory.schedule(self._partition, short(record.key))
            row_fire = row_fire_of(record.key, known, row, cut.sealed.watermark_ms, record.offset)
            if row_fire is not None:
                row_fires.append(row_fire)
            had = versions.setdefault(record.key, [])
            if row is not None:
                had.append((row.life, row.version))
        self.standing.unread = self.standing.unread or self._judge.is_unread(versions)
        ask = Ask(
            self._partition,
            cut.sealed,
            self._taken_in(cut.sealed, asides),
            cut.last.timestamp_ms,
            versions,
            self.standing.unread,
            [*self._stretches(cut)],
        )
        return self._judge.judge(ask, row_fires)

    def _stretches(self, cut: Cut) -> Iterator[JobRange]:
        """What the transaction may have fired for bulk jobs: it writes the rows of these anew."""
        for record in cut.rows:
            if record.key.startswith(JOB_KEY) and record.value is not None:
                name, since_ms = self.standing.jobs.get(_text(record.key), ("", 0))
                yield JobRange(job(record.key, record.value), (name.encode(), since_ms))

    def _taken_in(self, sealed: Sealed, asides: list[int]) -> list[int] | None:
        """Offsets of the requests that a transaction took in; None where there are too many."""
        before = self.standing.sealed
        first = sealed.position if before is None else before.position
        number = sealed.position - first
        return [*range(first, sealed.position), *asides] if 0 <= number < MOST_TAKEN else None

    def _report(self, cut: Cut, judged: FiresJudged) -> None:
        counted = self._counts
        counted.checked += 1
        counted.fires += cut.sealed.fired
        counted.output_gone += judged.gone
        counted.output_unread += judged.unread
        counted.order_unknown += judged.order_unknown
        for fault in judged.faults:
            offset = cut.last.offset if fault.offset < 0 else fault.offset
            self._find(fault.breach, offset, fault.found, fault.expected)
        counted.digests += not (judged.order_unknown or judged.faults or judged.missing)
        for fire, identity in judged.missing:
            self._memory.lose(identity)
            shown = fire.name.decode(errors="replace")
            found = f"{shown} fired, due at {fire.before.due_ms}, and is in no output"
            self._find(Breach.LOST, fire.offset, found, f"an event with the id {identity.hex()}")
        self._memory.settle(judged.identities)

    # -- what waits --------------------------------------------------------------------------------

    def _fold_open(self) -> None:
        """Fold rows whose manifests compaction has removed."""
        self._fold([record for record in self._open if not record.stranger])
        self._pass_open()

    def _pass_open(self) -> None:
        self.standing.next_offset = self._open[-1].offset + 1
        self.standing.contiguous = False
        self._open = []

    def _fold(self, rows: Sequence[Logged]) -> None:
        standing = self.standing
        for record in rows:
            if record.key.startswith(JOB_KEY):
                self._fold_job(record)
            if record.key.startswith(OWN_KEY):
                continue
            name = short(record.key)
            before = self._memory.schedule(self._partition, name)
            if before is not None and before.offset >= self._run_from:
                standing.older, standing.newer = before.offset, record.offset
                if self._whole_from == NEVER:
                    self._whole_from = record.offset
            now = remembered(_row_of(record), before, record.offset)
            standing.waiting += counts(now) - counts(before)
            self._memory.put(self._partition, name, now)

    def _fold_job(self, record: Logged) -> None:
        """Remember how far a job has come that goes on."""
        found = None if record.value is None else job(record.key, record.value)
        if found is not None and found.runs:
            name, at_ms = found.reached
            self.standing.jobs[_text(record.key)] = name.decode(), at_ms
        else:
            self.standing.jobs.pop(_text(record.key), None)

    def _count(self, cut: Cut, *, whole: bool, recovered: bool) -> None:
        """Compare how many schedules wait with what the manifest says; once for each difference."""
        standing = self.standing
        differs = cut.sealed.pending - standing.waiting
        if whole and not recovered and differs != standing.drift:
            by_rows = standing.waiting + standing.drift
            said = f"{cut.sealed.pending} schedules wait by the manifest"
            self._find(Breach.PENDING, cut.last.offset, said, f"{by_rows}, by the rows")
        # Rows of a thinned-out log are not what an older manifest counted.
        standing.drift = differs if whole else 0

    # -- findings ----------------------------------------------------------------------------------

    def _breached(self, breach: Breach, offset: int, found: str, expected: str) -> Breached:
        return Breached(breach, Spot(self._topic, self._partition, offset), found, expected)

    def _find(self, breach: Breach, offset: int, found: str, expected: str) -> None:
        self.findings.append(self._breached(breach, offset, found, expected))


def _cut(records: list[Logged], sealed: Sealed) -> Cut:
    """A transaction of the records up to its manifest."""
    rows = [record for record in records[:-1] if not record.stranger]
    return Cut(rows, records[-1], sealed, records[0].offset, len(records) - 1)


def _text(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


def _row_of(record: Logged) -> WaitingRow | Over | None:
    return None if record.value is None else schedule(record.value)


def _named(record: Logged) -> str:
    return f"a record with the key {record.key[:80].decode(errors='backslashreplace')}"
