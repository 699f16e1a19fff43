"""The objects that all partitions of a worker share, made from its settings and the cluster.

A partition has its own store, source, producer and loop. Objects that would be the same in each are
made here once: tenants, output topics, the registry's lookups, the clock guard, and the reader of
the ends of logs. The threads of all partitions use these objects at the same time, and the module
of each says how that is safe.

    settings, cluster ─► share() ─► Shared ─┬─ opener    one for all owners and standbys
                                            ├─ guard     one clock, so one judgement of it
                                            └─ outputs   the output topics that exist
    group assigns 3   ─► runners(port) makes the runner of partition 3, with all of these in it

This module starts nothing. `partitions/supervisor.py` makes runners and starts them, as the group
assigns partitions.
"""

from __future__ import annotations

import os
from functools import partial
from typing import NamedTuple

from belfry.firing.clock_guard import ClockGuard
from belfry.group.group import Group
from belfry.host import machine
from belfry.host.clock import SystemClock
from belfry.host.failpoints import Failpoints
from belfry.host.loop_threads import LoopThreads
from belfry.host.passing import Streams
from belfry.kafka import topics
from belfry.kafka.agreement import Agreement, Statements, statement_notes
from belfry.kafka.anchors import anchors_of
from belfry.kafka.changelog_trust import ChangelogTrust
from belfry.kafka.client_properties import consumer_properties
from belfry.kafka.log_ends import LogEnds
from belfry.kafka.signature_marks import marks_of
from belfry.kafka.step_records import OutputTopics
from belfry.outputs.day_store import day_store
from belfry.outputs.payload_store import payload_store
from belfry.outputs.readiness import Outputs
from belfry.partitions.gauges import Gauges
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.owner import PartitionRunner
from belfry.partitions.request_readers import RequestReaders
from belfry.partitions.step_shares import StepRoom
from belfry.partitions.supervisor import MakeRunner
from belfry.partitions.surroundings import RunnerDependencies, WorkerPort
from belfry.partitions.tenant_topics import TenantTopics
from belfry.partitions.term import Warm
from belfry.partitions.transaction_watch import TransactionWatch
from belfry.partitions.watched_places import WatchedPlaces
from belfry.policies.follower import Policies
from belfry.process.checkpoints import checkpoints_of
from belfry.process.cluster_start import ClusterState, asker
from belfry.recovery.checkpoint_making import CheckpointMaker
from belfry.recovery.checkpoint_restoring import CheckpointRestorer
from belfry.recovery.identities import Identities
from belfry.registry import startup
from belfry.schedules.identity import Homes
from belfry.settings import Settings
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Delivery, Level, Signing
from belfry.transactions.choosing import producers
from belfry.wire.worker_keys import Purpose


def _signing(settings: Settings) -> Signing:
    """The keys for signatures of requests: claims of tenants, and workers' own requests."""
    return Signing(
        settings.claims == "signed",
        settings.worker_keys(Purpose.REQUESTS),
        settings.worker_keys(Purpose.DELIVERIES),
        settings.worker_keys(Purpose.CANARY),
    )


def _output_topics(settings: Settings, frames: startup.Frames, outputs: Outputs) -> OutputTopics:
    """The topics of a step's records, and the first bytes of the records."""
    return OutputTopics(
        changelog=settings.topic("changelog"),
        schedules=settings.topic("schedules"),
        rejected=settings.topic("rejected"),
        lifecycle=settings.topic("lifecycle"),
        lifecycle_head=frames.lifecycle,
        deliveries=settings.topic("deliveries"),
        deliveries_head=frames.deliveries,
        partitions_of=outputs.partitions_of,
        metering=settings.topic("metering"),
    )


def _readers(settings: Settings, gauges: Gauges) -> RequestReaders:
    """The readers of requests, for all partitions."""
    told = gauges.client("requests", settings.client_statistics_interval_ms)
    return RequestReaders(consumer_properties(settings) | told)


class Shared(NamedTuple):
    """The objects that all partitions of a worker share; they live as long as the process."""

    # Opens the parts of a partition, for owners and standbys.
    opener: PartitionOpener
    # One machine has one clock, so its partitions share the judgement of it.
    guard: ClockGuard
    outputs: Outputs
    # Where partitions' loops have their turns.
    threads: LoopThreads
    # The bound on the records that steps of all partitions hold together.
    room: StepRoom

    def runners(self, port: WorkerPort) -> MakeRunner:
        """The function that makes the runners of this worker's partitions.

        Runners report outcomes and refusals to `port`. A partition that was a warm standby brings
        its store along, and its runner only reads the records since then; else `warm` is None. To
        make a runner starts nothing.
        """
        given = RunnerDependencies(*self, port)

        def make(partition: int, warm: Warm | None) -> PartitionRunner:
            return PartitionRunner(partition, given, warm)

        return make


def _directory(settings: Settings) -> Tenants:
    """One directory for all threads, so it has a lock; unknown tenants are added as met."""
    return Tenants(
        settings.topic("fired."),
        Delivery(settings.default_delivery),
        Level(settings.lifecycle),
        guard=machine.Lock(),
        signing=_signing(settings),
        most_unknown=settings.unknown_tenants_most,
    )


def share(
    settings: Settings,
    found: ClusterState,
    clock: SystemClock,
    gauges: Gauges,
    group: Group,
    through: Streams = Streams(),  # noqa: B008  # a frozen value
) -> Shared:
    """Make the shared objects; nothing is started. Batches of records come `through` agents.

    Kafka is asked how long tombstones are kept. Raises KafkaException.
    """
    admin, cluster_id, registry, frames, counted = found
    tenants = _directory(settings)
    changelog, requests = settings.topic("changelog"), settings.topic("schedules")
    tenant_topics = TenantTopics(
        requests + ".", Homes(counted.homes), settings.worker_keys(Purpose.ORIGIN)
    )
    told = tenant_topics.look, gauges.topics_to_make
    outputs = Outputs(settings, tenants, registry, *told, admin)
    # Offsets in a group of their own, by which a take-over recognises a changelog that was made
    # anew.
    anchors = anchors_of(settings, counted.homes)
    statements = Statements(statement_notes(settings), settings)
    trust = ChangelogTrust(settings, marks_of(settings), gauges.foreign)
    # Tests kill a worker at a named place by this variable; without it nothing is done.
    failpoints = Failpoints(os.environ.get("BELFRY_FAILPOINT", ""))
    given = checkpoints_of(settings, clock, gauges.checkpoints, trust, failpoints, group)
    names, log_ends = (changelog, requests), LogEnds(settings.kafka_properties())
    connect, guard = partial(asker, settings), ClockGuard(settings.clock_tolerance_ms)
    watched = WatchedPlaces(settings, counted, tenant_topics.of, log_ends, outputs.there)
    opener = PartitionOpener(
        settings=settings,
        identities=Identities(admin, cluster_id, names, anchors, statements.keep, connect),
        partitions=counted.homes,
        counted=counted,
        clock=clock,
        tenants=tenants,
        lookups=startup.lookups(registry, settings, frames, gauges.looked_up),
        output_topics=_output_topics(settings, frames, outputs),
        policies=Policies(settings, tenants, outputs, registry, gauges.foreign, through.policies),
        metrics=gauges,
        failpoints=failpoints,
        log_ends=log_ends,
        tenant_topics=tenant_topics,
        watch=TransactionWatch(settings, watched, clock, gauges, log_ends),
        trust=trust,
        # Local state that has been unused for longer may have missed the end of a schedule.
        stale_ms=topics.tombstones_kept_ms(admin, changelog) // 2,
        leaves=group.leaves,
        producers=producers(settings),
        readers=_readers(settings, gauges),
        agreement=Agreement(settings),
        payloads=payload_store(settings, tenants, gauges.payloads),
        day_store=day_store(settings),
        tenant_inputs_through=through.tenant_inputs,
        checkpoints=None if given is None else CheckpointMaker(given),
        restorer=None if given is None else CheckpointRestorer(given),
    )
    return Shared(opener, guard, outputs, LoopThreads(), StepRoom())
