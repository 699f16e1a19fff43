"""`/healthz/*` and `/metrics`: for orchestrators, load balancers and Prometheus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from belfry.api.json.document import Responses, problems_at_the_door
from belfry.api.json.tenant_answers import worst_waits
from belfry.api.json.worker_answers import HealthAnswer, ReadyAnswer
from belfry.api.workers.view import WorkerView
from belfry.telemetry.metrics import Metrics

Sees = Callable[[Request], Awaitable[bool]]


async def everybody(_request: Request) -> bool:
    """On a port of its own each caller sees all."""
    return True


def health_routes(view: WorkerView, metrics: Metrics, sees: Sees = everybody) -> APIRouter:
    """Routes that show the health of the worker behind `view`.

    `sees` says of a request whether it may get data on all tenants.
    """
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz/live", responses=_unwell(HealthAnswer))
    async def live(response: Response) -> HealthAnswer:
        """Whether the process does its work; 503 asks for a restart."""
        ok = view.live()
        _mark(response, ok=ok)
        detail = "The worker runs." if ok else "The worker has stopped; restart the process."
        return HealthAnswer(ok=ok, detail=detail)

    @routes.get("/healthz/startup", responses=_unwell(HealthAnswer))
    async def startup(response: Response) -> HealthAnswer:
        """Whether the group has answered this worker for the first time."""
        ok = view.readiness().started
        _mark(response, ok=ok)
        detail = "The worker has joined its group." if ok else "Waiting for the consumer group."
        return HealthAnswer(ok=ok, detail=detail)

    @routes.get("/healthz/ready", responses=_unwell(ReadyAnswer))
    async def ready(request: Request, response: Response) -> ReadyAnswer:
        """Whether the owned partitions fire; 503 names the cause for each that does not.

        If callers need a key, only one that is bound to all tenants gets more than `ready`; the
        port for health tells everybody.
        """
        readiness = view.readiness()
        _mark(response, ok=readiness.ready)
        if await sees(request):
            waits = worst_waits(view.tenants())
            return ReadyAnswer.of(readiness, waits)
        return ReadyAnswer(ready=readiness.ready, problems=[], partitions=[])

    @routes.get("/metrics", response_class=Response, responses=problems_at_the_door())
    async def metrics_page(request: Request) -> Response:
        """All metrics in the text format of Prometheus.

        Single tenants are shown only to callers that get more than `ready` as well.
        """
        view.refresh()
        page = metrics.exposition(tenants=await sees(request))
        return Response(page, media_type=CONTENT_TYPE_LATEST)

    return routes


def _unwell(kind: type[BaseModel]) -> Responses:
    """The answers besides 200; a 503 is of this kind, or a problem where too many ask."""
    found = problems_at_the_door()
    found[503]["model"] = kind
    return found


def _mark(response: Response, *, ok: bool) -> None:
    response.status_code = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
