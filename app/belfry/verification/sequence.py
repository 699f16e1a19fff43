"""The order of manifests: allowed numbers, epochs, positions, watermarks.

    manifest 7   epoch 3   position 410   watermark 12:00:05
    manifest 8   epoch 3   position 433   watermark 12:00:06     as it has to be
    manifest 9   epoch 2   position 440   watermark 12:00:07     `epoch`: a fenced owner has written

A number says most: each transaction has the next one, so one that is missing was lost.  In a log
that compaction has thinned out, manifests may be missing for good reasons, as belfry keeps the
latest `MANIFESTS_KEPT` alone.  So a gap there is no finding yet.  It is one at the end of the
round, if the manifest that is missing is young enough to have been kept.

A recovery begins anew: its number is higher by `RECOVERY_JUMP` or more, and position and watermark
may go back.  It is known by the generation of the partition, which it raises.
"""

from __future__ import annotations

from collections.abc import Iterator

from belfry.verification.findings import Breach, Breached, Spot
from belfry.verification.rows import (
    IDENTITY_KEY,
    MANIFESTS_KEPT,
    RECOVERY_JUMP,
    NotReadable,
    generation,
)
from belfry.verification.standing import Cut, Standing


class ManifestSequence:
    """Compares each manifest of a partition with the one before it, which `standing` holds."""

    def __init__(self, place: Spot, standing: Standing) -> None:
        """`place` names topic and partition."""
        self._place = place
        self._standing = standing
        self._gaps: list[tuple[int, Breached]] = []

    def recovered(self, cut: Cut) -> bool:
        """Whether a recovery wrote this, which begins anew under a higher number."""
        standing = self._standing
        before = standing.generation
        for record in cut.rows:
            if record.key == IDENTITY_KEY and record.value is not None:
                try:
                    standing.generation = max(before, generation(record.value))
                except NotReadable:
                    continue
        return standing.generation > before

    def check(self, cut: Cut, *, recovered: bool, whole: bool) -> Iterator[Breached]:
        """Breaches that a manifest shows; a gap that may be none is kept until the `end`."""
        before, sealed, offset = self._standing.sealed, cut.sealed, cut.last.offset
        if before is None:
            if whole and not recovered and sealed.number != 1:
                yield self._breached(offset, Breach.NUMBER, sealed.number, "1, the first")
            return
        wanted = before.number + (RECOVERY_JUMP if recovered else 1)
        if sealed.number < wanted or (sealed.number > wanted and not recovered):
            least = f"{wanted}, behind {before.number}" + (" or more" if recovered else "")
            found = self._breached(offset, Breach.NUMBER, sealed.number, least)
            if whole or sealed.number < wanted:
                yield found
            else:
                self._gaps.append((sealed.number - 1, found))
        growing = [(Breach.EPOCH, sealed.epoch, before.epoch)]
        if not recovered:
            growing += [
                (Breach.POSITION, sealed.position, before.position),
                (Breach.WATERMARK, sealed.watermark_ms, before.watermark_ms),
            ]
        for breach, now, least_now in growing:
            if now < least_now:
                yield self._breached(offset, breach, now, f"{least_now} or more")

    def end(self) -> Iterator[Breached]:
        """Gaps in numbers of manifests that are young enough to have been kept."""
        sealed = self._standing.sealed
        for number, found in self._gaps:
            if sealed is not None and number > sealed.number - MANIFESTS_KEPT:
                yield found
        self._gaps = []

    def _breached(self, offset: int, breach: Breach, now: int, expected: str) -> Breached:
        """A breach of what `breach` is called by: ``epoch 2``, where it says what the epoch is."""
        return Breached(breach, self._place._replace(offset=offset), f"{breach} {now}", expected)
