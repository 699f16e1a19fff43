"""Assembly: the one place that knows everybody.  Parts are made and joined here; no logic."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import structlog
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from belfry import __version__
from belfry.api.access import Gate, Verifier
from belfry.api.app import create_app, create_health_app
from belfry.api.health_server import Ports
from belfry.api.keys import ApiKeys, BadKeys
from belfry.api.limits import Limits
from belfry.api.oidc import Provider, Tokens
from belfry.api.parts import Parts
from belfry.api.room import Room
from belfry.api.server import HttpAddressError, HttpServer, Manner
from belfry.api.view import WorkerIdentity
from belfry.balance.roster import Standing
from belfry.client.kafka import CHECK_SECURITY, Faults
from belfry.delivery.dispatcher import Dispatcher
from belfry.delivery.posting import Means
from belfry.delivery.setup import (
    BadWebhookSettings,
    DeliveryView,
    deliver_until_asked,
    dispatcher_of,
    means_of,
)
from belfry.firing.clock_guard import ClockGuard
from belfry.registry import startup
from belfry.registry.client import Registry
from belfry.registry.subjects import open_registry
from belfry.schedules.identity import Homes
from belfry.schedules.outcomes import Outcome
from belfry.schedules.tenant import Delivery, Level, Signing
from belfry.schedules.tenants import Tenants
from belfry.settings import Settings
from belfry.telemetry import logs
from belfry.telemetry.metrics import Metrics
from belfry.wire.worker_keys import Purpose
from belfry.worker import topics
from belfry.worker.anchors import Anchors
from belfry.worker.changelog_trust import ChangelogTrust
from belfry.worker.clock import SystemClock
from belfry.worker.cluster_checks import check_at_start
from belfry.worker.failpoints import Failpoints
from belfry.worker.front import Front
from belfry.worker.gauges import Gauges
from belfry.worker.group import Group
from belfry.worker.half_settings import HalfConfigured, refuse_half_settings
from belfry.worker.identities import Identities
from belfry.worker.memory import look_for_cycles_rarely
from belfry.worker.outputs import Outputs
from belfry.worker.ownership_kit import Kit
from belfry.worker.partition_log import LogEnds
from belfry.worker.policies import Policies
from belfry.worker.private_files import close_to_others, make_private
from belfry.worker.process import WorkerProcess
from belfry.worker.tenant_topics import TenantTopics
from belfry.worker.transaction_watch import TransactionWatch
from belfry.worker.transactions import Outlets
from belfry.worker.view import View

M_ARENA_MAX = -8  # of malloc.h

log = structlog.get_logger("belfry")


class RefusedToStart(Exception):
    """The worker must not run as it is configured; the message says what to do."""


def run_worker(settings: Settings) -> int:
    """Run one worker until it is asked to stop; returns the exit code."""
    # Until the event loop is there and takes the signal over, a stop is simply the end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    logs.configure(settings)
    settings = _quiet(settings)
    _spare_memory()
    metrics = Metrics(CollectorRegistry())
    metrics.expect(str(outcome) for outcome in Outcome)
    clock = SystemClock()
    # A static member comes back to the seat that the last roster gave it, so it keeps its name.
    own_name = settings.worker_name or settings.group_instance_id
    name = own_name or f"{socket.gethostname()}-{os.getpid()}"
    identity = WorkerIdentity(name, settings.cluster.app_id, int(clock.wall_ms()))
    view = View(identity, clock, metrics)
    delivering = DeliveryView(identity)
    try:
        parts, means = _configured(settings, clock)
    except (HalfConfigured, BadKeys, BadWebhookSettings) as error:
        log.critical("refused to start", reason=str(error))
        return 1
    alone = settings.role == "deliver"
    limits = _limits(settings)
    app = create_app(delivering if alone else view, metrics, (), parts, limits)
    health = create_health_app(delivering if alone else view, metrics, limits.hosts)
    server = Ports(_server(app, settings, guarded=not parts.gate.is_open), health, settings)
    try:
        with only_one_in(settings.data_dir):
            server.start()
            reached = settings.http_advertised_url or server.url
            settings = settings.model_copy(update={"http_advertised_url": reached})
            found = _find(settings)
            registry, frames = found.registry, found.frames
            dispatcher = delivering.dispatcher = dispatcher_of(settings, frames, registry, means)
            dispatcher.told = metrics.delivered
            if alone:
                return asyncio.run(deliver_until_asked(dispatcher))
            kit = _kit(settings, found, clock, metrics)
            group = _group(settings, name, reached)
            front = Front(kit, parts, (frames.request, frames.lifecycle), group)
            return asyncio.run(_run(kit, view, front, group, dispatcher))
    except (RefusedToStart, HttpAddressError) as error:
        log.critical("refused to start", reason=str(error))
        return 1
    finally:
        server.stop()


def _spare_memory() -> None:
    """Two arenas instead of eight a core: each of the many threads would keep one half empty."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_ARENA_MAX, 2)


def _quiet(settings: Settings) -> Settings:
    """librdkafka writes to standard error by itself; what matters reaches belfry's own log."""
    return settings.model_copy(update={"kafka": {"log_level": 2, **settings.kafka}})


def _configured(settings: Settings, clock: SystemClock) -> tuple[Parts, Means]:
    """What HTTP and deliveries stand on; raises where the settings mean nothing, or half."""
    refuse_half_settings(settings)
    parts = Parts(_gate(settings, clock), settings.worker_keys(Purpose.FORWARD), clock.wall_ms)
    return parts, means_of(settings, clock)


def _gate(settings: Settings, clock: SystemClock) -> Gate:
    """Who verifies callers; nobody where nothing is configured."""
    verifiers: list[Verifier] = []
    if settings.http_api_keys or settings.http_api_keys_file:
        given = settings.http_api_keys
        listed = None if given is None else given.get_secret_value()
        keys = ApiKeys(listed, settings.http_api_keys_file, clock.wall_ms)
        verifiers.append(keys)
    if settings.oidc_issuer:
        provider = Provider(
            settings.oidc_issuer,
            settings.oidc_audience,
            settings.oidc_jwks_url,
            settings.oidc_tenants_claim,
            settings.oidc_roles_claim,
        )
        verifiers.append(Tokens(provider))
    return Gate(verifiers)


def _limits(settings: Settings) -> Limits:
    reached = urlsplit(settings.http_advertised_url or "").hostname or settings.http_host
    return Limits(
        hosts=frozenset(name.lower() for name in (reached, *settings.http_allowed_hosts)),
        origins=frozenset(settings.http_allowed_origins),
        body_bytes=settings.http_body_bytes,
        bulk_bytes=settings.http_bulk_bytes,
        bodies_bytes=settings.http_bodies_bytes,
        under_way=settings.http_under_way,
        per_second=settings.http_requests_per_second,
        failures_per_second=settings.http_failures_per_second,
    )


def _server(app: FastAPI, settings: Settings, *, guarded: bool) -> HttpServer:
    certificate, key = settings.http_tls_certificate, settings.http_tls_key
    tls = (certificate, key) if certificate and key else None
    proxies = settings.http_proxies
    room = Room(settings.http_connections, settings.http_connections_per_address, proxies)
    return HttpServer(
        app,
        settings.http_host,
        settings.http_port,
        tls=tls,
        guarded=guarded,
        manner=Manner(proxies, room),
    )


def _group(settings: Settings, name: str, url: str) -> Group:
    standing = Standing(name, __version__, url, settings.worker_weight, settings.worker_rack)
    return Group(standing, static=settings.group_instance_id is not None)


async def _run(kit: Kit, view: View, front: Front, group: Group, dispatcher: Dispatcher) -> int:
    process = WorkerProcess(kit, group)
    kit.policies.start()
    kit.outputs.start()
    kit.watch.start()
    front.start(process.owners)
    view.guard, view.owners, view.group = kit.guard, process.owners, group
    view.process = process
    view.starting = "the group has not answered yet"
    look_for_cycles_rarely()
    if kit.settings.role == "all":
        dispatcher.start()
    # Deliveries go on elsewhere at once; all else is needed until the partitions are handed on.
    delivering = asyncio.create_task(_stop_once(process.asked, dispatcher))
    try:
        return await process.run()
    finally:
        process.asked.set()
        if kit.lookups is not None:
            kit.lookups.close()
        # Each waits for a read that is under way; together they take no longer than one of them.
        parts = (front, kit.policies, kit.outputs, kit.watch)
        await asyncio.gather(delivering, *(asyncio.to_thread(part.stop) for part in parts))


async def _stop_once(asked: asyncio.Event, dispatcher: Dispatcher) -> None:
    await asked.wait()
    await asyncio.to_thread(dispatcher.stop)


class Found(NamedTuple):
    """What a worker finds in the cluster before it begins."""

    admin: AdminClient
    cluster_id: str
    registry: Registry | None
    frames: startup.Frames


def _find(settings: Settings) -> Found:
    faults = Faults()
    reporting: dict[str, Any] = {**settings.kafka_properties(), "error_cb": faults}
    admin = AdminClient(reporting)
    cluster_id = _await_cluster(admin, faults)
    _topics(admin, settings)
    registry = open_registry(settings)
    frames = startup.WITHOUT
    if registry is not None:
        frames = startup.frames(registry, settings, _say_registry)
    return Found(admin, cluster_id, registry, frames)


def _kit(settings: Settings, found: Found, clock: SystemClock, metrics: Metrics) -> Kit:
    admin, cluster_id, registry, frames = found
    tenants = Tenants(
        settings.topic("fired."),
        Delivery(settings.default_delivery),
        Level(settings.lifecycle),
        guard=Lock(),
    )
    tenants.signing = Signing(
        settings.claims == "signed",
        settings.worker_keys(Purpose.REQUESTS),
        settings.worker_keys(Purpose.DELIVERIES),
    )
    tenants.most_unknown = settings.unknown_tenants_most
    outputs = Outputs(settings, tenants, registry)
    outlets = Outlets(
        changelog=settings.topic("changelog"),
        schedules=settings.topic("schedules"),
        rejected=settings.topic("rejected"),
        lifecycle=settings.topic("lifecycle"),
        lifecycle_head=frames.lifecycle,
        deliveries=settings.topic("deliveries"),
        deliveries_head=frames.deliveries,
        partitions_of=outputs.partitions_of,
    )
    partitions = _homes(admin, outlets)
    anchors = Anchors(admin, settings)
    tenant_topics = TenantTopics(
        outlets.schedules + ".", Homes(partitions), settings.worker_keys(Purpose.ORIGIN)
    )
    gauges = Gauges(metrics)
    outputs.watcher = tenant_topics.look
    outputs.queued = gauges.topics_to_make
    return Kit(
        settings=settings,
        identities=Identities(admin, cluster_id, (outlets.changelog, outlets.schedules), anchors),
        partitions=partitions,
        clock=clock,
        guard=ClockGuard(settings.clock_tolerance_ms),
        tenants=tenants,
        lookups=startup.lookups(registry, settings, frames),
        outlets=outlets,
        outputs=outputs,
        policies=Policies(settings, tenants, outputs, registry, gauges.foreign),
        metrics=gauges,
        failpoints=Failpoints(os.environ.get("BELFRY_FAILPOINT", "")),
        log_ends=LogEnds(settings.kafka_properties()),
        tenant_topics=tenant_topics,
        watch=TransactionWatch(settings, partitions, clock, gauges),
        trust=ChangelogTrust(settings, admin, gauges.foreign),
        stale_ms=topics.tombstones_kept_ms(admin, outlets.changelog) // 2,
    )


def _say_registry(problem: str) -> None:
    log.warning("registry", problem=problem)


def _await_cluster(admin: AdminClient, faults: Faults) -> str:
    """Cluster id, once a broker answers; who is locked out may be let in by then."""
    while True:
        try:
            return str(admin.list_topics(timeout=5).cluster_id)
        except KafkaException as error:
            admin.poll(0)
            reason = faults.last or error.args[0].str()
            if faults.locked_out:
                log.error("no secure connection to Kafka", reason=reason, cure=CHECK_SECURITY)  # noqa: TRY400
            else:
                log.warning("no broker answers yet", reason=reason)
            time.sleep(1)


def _topics(admin: AdminClient, settings: Settings) -> None:
    if settings.create_topics:
        created = topics.create(admin, settings)
        if created:
            log.info("topics created", topics=created)
    absent = [spec.name for spec in topics.missing(admin, settings)]
    if absent:
        raise RefusedToStart(
            f"topics are missing: {', '.join(absent)}. Run `belfry topics create`, or let the"
            " worker create them (BELFRY_CREATE_TOPICS=true)."
        )
    refusal = check_at_start(admin, settings)
    if refusal:
        raise RefusedToStart(refusal)


def _homes(admin: AdminClient, outlets: Outlets) -> int:
    """Number of homes: the partitions of the changelog."""
    described = admin.describe_topics(TopicCollection([outlets.changelog]))
    return len(described[outlets.changelog].result(10).partitions)


@contextmanager
def only_one_in(folder: Path) -> Iterator[None]:
    """Hold a data directory for this process alone; nobody else may read it either."""
    make_private()
    for problem in close_to_others(folder):
        log.warning("state can be read by others", problem=problem)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            raise RefusedToStart(
                f"data directory {folder} is in use by process {lock.read().strip() or '?'}: give"
                " each worker its own (BELFRY_DATA_DIR)."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
