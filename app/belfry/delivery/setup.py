"""A dispatcher from settings, and a process that runs nothing else.

A worker delivers beside its partitions, and posts in a thread of its own. `belfry worker --role
deliver` runs `deliver_until_asked` alone, and there a child process posts. `deliverer_of` chooses
between the two; the dispatcher itself is the same.

Bad settings are told at start (`BadWebhookSettings`), and not at the first post.
"""

from __future__ import annotations

import asyncio
import resource
import signal
from functools import partial
from typing import Final

import structlog

from belfry.api.workers.host_breaks import HostBreaks
from belfry.client.decoding import Decoder
from belfry.delivery.addresses import networks
from belfry.delivery.attempts import SenderDependencies
from belfry.delivery.confined import BadUser, close_to_own_user, identity
from belfry.delivery.deliverer import Deliverer
from belfry.delivery.dispatcher import Dispatcher
from belfry.delivery.figures import DeliveryFigures
from belfry.delivery.follow_ups import Places
from belfry.delivery.http_requests import Secrets
from belfry.delivery.http_sender import HttpSender
from belfry.delivery.kinds import Senders
from belfry.delivery.references import References
from belfry.delivery.refused_retries import RetryReader
from belfry.delivery.separate_sender import SeparateSender
from belfry.delivery.settling import Settling
from belfry.delivery.traced import MakeSender, traced
from belfry.delivery.transport import HttpTransport
from belfry.host.clock import SystemClock
from belfry.host.memory import look_for_cycles_rarely
from belfry.host.passing import PassThrough, at_once
from belfry.policies.secrets import SecretPlaces
from belfry.registry.client import Registry
from belfry.registry.startup import Frames
from belfry.registry.subjects import look_in
from belfry.settings import DeliverySettings, plain
from belfry.telemetry.tracing import Tracing
from belfry.wire.worker_keys import Purpose, first

# Open files that are no connections of deliveries; the rest is for posts.
OTHER_FILES: Final = 512

log = structlog.get_logger("belfry")


class BadWebhookSettings(ValueError):
    """Bad settings of deliveries; the message says which."""


def means_of(
    settings: DeliverySettings,
    clock: SystemClock,
    tracing: Tracing | None = None,
    breaks: HostBreaks | None = None,
) -> SenderDependencies:
    """The parts for sending; `BadWebhookSettings` names a bad setting.

    `tracing` is None without tracing, `breaks` without breaks of hosts.
    """
    try:
        allowed = networks(settings.webhook_private_networks)
    except ValueError as error:
        raise BadWebhookSettings(f"BELFRY_WEBHOOK_PRIVATE_NETWORKS: {error}") from None
    try:
        secrets = Secrets(plain(settings.webhook_secrets))
    except ValueError as error:
        raise BadWebhookSettings(f"BELFRY_WEBHOOK_SECRETS: {error}") from None
    _check_user(settings)
    per_host = settings.webhook_per_host
    transport = partial(HttpTransport, clock, allowed)
    references = references_of(settings)
    more = references, tracing, breaks or HostBreaks()
    return SenderDependencies(transport, secrets, clock, per_host, *more)


def references_of(settings: DeliverySettings) -> References:
    """Secrets of targets' headers, from the places of this process."""
    signed = bool(settings.worker_keys(Purpose.DELIVERIES))
    return References(SecretPlaces(settings.secrets_dir), trusted=signed)


def _check_user(settings: DeliverySettings) -> None:
    """`BadWebhookSettings` where the sender could not run as the user that is named."""
    if settings.webhook_user is None:
        return
    if settings.role != "deliver":
        raise BadWebhookSettings(
            f"BELFRY_WEBHOOK_USER is {settings.webhook_user!r}, and --role is {settings.role}:"
            " another user posts for a worker that only delivers. Start it with --role deliver,"
            " or leave the user out."
        )
    try:
        identity(settings.webhook_user)
    except BadUser as error:
        raise BadWebhookSettings(f"BELFRY_WEBHOOK_USER: {error}") from None


def deliverer_of(
    settings: DeliverySettings,
    frames: Frames,
    registry: Registry | None,
    means: SenderDependencies,
    figures: DeliveryFigures,
    through: PassThrough = at_once,
) -> Deliverer:
    """The deliverer, not started; it takes no more work than it can have files open.

    If the process only delivers, a child process does the posting.
    """
    places = Places(
        schedules=settings.topic("schedules"),
        lifecycle=settings.topic("lifecycle"),
        undelivered=settings.topic("undelivered"),
        request_head=frames.request,
        lifecycle_head=frames.lifecycle,
        request_key=first(settings.worker_keys(Purpose.REQUESTS)),
        retry_key=first(settings.worker_keys(Purpose.DELIVERIES)),
        metering=settings.topic("metering"),
        metering_ms=settings.metering_interval_ms,
    )
    in_flight = min(settings.webhook_in_flight, max(16, _files() - OTHER_FILES))
    if in_flight < settings.webhook_in_flight:
        log.warning("fewer deliveries at once: too few open files", webhook_in_flight=in_flight)
    settings = settings.model_copy(update={"webhook_in_flight": in_flight})
    look = look_in(registry)
    decoder = Decoder("FiredEvent", look, only=True)
    apart = settings.role == "deliver"
    http: MakeSender = (
        partial(SeparateSender, settings, references_of(settings), means.breaks)
        if apart
        else partial(HttpSender, means)
    )
    sender: MakeSender = partial(Senders, settings, http, clients=figures.clients)
    if means.tracing is not None:
        sender = traced(sender, means.tracing)
    dispatcher = Dispatcher(settings, places, sender, decoder, figures, through)
    # A decoder is for one thread.
    requests, events = (
        Decoder(name, look, only=True) for name in ("ScheduleRequest", "FiredEvent")
    )
    reader = RetryReader(requests, events, settings.worker_keys(Purpose.DELIVERIES))
    return Deliverer(dispatcher, Settling(settings, places, reader, figures, through))


def _files() -> int:
    """How many files this process may have open; as many as it is allowed to ask for.

    The soft limit is raised to the hard one, which every process may do.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


async def deliver_until_asked(deliverer: Deliverer) -> int:
    """Deliver and do nothing else; the exit code.

    It returns after SIGTERM or SIGINT, once the results of work under way are written, or the work
    was given up after the dispatcher's grace time.
    """
    # Before there is a child that talks to strangers.
    close_to_own_user()
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    deliverer.start()
    look_for_cycles_rarely()
    await asked.wait()
    log.info("stopping")
    await asyncio.to_thread(deliverer.stop)
    return 0
