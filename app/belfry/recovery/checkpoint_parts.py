"""The parts of a worker for makers and users of checkpoints: where they keep them, and for whom.

    store    an object store, shared by all workers      made by the one, read by all
    served   this worker's own disk                      what others may fetch from here
    peers    other workers                               what may be fetched from them

Each of them may be missing; without any of them no checkpoints are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from belfry.host.clock import SystemClock
from belfry.host.failpoints import Failpoints
from belfry.recovery.checkpoint_peers import PeerCheckpoints
from belfry.recovery.checkpoint_serving import ServedCheckpoints
from belfry.recovery.checkpoint_store import CheckpointStore
from belfry.store.checkpoint import IndexKeys
from belfry.telemetry.checkpoint_metrics import CheckpointMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDependencies:
    """The parts of a worker for makers and users of checkpoints.

    `interval_s` is how old the newest checkpoint of a partition becomes before there is another.
    `keys` sign and judge the indexes in the store.
    """

    store: CheckpointStore | None
    keys: IndexKeys
    interval_s: float
    data_dir: Path
    clock: SystemClock
    failpoints: Failpoints
    metrics: CheckpointMetrics
    served: ServedCheckpoints | None = None
    peers: PeerCheckpoints | None = None
