"""Membership: a Faust application that says which partitions are this worker's.

Faust keeps the group, the assignment and the agents. It does not fetch: belfry's own readers
(`source.py`) read requests and hand batches to the conductor (`batches.py`), so no batch can be
dropped in a rebalance, and an owner may go on until its successor fences it.  The subscribed
partitions are paused for the group's client, which then only sends heartbeats.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, cast

import faust
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.utils.queues import FlowControlEvent

from belfry.balance.owners import ASSIGNERS
from belfry.group.assignment_map_client import follow_assignment_map
from belfry.group.assignor import assignor_of
from belfry.group.batch_agent import AgentTold, WorkerAgents, to_nobody
from belfry.group.batches import BatchConductor, SteadyFlow
from belfry.group.group import Group
from belfry.group.schedules_table import BelfryTables, SchedulesTable, schedules_table
from belfry.kafka.parallel_client import ParallelClient
from belfry.kafka.security import group_client_security
from belfry.placement.partition_count import PartitionCount
from belfry.settings import Settings

NEVER_MS: Final = 2**31 - 1
# The number of brokers that can be asked for the coordinator within a session, one by one.
LOOKS: Final = 4
LEAST_LOOK_S: Final = 1.0


class _MembershipThread(driver.AIOKafkaConsumerThread):
    """The group's client: heartbeats, no fetching."""

    _following: asyncio.Task[None] | None = None

    def _create_worker_consumer(self, _transport: driver.Transport) -> AIOKafkaConsumer:
        app = cast("MembershipApp", self.app)
        settings = app.settings
        reached: dict[str, Any] = {
            # The address is for people and `belfry doctor`; workers send theirs to the group.
            "client_id": f"{settings.cluster.app_id}@{settings.http_advertised_url or ''}",
            "bootstrap_servers": settings.bootstrap_servers.split(","),
            "request_timeout_ms": max(40_000, settings.session_timeout_ms + 5_000),
            **group_client_security(settings.kafka_properties()),
        }
        consumer = AIOKafkaConsumer(
            group_instance_id=settings.group_instance_id,
            group_id=settings.cluster.app_id,
            partition_assignment_strategy=app.assignors,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            # belfry checks its own progress, and this consumer is never polled.
            max_poll_interval_ms=NEVER_MS,
            rebalance_timeout_ms=settings.session_timeout_ms,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            **reached,
        )
        # The consumer's own client would look for a moved coordinator at one broker for as long as
        # it waits for others to join, which is longer than a session.
        look_s = max(LEAST_LOOK_S, settings.session_timeout_ms / 1000 / LOOKS)
        consumer._client = ParallelClient({}, looks_within_s=look_s, **reached)  # noqa: SLF001
        return consumer

    def rejoin(self) -> None:
        """Ask the group to share its partitions anew; from any thread."""
        coordinator = self._ensure_consumer()._coordinator  # noqa: SLF001  # there is no other way
        self.thread_loop.call_soon_threadsafe(coordinator.request_rejoin)

    def look_again(self) -> None:
        """See whether there are more partitions now, and share them; from any thread.

        The client asks for metadata every few minutes anyway, and a change begins a rebalance.
        """
        client = self._ensure_consumer()._client  # noqa: SLF001  # there is no other way
        self.thread_loop.call_soon_threadsafe(client.force_metadata_update)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._ensure_consumer().pause(*driver.ensure_aiokafka_TPset(assigned))
        self._follow_assignment_map()
        await super().on_partitions_assigned(assigned, generation_id)

    def _follow_assignment_map(self) -> None:
        """Ask for the group's members now; a request from before the assignment is cancelled."""
        self._forget_assignment_map()
        group = cast("MembershipApp", self.app).group
        following = follow_assignment_map(self._ensure_consumer(), group)
        self._following = self.thread_loop.create_task(following)

    def _forget_assignment_map(self) -> None:
        if self._following is not None:
            self._following.cancel()

    async def on_thread_stop(self) -> None:
        """Leave the group."""
        self._forget_assignment_map()
        await super().on_thread_stop()


class _MembershipConsumer(driver.Consumer):
    """Faust's view of the group: assignments come, records never do."""

    def rejoin(self) -> None:
        """Ask the group to share its partitions anew; from any thread."""
        cast("_MembershipThread", self._thread).rejoin()

    def look_again(self) -> None:
        """See whether there are more partitions now, and share them; from any thread."""
        cast("_MembershipThread", self._thread).look_again()

    def _new_consumer_thread(self) -> driver.AIOKafkaConsumerThread:
        return _MembershipThread(self, loop=self.loop, beacon=self.beacon)

    async def _drain_messages(self, fetcher: Any) -> None:
        """Does nothing: batches come from readers' threads."""
        await fetcher.wait_until_stopped()

    async def perform_seek(self) -> None:
        """Does nothing: positions are kept with the state, and the group commits none."""

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Does nothing: Faust's watch for stuck streams looks at records, and there are none."""


class _NoProducer(driver.Producer):
    """Faust starts a producer with every application; this one stays unconnected."""

    async def on_start(self) -> None:
        """Connect nothing."""

    async def on_stop(self) -> None:
        """Does nothing: it was never connected."""

    async def flush(self) -> None:
        """Does nothing: it never sends."""


class _MembershipTransport(driver.Transport):
    Consumer = _MembershipConsumer
    Producer = _NoProducer
    Conductor = BatchConductor


class MembershipApp(faust.App):
    """A Faust application with belfry's transport, and its agents."""

    settings: Settings
    group: Group
    assignors: Sequence[type[AbstractPartitionAssignor]]
    shared_topic: str
    carries: WorkerAgents
    schedules: SchedulesTable

    @cached_property
    def flow_control(self) -> FlowControlEvent:
        """Streams that a rebalance neither suspends nor clears."""
        return SteadyFlow()

    def rejoin(self) -> None:
        """Ask the group to share its partitions anew; from any thread."""
        cast("_MembershipConsumer", self.consumer).rejoin()

    def look_again(self) -> None:
        """See whether there are more partitions now, and share them; from any thread."""
        cast("_MembershipConsumer", self.consumer).look_again()

    def _new_transport(self) -> Any:
        return _MembershipTransport(self.conf.broker_consumer, self, loop=self.loop)

    def _new_producer_transport(self) -> Any:
        return _MembershipTransport(self.conf.broker_producer, self, loop=self.loop)


def membership_app(
    settings: Settings, group: Group, counted: PartitionCount, told: AgentTold = to_nobody
) -> MembershipApp:
    """The application of a worker, with its agents; `told` is called for their events."""
    servers = ";".join(f"kafka://{server}" for server in settings.bootstrap_servers.split(","))
    app = MembershipApp(
        settings.cluster.app_id,
        broker=servers,
        autodiscover=False,
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_wait_empty=False,
        store="memory://",
        TableManager=BelfryTables,
        datadir=str(settings.data_dir / "faust"),
        broker_session_timeout=settings.session_timeout_ms / 1000,
        broker_heartbeat_interval=settings.heartbeat_interval_ms / 1000,
    )
    app.settings = settings
    app.group = group
    assigner = ASSIGNERS[settings.assignment]
    # Only one: aiokafka joins once for each assignor, and each join is a rebalance for all members.
    app.assignors = [assignor_of(group, assigner, counted, settings.standbys)]
    app.sensors.add(app.monitor)
    app.shared_topic = settings.topic("schedules")
    app.carries = WorkerAgents(app, settings, told)
    app.schedules = schedules_table(app, settings.topic("changelog"))
    return app
