"""One step of a partition: its instant, how far it has come, its effects, and the undo.

    PartitionStatus ──► Step ──┬─ committed ───► the next one; overlay written, undo log forgotten
                                 └─ rolled back ─► the same one; overlay dropped, undo log played

A step is made from where the partition stands, and thrown away at its end.  Its own state (scan
position, source position, effects) lies in the `Step`, so there is nothing to put back.  The memory
of a partition besides its store (how much waits, which groups are locked, how far rates are used
up) changes while a step goes on, and is put back by the undo log (`undo.py`).

All of this belongs to one thread, the one that owns the partition.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final, NamedTuple

from belfry.engine.effects import Effects
from belfry.firing.due import ScanPosition
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import Pending

NO_MANIFEST: Final = Manifest(0, 0, 0, 0, 0, 0, b"")


def never() -> bool:
    """A step's time is never up: for callers that nobody waits for."""
    return False


class PartitionStatus(NamedTuple):
    """Where a partition stands between two steps.

    `manifest` is that of the last commit, and `scan` how far the timeline has been emptied then.
    `heard_ms` is the newest arrival (epoch ms) among the requests that were read: answers that are
    kept for repeated requests are forgotten by it, and not by the clock.
    """

    manifest: Manifest = NO_MANIFEST
    scan: ScanPosition = ScanPosition.at(0)
    heard_ms: int = 0

    @classmethod
    def of(cls, stored: StoredState | None) -> PartitionStatus:
        """Where a partition stands whose store says this of itself; None for an empty store."""
        manifest = NO_MANIFEST if stored is None else stored.manifest
        return cls(manifest, ScanPosition.at(manifest.watermark_ms))


class Step:
    """All that is done between two commits; instants are epoch ms.

    `scan` is how far the timeline has been emptied, by the end of the part that fires.  While that
    goes on, `horizon_ms` is the instant up to which it may empty it: a schedule that comes due
    again until then is `set_aside`, and put where it belongs when the position is known.  `begins`
    is where the partition stood before.  `first_ms` is the instant at which the step began to do
    something.  Once its `time_is_up` it fires no more than it has to.
    """

    __slots__ = (
        "begins",
        "effects",
        "first_ms",
        "heard_ms",
        "horizon_ms",
        "now_ms",
        "position",
        "scan",
        "set_aside",
        "time_is_up",
    )

    def __init__(self, begins: PartitionStatus, effects: Effects) -> None:
        self.begins = begins
        self.effects = effects
        self.scan = begins.scan
        self.position = begins.manifest.position
        self.heard_ms = begins.heard_ms
        self.now_ms = self.horizon_ms = self.first_ms = 0
        self.set_aside: list[tuple[Pending, bytes]] = []
        self.time_is_up: Callable[[], bool] = never

    @property
    def number(self) -> int:
        """The number of its transaction."""
        return self.begins.manifest.txn_seq + 1

    @classmethod
    def alone(cls, now_ms: int, effects: Effects) -> Step:
        """A step that belongs to no partition's store: its effects are all of it."""
        step = cls(PartitionStatus(), effects)
        step.at(now_ms)
        return step

    def at(self, now_ms: int) -> None:
        """The following parts of the step happen at this instant."""
        self.now_ms = self.effects.now_ms = now_ms
        if self.effects.empty:
            self.first_ms = now_ms

    def begin_firing(self, now_ms: int) -> None:
        """The part that fires begins: all that is due by now may leave."""
        self.at(now_ms)
        self.horizon_ms = max(now_ms, self.scan.reached_ms)

    def sealed(
        self, owner_epoch: int, pending_change: int, *, read_lease: bool, grouped: bool
    ) -> Manifest:
        """The manifest of the step, which is complete: its work, and where it leads to.

        By the step `pending_change` more schedules wait than before; `grouped` is as in a manifest.
        """
        before, fire_ids = self.begins.manifest, self.effects.fire_ids
        manifest = self.effects.manifest = Manifest(
            txn_seq=before.txn_seq + 1,
            owner_epoch=owner_epoch,
            position=self.position,
            watermark_ms=max(before.watermark_ms, self.scan.watermark_ms),
            pending=before.pending + pending_change,
            fired=len(fire_ids),
            digest=blake2b(b"".join(fire_ids), digest_size=16).digest(),
            read_lease=read_lease,
            grouped=grouped,
            sent_on=bool(self.effects.rerouted),
        )
        return manifest

    def stands(self, manifest: Manifest) -> PartitionStatus:
        """Where the partition stands once the step is committed under this manifest."""
        return PartitionStatus(manifest, self.scan, self.heard_ms)
