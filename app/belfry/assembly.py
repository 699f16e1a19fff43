"""Assembly: the one place that knows everybody.  Parts are made and joined here; no logic.

Each part gets what it needs when it is made, so the order of making is the order of need.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import structlog
from prometheus_client import CollectorRegistry

from belfry import __version__
from belfry.api.auth.keys import BadKeys
from belfry.api.routes.app import create_app, create_health_app
from belfry.api.server.health_server import HttpPorts
from belfry.api.server.own_address import reached_host
from belfry.api.server.server import HttpAddressError
from belfry.api.setup import believed_of, gate_of, limits_of, server_of, shared_breaks_of
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.view import WorkerIdentity
from belfry.audit.writer import AuditLog
from belfry.balance.assignment_map import MemberMetadata
from belfry.delivery.attempts import SenderDependencies
from belfry.delivery.deliverer import Deliverer
from belfry.delivery.figures import figures_of
from belfry.delivery.setup import (
    BadWebhookSettings,
    deliver_until_asked,
    deliverer_of,
    means_of,
)
from belfry.delivery.view import DeliveryView
from belfry.group.group import Group
from belfry.group.heartbeats import Heartbeats
from belfry.group.membership import MembershipApp, membership_app
from belfry.host.clock import SystemClock
from belfry.host.memory import look_for_cycles_rarely, spare_memory
from belfry.host.passing import Streams
from belfry.partitions.gauges import Gauges
from belfry.partitions.supervisor import Owners
from belfry.partitions.surroundings import WorkerPort
from belfry.process.closing import closed, stopped_once
from belfry.process.cluster_start import ClusterState, find
from belfry.process.concerns import Concerns
from belfry.process.data_folder import RefusedToStart, only_one_in
from belfry.process.front import Front, held_partitions
from belfry.process.half_settings import HalfConfigured, refuse_half_settings
from belfry.process.sharing import Shared, share
from belfry.process.view import Running, View
from belfry.process.worker import StopRequest, WorkerProcess, requests_through
from belfry.schedules.outcomes import Outcome
from belfry.settings import DeliverySettings, ServerSettings, Settings
from belfry.telemetry import logs
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.tenant_metrics import MOST_TENANTS
from belfry.telemetry.tracing import NoOpenTelemetry, sending, tracing_of
from belfry.wire.worker_keys import Purpose

_Kind = TypeVar("_Kind", bound=ServerSettings)

# Settings that mean nothing, or half.
NOT_STARTED = (HalfConfigured, BadKeys, BadWebhookSettings, HttpAddressError, NoOpenTelemetry)

log = structlog.get_logger("belfry")


def run_worker(settings: DeliverySettings) -> int:
    """Run a worker, or with settings of deliveries alone a dispatcher; returns the exit code."""
    logs.begin(settings)
    settings = _quiet(settings)
    spare_memory()
    metrics, clock = _metrics(settings), SystemClock()
    identity = _identity(settings, clock)
    view, delivering = View(identity, clock, metrics), DeliveryView(identity, metrics)
    try:
        audit = AuditLog(settings, identity.worker_id, metrics.audited, clock.wall_ms)
        parts, means, host = _configured(settings, clock, identity, audit, metrics)
    except NOT_STARTED as error:
        log.critical("refused to start", reason=str(error))
        return 1
    alone = not isinstance(settings, Settings)
    limits = limits_of(settings, host)
    app = create_app(delivering if alone else view, metrics, (), parts, limits)
    health = create_health_app(delivering if alone else view, metrics, limits.hosts)
    server = HttpPorts(server_of(app, settings, guarded=not parts.gate.is_open), health, settings)
    # Until the event loop is there and takes the signal over, a stop is simply the end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with only_one_in(settings.data_dir), sending(parts.tracing):
            server.start()
            reached = settings.http_advertised_url or server.url_at(host)
            settings = settings.model_copy(update={"http_advertised_url": reached})
            found = find(settings, delivering.awaits if alone else view.awaits)
            audit.start(found.frames.audit, found.registry)
            parts.share(shared_breaks_of(settings, parts.breaks, clock.wall_ms))
            if isinstance(settings, Settings):
                group = _group(settings, identity.worker_id, reached)
                configured = parts, means
                make = partial(_worker, settings, found, clock, metrics, group, configured)
                return asyncio.run(_run(make, view, group))
            frames, figures = found.frames, figures_of(metrics, settings)
            deliverer = deliverer_of(settings, frames, found.registry, means, figures)
            delivering.show(deliverer)
            return asyncio.run(deliver_until_asked(deliverer))
    except (RefusedToStart, HttpAddressError) as error:
        log.critical("refused to start", reason=str(error))
        return 1
    finally:
        server.stop()
        parts.end()
        audit.stop()


def _metrics(settings: DeliverySettings) -> Metrics:
    most = settings.metrics_tenants if isinstance(settings, Settings) else MOST_TENANTS
    metrics = Metrics(CollectorRegistry(), app_id=settings.cluster.app_id, most_tenants=most)
    metrics.steps.expect(str(outcome) for outcome in Outcome)
    return metrics


def _identity(settings: DeliverySettings, clock: SystemClock) -> WorkerIdentity:
    # A static member comes back to its entry in the last assignment map, so it keeps its name.
    own_name = settings.worker_name or settings.group_instance_id
    name = own_name or f"{socket.gethostname()}-{os.getpid()}"
    return WorkerIdentity(name, settings.cluster.app_id, int(clock.wall_ms()))


def _quiet(settings: _Kind) -> _Kind:
    """librdkafka writes to standard error by itself; what matters reaches belfry's own log."""
    return settings.model_copy(update={"kafka": {"log_level": 2, **settings.kafka}})


def _configured(
    settings: DeliverySettings,
    clock: SystemClock,
    identity: WorkerIdentity,
    audit: AuditLog,
    metrics: Metrics,
) -> tuple[ApiDependencies, SenderDependencies, str]:
    """What HTTP and deliveries stand on, and the host that others call this worker by.

    Raises where the settings mean nothing, or half.
    """
    refuse_half_settings(settings)
    keys = settings.worker_keys(Purpose.FORWARD)
    tracing = tracing_of(settings, identity.worker_id, metrics.traced, clock.wall_ms)
    gate = gate_of(settings, clock.wall_ms)
    parts = ApiDependencies(gate, keys, clock.wall_ms, audit.trail, tracing, believed_of(settings))
    return parts, means_of(settings, clock, tracing, parts.breaks), reached_host(settings)


def _group(settings: Settings, name: str, url: str) -> Group:
    member_metadata = MemberMetadata(
        name, __version__, url, settings.worker_weight, settings.worker_rack
    )
    return Group(member_metadata, static=settings.group_instance_id is not None)


class _Worker(NamedTuple):
    """The parts of a worker that is to run."""

    app: MembershipApp
    shared: Shared
    front: Front
    deliverer: Deliverer


def _worker(
    settings: Settings,
    found: ClusterState,
    clock: SystemClock,
    metrics: Metrics,
    group: Group,
    configured: tuple[ApiDependencies, SenderDependencies],
) -> _Worker:
    """Make the parts of a worker; what they read comes through the agents of its application."""
    frames, (parts, means) = found.frames, configured
    app = membership_app(settings, group, found.counted, metrics.agent)
    carries = app.carries
    streams = Streams(carries.policies.pass_through, carries.tenant_inputs.pass_through)
    gauges = Gauges(metrics, means.tracing, clock.wall_ms)
    shared = share(settings, found, clock, gauges, group, streams)
    front = Front(shared.opener, parts, frames[:2], group, carries.history.pass_through)
    figures, through = figures_of(metrics, settings), carries.deliveries.pass_through
    deliverer = deliverer_of(settings, frames, found.registry, means, figures, through)
    return _Worker(app, shared, front, deliverer)


async def _run(make: Callable[[], _Worker], view: View, group: Group) -> int:
    # Faust's services belong to the event loop in which they are made.
    app, shared, front, deliverer = make()
    opener, guard, outputs, *_ = shared
    settings, app_id = opener.settings, opener.settings.cluster.app_id
    stop = StopRequest()
    stop.on_signals()
    port = WorkerPort(
        hand_over=requests_through(app.carries.requests),
        refused=stop.refused,
        committed=front.committed,
        is_asked_often=front.is_asked_often,
        took_over=group.take_overs.note,
    )
    changelog, name = opener.output_topics.changelog, f"{app_id}.heartbeats"
    heartbeats = Heartbeats(group.worker, changelog, settings.kafka_properties(), name)
    owners = Owners(opener, shared.runners(port), group, heartbeats)
    process = WorkerProcess(app, group, opener, guard, owners, stop)
    app.schedules.connect(held_partitions(owners, opener))
    await app.carries.start()
    # It waits until all policies have come through their agent.
    await asyncio.to_thread(opener.policies.start)
    outputs.start()
    opener.start()
    front.start(owners)
    concerns = Concerns(settings, opener, deliverer.silent, process.self_check.disk)
    view.show(Running(owners, guard, group, process, concerns))
    look_for_cycles_rarely()
    if settings.role == "all":
        deliverer.start()
    # Deliveries go on elsewhere at once; all else is needed until the partitions are handed on.
    delivering = asyncio.create_task(stopped_once(stop.asked, deliverer.stop))
    code = 1
    try:
        code = await process.run(heartbeats)
    finally:
        stop.asked.set()
        if opener.lookups is not None:
            opener.lookups.close()
        stops = {"policies": opener.policies.stop, "outputs": outputs.stop}
        stops |= {**front.stops(), **opener.stops()}
        await closed(stops, {"deliveries": delivering}, code)
    return code
