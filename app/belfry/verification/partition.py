"""One partition of a changelog, transaction by transaction, against the specification.

    records ─► rows up to a manifest ─► numbers, epoch, position, watermark (`sequence`)
                                    ─► fires (`fires`) against pending schedules and outputs
                                    ─► the schedules that wait now, and how many (`waiting`)

A changelog is compacted, and `wholeness.py` says which part is known to be whole.  A transaction of
which a row may be missing is folded, and counted as not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belfry.verification.coverage import Coverage
from belfry.verification.extras import Ask
from belfry.verification.findings import Breach, Breached, CheckCounts, Spot
from belfry.verification.fires import FireJudge
from belfry.verification.judged import FiresJudged
from belfry.verification.memory import Memory, short
from belfry.verification.row_fires import RowFire, Unfounded, row_fire_of
from belfry.verification.rows import MANIFEST_KEY, OWN_KEY, Logged, manifest
from belfry.verification.sequence import ManifestSequence
from belfry.verification.standing import Cut, Standing, cut_of, is_filler, is_row, row_of, taken_in
from belfry.verification.waiting import Change, WaitingSchedules
from belfry.verification.wholeness import Wholeness

# Rows without a manifest that are kept; more are folded, as those of a compacted log.
MOST_OPEN: Final = 100_000


class PartitionVerifier:
    """Checks one partition; `findings` are its results, `standing` its position.

    `begin` a round, `feed` records in the order of their offsets, `go_on` as far as outputs were
    read, and `end`. `wholeness` is told how to ask the log about holes.
    """

    def __init__(self, spot: Spot, memory: Memory, counts: CheckCounts, standing: Standing) -> None:
        """`spot` names topic and partition."""
        self.findings: list[Breached] = []
        self.standing = standing
        self.fed_to = standing.next_offset
        # Offsets, from and to, of transactions that fired in another cluster.
        self.elsewhere: Sequence[tuple[int, int]] = ()
        self._topic, self._partition = spot.topic, spot.partition
        self._memory = memory
        self._counts = counts
        self._open: list[Logged] = []
        self._cuts: list[Cut] = []
        self.wholeness = Wholeness(standing)
        self._sequence = ManifestSequence(spot, standing)
        self._waiting = WaitingSchedules(spot, memory, standing)
        self._judge = FireJudge(memory, Coverage("", {}))

    def move_among(self, partitions: int) -> None:
        """Say how many partitions there are, among which key groups move."""
        self._waiting.move_among(partitions)

    # -- a round -----------------------------------------------------------------------------------

    def begin(self, coverage: Coverage, *, pair_holds: bool = False) -> None:
        """A round begins; `pair_holds` says that the record at `standing.older` is still there."""
        self._judge = FireJudge(self._memory, coverage)
        self._open, self._cuts = [], []
        self.fed_to = self.standing.next_offset
        self._waiting.begin(pair_holds=pair_holds)

    def renew(self, coverage: Coverage) -> None:
        """Outputs were read further within a round."""
        self._judge = FireJudge(self._memory, coverage)

    def feed(self, records: Sequence[Logged]) -> None:
        """The next records, up to the last stable offset."""
        for record in records:
            self.fed_to = record.offset + 1
            whose = record if is_row(record) else record._replace(stranger=True)
            self._open.append(whose)
            if whose.stranger:
                self._tell_stranger(record)
            elif record.key.startswith(MANIFEST_KEY) and record.value is not None:
                self._cuts.append(cut_of(self._open, manifest(record.value)))
                self._open = []
            if len(self._open) > MOST_OPEN and not self._cuts:
                self._fold_open()

    def go_on(self, *, final: bool) -> bool:
        """Check transactions whose fires can be seen; whether these were all given ones.

        `final` says that no more events can come, so that an event which is missing in the outputs
        is a finding.
        """
        while self._cuts:
            if not self._check(self._cuts[0], final=final):
                return False
            del self._cuts[0]
        return True

    def end(self, *, hidden: bool = False) -> None:
        """The round is over; with `hidden` an open transaction holds back later records."""
        self.findings += self._sequence.end()
        rows = [record for record in self._open if not record.stranger]
        # A mirror that goes on carries a first copy in pieces: the manifest is to come.
        if rows and not hidden and not self._is_elsewhere(rows[-1].offset):
            self._find(Breach.TORN, rows[-1].offset, f"{len(rows)} rows at the end", "a manifest")
            self._pass_open()

    # -- transactions ------------------------------------------------------------------------------

    def _tell_stranger(self, record: Logged) -> None:
        """Tell of a record once, also where a later round reads it again."""
        if record.offset > self.standing.told_to and not is_filler(record):
            self.standing.told_to = record.offset
            self._find(Breach.STRANGER, record.offset, _named(record), "rows of workers alone")

    def _check(self, cut: Cut, *, final: bool) -> bool:
        """Check a transaction and fold it; False if an output may still show its missing events."""
        standing = self.standing
        contiguous = self.wholeness.up_to(cut)
        elsewhere = self._is_elsewhere(cut.first)
        # Compaction there leaves no hole here.
        whole = not elsewhere and (contiguous or self._waiting.is_whole(cut.first))
        recovered = self._sequence.recovered(cut)
        judged = self._judged(cut) if whole and not recovered else None
        if judged is not None and judged.waits and not final:
            return False
        changes = self._waiting.changes(cut.rows)
        if judged is not None and self._is_wrong(cut, judged, changes):
            # No finding may rest on a hole that was taken for an end, and was a row.
            whole = self._waiting.is_whole(cut.first) or self.wholeness.is_sure()
            contiguous, judged = self.wholeness.up_to(cut), judged if whole else None
        standing.contiguous, standing.ends = contiguous, self.wholeness.ends
        standing.trusted = self.wholeness.trusted
        self._counts.transactions += 1
        self.findings += self._sequence.check(cut, recovered=recovered, whole=whole)
        # Moves of two clusters may have one name, so those that were carried are not judged.
        self._waiting.fold(cut.rows, changes, whole=whole and not recovered)
        if judged is not None:
            self._report(cut, judged)
        else:
            self._pass_over(cut, recovered=recovered, elsewhere=elsewhere)
        self.findings += self._waiting.compare(cut, whole=whole, recovered=recovered)
        standing.go_on(cut.sealed, cut.last.timestamp_ms)
        standing.manifest_at, standing.next_offset = cut.last.offset, cut.last.offset + 1
        return True

    def _is_wrong(self, cut: Cut, judged: FiresJudged, changes: Sequence[Change]) -> bool:
        """Whether a transaction will have a finding, if no row is missing up to it."""
        if judged.faults or judged.missing or self._waiting.will_differ(cut, changes):
            return True
        return any(self._sequence.check(cut, recovered=False, whole=True))

    def _is_elsewhere(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.elsewhere)

    def _pass_over(self, cut: Cut, *, recovered: bool, elsewhere: bool) -> None:
        """A transaction whose fires cannot be checked."""
        if elsewhere:
            self._counts.elsewhere += 1
            return
        self.standing.pass_over(cut.last.timestamp_ms)
        if recovered:
            self._counts.recoveries += 1
        else:
            self._counts.compacted += 1

    # -- fires -------------------------------------------------------------------------------------

    def _judged(self, cut: Cut) -> FiresJudged:
        row_fires: list[RowFire | Unfounded] = []
        versions: dict[bytes, list[tuple[int, int]]] = {}
        moved = self._waiting.moved(cut.rows)
        for record in cut.rows:
            if record.key.startswith(OWN_KEY) or moved.left(record):
                continue
            row = row_of(record)
            known = self._memory.schedule(self._partition, short(record.key))
            row_fire = row_fire_of(record, known, row, cut.sealed.watermark_ms)
            came = isinstance(row_fire, Unfounded) and moved.came(record)
            if row_fire is not None and not came:
                row_fires.append(row_fire)
            had = versions.setdefault(record.key, [])
            had += [] if row is None else [(row.life, row.version)]
        self.standing.unread = self.standing.unread or self._judge.is_unread(versions)
        ask = Ask(
            self._partition,
            cut.sealed,
            taken_in(self.standing.sealed, cut),
            cut.last.timestamp_ms,
            versions,
            self.standing.unread,
            [*self._waiting.stretches(cut)],
            moved.lay_here,
        )
        return self._judge.judge(ask, row_fires)

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
        rows = [record for record in self._open if not record.stranger]
        self._waiting.fold(rows, self._waiting.changes(rows))
        self._pass_open()

    def _pass_open(self) -> None:
        self.standing.next_offset = self._open[-1].offset + 1
        self.standing.contiguous = False
        self._waiting.ledger.thin()
        self._open = []

    def _find(self, breach: Breach, offset: int, found: str, expected: str) -> None:
        spot = Spot(self._topic, self._partition, offset)
        self.findings.append(Breached(breach, spot, found, expected))


def _named(record: Logged) -> str:
    return f"a record with the key {record.key[:80].decode(errors='backslashreplace')}"
