"""The HTTP application: routes, guard, problem documents and the page.

A factory: nothing is at module level, so two workers in one process answer apart.

    TracedCalls ─► Measured ─► Audited ─► Guard ─► Express ─► Heads ─► FastAPI ─► a route
    a span         counts      audit log  bounds   plain      HEAD     parameters, caller
                                                   calls      as GET

Each of these is ASGI middleware, and the first one sees what all behind it do, so that refused
requests are counted and written to the audit log as well. `Express` answers the most usual calls
without FastAPI.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from time import time
from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.staticfiles import StaticFiles

from belfry import __version__
from belfry.api import problem_answers
from belfry.api.auth.access import Gate
from belfry.api.auth.key_uses import figures_of
from belfry.api.json.document import describe
from belfry.api.routes.audited import Audited
from belfry.api.routes.calendars import calendar_routes
from belfry.api.routes.callers import Callers
from belfry.api.routes.checkpoints import checkpoint_routes
from belfry.api.routes.cluster import cluster_routes
from belfry.api.routes.deliveries import delivery_routes
from belfry.api.routes.delivery_hosts import delivery_host_routes
from belfry.api.routes.express import Express
from belfry.api.routes.health import health_routes
from belfry.api.routes.history import history_routes
from belfry.api.routes.jobs import job_routes
from belfry.api.routes.key_groups import key_group_routes
from belfry.api.routes.key_routes import key_routes, me_routes
from belfry.api.routes.payload_key_routes import payload_key_routes
from belfry.api.routes.previews import preview_routes
from belfry.api.routes.readable import readable_routes
from belfry.api.routes.redrives import redrive_routes
from belfry.api.routes.rejections import rejection_routes
from belfry.api.routes.schedules import plain_calls, schedule_routes
from belfry.api.routes.statistics import statistics_routes
from belfry.api.routes.tenant_list import tenant_list_routes
from belfry.api.routes.tenants import tenant_routes
from belfry.api.routes.topic_reads import TopicReads
from belfry.api.routes.usage import usage_routes
from belfry.api.server.guard import Guard
from belfry.api.server.heads import Heads
from belfry.api.server.limits import PortLimits
from belfry.api.server.measured import Measured
from belfry.api.server.traced import TracedCalls
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.reading import Reads
from belfry.api.workers.view import WorkerView
from belfry.console import ASSETS
from belfry.console.routes import console_routes
from belfry.telemetry.metrics import Metrics

# Limits of the port for health: any address is a good Host, and bodies are not expected.
HEALTH: Final = PortLimits(addresses=True, under_way=100, body_bytes=1_000, bulk_bytes=1_000)
DESCRIPTION: Final = (
    "Schedules events with Kafka, without knowing Kafka. Any worker answers for any tenant. Errors"
    " are RFC 9457 problem documents; instants are RFC 3339 with an offset or epoch milliseconds."
)


def create_app(
    view: WorkerView,
    metrics: Metrics,
    more: Iterable[APIRouter] = (),
    parts: ApiDependencies | None = None,
    limits: PortLimits = PortLimits(),  # frozen
) -> FastAPI:
    """The application that shows the worker behind `view`; `more` adds routes to it.

    `parts` are opened later, and until then routes that need them answer 503. Without `parts` the
    application shows health alone, to anybody who reaches the port. It opens no connection.
    """
    parts = parts or ApiDependencies(Gate(), (), _now_ms)
    # One of each for the whole application: rates and gathered reads are shared by all routes.
    callers = Callers(parts, limits.per_second, limits.failures_per_second)
    reads = Reads(parts)
    metrics.api_keys(figures_of(parts.gate.keys, parts.now_ms))
    # FastAPI's own documentation pages load scripts from elsewhere; /openapi.json stays.
    app = FastAPI(
        title="belfry",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        # A schedule's id may end with a slash, so no address is taken for another one.
        redirect_slashes=False,
        lifespan=_closing(parts),
    )
    # The last one added is the first one met.
    app.add_middleware(Heads)
    app.add_middleware(Express, callers=callers, calls=plain_calls(parts, reads, callers))
    app.add_middleware(Guard, limits=limits, traffic=parts.traffic)
    # Before all others, so that it sees what they refuse.
    app.add_middleware(Audited, trail=parts.trail, now_ms=parts.now_ms)
    app.add_middleware(Measured, metrics=metrics)
    if parts.tracing is not None:
        app.add_middleware(TracedCalls, tracing=parts.tracing)
    problem_answers.install(app)
    app.state.routers = (
        *_routers(view, metrics, parts, callers, reads),
        *more,
        console_routes(app, is_open=parts.gate.is_open),
    )
    _add(app, app.state.routers)
    # Behind all routes: any other address below /console is a file of the page.
    app.mount("/console", StaticFiles(directory=ASSETS))
    describe(app, DESCRIPTION)
    return app


def _routers(
    view: WorkerView, metrics: Metrics, parts: ApiDependencies, callers: Callers, reads: Reads
) -> tuple[APIRouter, ...]:
    """All routes of the API; an address that two of them could take goes to the first one."""
    kept = TopicReads(parts)
    return (
        health_routes(view, metrics, callers.sees_all),
        cluster_routes(view, metrics, parts, callers),
        history_routes(parts, reads, callers),
        statistics_routes(parts, callers),
        schedule_routes(parts, reads, callers),
        job_routes(parts, reads, callers),
        calendar_routes(parts, reads, callers),
        tenant_list_routes(view, parts, callers),
        tenant_routes(parts, callers),
        payload_key_routes(view, parts, callers),
        preview_routes(parts, reads, callers),
        rejection_routes(kept, callers),
        redrive_routes(parts, callers),
        delivery_routes(kept, callers),
        delivery_host_routes(view, parts, callers),
        readable_routes(parts, callers),
        usage_routes(parts, callers),
        key_group_routes(view, metrics, parts, callers),
        key_routes(view, parts, parts.gate.keys, callers),
        me_routes(callers),
        checkpoint_routes(parts),
    )


def create_health_app(
    view: WorkerView, metrics: Metrics, hosts: frozenset[str] = frozenset()
) -> FastAPI:
    """Health and metrics alone, for a port of their own that callers of the API cannot fill.

    `hosts` are names that it may be asked under, besides addresses.
    """
    app = FastAPI(title="belfry health", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Heads)
    app.add_middleware(Guard, limits=replace(HEALTH, hosts=hosts))
    problem_answers.install(app)
    app.state.routers = (health_routes(view, metrics),)
    _add(app, app.state.routers)
    return app


def _add(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Add all routes as they were made: these routers have nothing that the application adds.

    `include_router` would make each route a second time when the first request comes by, and ask
    each router whether it has changed at every request.
    """
    for routes in routers:
        app.router.routes += routes.routes


def _now_ms() -> float:
    """The machine's clock, in epoch ms; for an application without a worker."""
    return time() * 1000


def _closing(parts: ApiDependencies) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Close connections to other workers at the end of the application."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await parts.peers.close()

    return lifespan
