"""The makers, servers and readers of checkpoints in this worker, made from its settings.

    checkpoint_store   checkpoint_peers    this worker
    none               with_store, never   keeps none
    none               always              keeps its own for others, and fetches theirs
    set                never               sends its own to the store, and fetches from there
    set                with_store, always  both, if workers share a secret

With `with_store`, workers that have a store of checkpoints also fetch them from one another, which
is quicker.  Without a store they do not, because kept checkpoints take disk: up to the size of the
state once more.
"""

from __future__ import annotations

from belfry.api.workers.checkpoint_asking import CheckpointAsker, token_of
from belfry.api.workers.checkpoint_door import CheckpointDoor
from belfry.api.workers.directory import Directory
from belfry.group.group import Group
from belfry.host.clock import SystemClock
from belfry.host.disk import MIB
from belfry.host.failpoints import Failpoints
from belfry.kafka.changelog_trust import ChangelogTrust
from belfry.recovery.checkpoint_making import CheckpointMaker
from belfry.recovery.checkpoint_parts import CheckpointDependencies
from belfry.recovery.checkpoint_peers import PeerCheckpoints
from belfry.recovery.checkpoint_serving import ServedCheckpoints
from belfry.recovery.checkpoint_store import checkpoint_store
from belfry.settings import Settings
from belfry.store.checkpoint import IndexKeys
from belfry.telemetry.checkpoint_metrics import CheckpointMetrics
from belfry.wire.worker_keys import Purpose


def checkpoints_of(
    settings: Settings,
    clock: SystemClock,
    metrics: CheckpointMetrics,
    trust: ChangelogTrust,
    failpoints: Failpoints,
    group: Group,
) -> CheckpointDependencies | None:
    """The maker and the reader of checkpoints; None if no checkpoints are kept.

    `http_advertised_url` has to be set by now.
    """
    store, served, peers = checkpoint_store(settings), None, None
    if _for_peers(settings):
        # A foreign process may have joined the group, so only signed checkpoints count.
        keys = IndexKeys(settings.worker_keys(Purpose.CHECKPOINTS), signs=True, required=True)
        reserve = settings.disk_reserve_mb * MIB
        served = ServedCheckpoints(
            keys, clock, metrics, settings.data_dir, reserve, failpoints=failpoints
        )
        holders = Directory(group, settings.http_advertised_url or "").keepers
        peers = PeerCheckpoints(holders, CheckpointAsker(settings, clock), keys, clock)
    if store is None and peers is None:
        return None
    return CheckpointDependencies(
        store=store,
        keys=trust.index_keys,
        interval_s=settings.checkpoint_interval_s,
        data_dir=settings.data_dir,
        clock=clock,
        failpoints=failpoints,
        metrics=metrics,
        served=served,
        peers=peers,
    )


def door_of(
    settings: Settings, clock: SystemClock, maker: CheckpointMaker | None
) -> CheckpointDoor | None:
    """The access of other workers to kept checkpoints; None if none are kept for them."""
    served = None if maker is None else maker.served
    if served is None:
        return None
    token, bytes_per_s = token_of(settings, clock), float(settings.checkpoint_peer_bytes_per_s)
    return CheckpointDoor(served, token, bytes_per_s, mine=settings.http_advertised_url or "")


def _for_peers(settings: Settings) -> bool:
    """Whether workers keep checkpoints for one another; never without a secret to sign with."""
    if settings.checkpoint_peers == "with_store" and settings.checkpoint_store is None:
        return False
    return settings.checkpoint_peers != "never" and settings.http_worker_secret is not None
