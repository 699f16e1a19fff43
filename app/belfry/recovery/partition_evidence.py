"""Evidence of a partition that has a problem, as values: its log, copies of its state, ids.

    changelog ── manifest, identity, end            `logged`, `identity`, `log_end`
    data directories ── copies of the state         `copies`, each whole as of its manifest
    anchor ── who the partition was                 `anchor`
    input ── from where to where it can be read     `low`, `end`

`rewind.py` gathers them, `recovery_plan.py` decides by them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from belfry.store.identity import Contradiction, Identity, differ, lost_changelog, truncated_log
from belfry.store.layout.manifests import Manifest
from belfry.store.schedules import ScheduleStore


class CannotRecover(Exception):
    """A recovery is not possible as it was asked for; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Local state of a partition, whole as of `manifest`."""

    path: Path
    cluster: str
    changelog: str
    offset: int
    written_ms: int
    manifest: Manifest
    identity: Identity | None
    in_use: bool

    @property
    def generation(self) -> int:
        """How many recoveries its changelog had seen."""
        return 0 if self.identity is None else self.identity.generation


@dataclass(slots=True)
class PartitionEvidence:
    """The evidence about one partition."""

    partition: int
    here: Identity
    anchor: Identity | None
    store: ScheduleStore
    logged: Manifest | None
    identity: Identity | None
    log_end: int
    held_back: bool
    low: int
    end: int
    copies: list[Copy] = field(default_factory=list)
    problem: Contradiction | None = None

    @property
    def told_generation(self) -> int:
        """How many recoveries anchor and changelog tell of; 0 where neither tells of any."""
        told = (each.generation for each in (self.anchor, self.identity) if each is not None)
        return max(told, default=0)

    @property
    def generation(self) -> int:
        """How many recoveries the newest evidence tells of, local copies included."""
        return max([self.told_generation, *(copy.generation for copy in self.copies)])


def ahead_of_log(found: PartitionEvidence) -> Contradiction | None:
    """The problem that stops a worker with these copies ahead of the changelog, or None."""
    for copy in found.copies:
        if not copy.in_use or copy.generation < found.told_generation:
            continue
        if found.logged is None:
            held = f"{copy.path} keeps {copy.manifest.pending} schedules that wait"
            return lost_changelog(found.here, copy.changelog, held)
        same = not differ(copy.changelog, found.here.changelog)
        if same and copy.offset > found.log_end:
            return truncated_log(found.log_end, copy.offset)
    return None


def hole_in_changelog(what: str) -> Contradiction:
    """A changelog that lacks rows; `what` is missing, as the replay tells it."""
    return Contradiction(
        "hole_in_changelog",
        f"the changelog does not hold what its manifests say: {what}.",
        "recover with `belfry recover --from local --data-dir DIR`, or keep what is there with"
        " `belfry recover --from log`.",
    )
