"""What all partitions of a worker share, made from its settings and from what the cluster has."""

from __future__ import annotations

import os
from threading import Lock
from typing import NamedTuple

from belfry.firing.clock_guard import ClockGuard
from belfry.registry import startup
from belfry.schedules.identity import Homes
from belfry.schedules.tenant import Delivery, Level, Signing
from belfry.schedules.tenants import Tenants
from belfry.settings import Settings
from belfry.telemetry.metrics import Metrics
from belfry.wire.worker_keys import Purpose
from belfry.worker import topics
from belfry.worker.agreement import Agreement, Statements
from belfry.worker.anchors import Anchors
from belfry.worker.changelog_trust import ChangelogTrust
from belfry.worker.clock import SystemClock
from belfry.worker.cluster_start import Found, homes
from belfry.worker.failpoints import Failpoints
from belfry.worker.gauges import Gauges
from belfry.worker.group import Group
from belfry.worker.identities import Identities
from belfry.worker.opener import PartitionOpener
from belfry.worker.outputs import Outputs
from belfry.worker.owners import MakeRunner
from belfry.worker.partition_log import LogEnds
from belfry.worker.policies import Policies
from belfry.worker.runner import PartitionRunner, WorkerPort
from belfry.worker.tenant_topics import TenantTopics
from belfry.worker.term import Warm
from belfry.worker.transaction_watch import TransactionWatch
from belfry.worker.transactions import Outlets


def _signing(settings: Settings) -> Signing:
    return Signing(
        settings.claims == "signed",
        settings.worker_keys(Purpose.REQUESTS),
        settings.worker_keys(Purpose.DELIVERIES),
    )


def _outlets(settings: Settings, frames: startup.Frames, outputs: Outputs) -> Outlets:
    return Outlets(
        changelog=settings.topic("changelog"),
        schedules=settings.topic("schedules"),
        rejected=settings.topic("rejected"),
        lifecycle=settings.topic("lifecycle"),
        lifecycle_head=frames.lifecycle,
        deliveries=settings.topic("deliveries"),
        deliveries_head=frames.deliveries,
        partitions_of=outputs.partitions_of,
    )


class Shared(NamedTuple):
    """What all partitions of a worker share."""

    opener: PartitionOpener
    guard: ClockGuard
    outputs: Outputs

    def runners(self, port: WorkerPort) -> MakeRunner:
        """What makes the runners of this worker's partitions."""
        opener, guard, outputs = self

        def make(partition: int, warm: Warm | None) -> PartitionRunner:
            return PartitionRunner(partition, opener, guard, outputs, port, warm)

        return make


def share(
    settings: Settings, found: Found, clock: SystemClock, metrics: Metrics, group: Group
) -> Shared:
    """Make what partitions share; nothing is started."""
    admin, cluster_id, registry, frames = found
    tenants = Tenants(
        settings.topic("fired."),
        Delivery(settings.default_delivery),
        Level(settings.lifecycle),
        guard=Lock(),
        signing=_signing(settings),
        most_unknown=settings.unknown_tenants_most,
    )
    changelog, requests = settings.topic("changelog"), settings.topic("schedules")
    partitions = homes(admin, changelog)
    tenant_topics = TenantTopics(
        requests + ".", Homes(partitions), settings.worker_keys(Purpose.ORIGIN)
    )
    gauges = Gauges(metrics)
    outputs = Outputs(settings, tenants, registry, tenant_topics.look, gauges.topics_to_make)
    outlets = _outlets(settings, frames, outputs)
    anchors = Anchors(admin, settings)
    opener = PartitionOpener(
        settings=settings,
        identities=Identities(
            admin, cluster_id, (changelog, requests), anchors, Statements(admin, settings).keep
        ),
        partitions=partitions,
        clock=clock,
        tenants=tenants,
        lookups=startup.lookups(registry, settings, frames),
        outlets=outlets,
        policies=Policies(settings, tenants, outputs, registry, gauges.foreign),
        metrics=gauges,
        failpoints=Failpoints(os.environ.get("BELFRY_FAILPOINT", "")),
        log_ends=LogEnds(settings.kafka_properties()),
        tenant_topics=tenant_topics,
        watch=TransactionWatch(settings, partitions, clock, gauges),
        trust=ChangelogTrust(settings, admin, gauges.foreign),
        stale_ms=topics.tombstones_kept_ms(admin, changelog) // 2,
        leaves=group.leaves,
        agreement=Agreement(settings),
    )
    return Shared(opener, ClockGuard(settings.clock_tolerance_ms), outputs)
