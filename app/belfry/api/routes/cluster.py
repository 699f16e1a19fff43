"""`/v1/cluster`: the workers, their partitions and the causes of waiting events.

The worker that is asked asks the others, as the assignment map names them, each for itself alone:

    GET /v1/cluster at W1 ─┬─ W1's own state
                           ├─ GET /v1/cluster?alone=true at W2   ─► its state
                           └─ the same at W3: no answer in time  ─► silent: ["W3"]

One that does not answer in time is named, and delays nobody further (`workers/everyone.py`). The
calls are signed by this worker in the name of the caller, so W2 hides the same from a caller as W1.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query

from belfry import __version__
from belfry.api.auth.principal import Principal, Role
from belfry.api.json.cluster_answers import (
    ClusterAnswer,
    LatenessAnswer,
    MemberAnswer,
    StandbyAnswer,
    TakeOverAnswer,
    WorkerAnswer,
)
from belfry.api.json.document import problems
from belfry.api.json.queries import OfAllAsked
from belfry.api.json.worker_answers import ReadyAnswer, instant
from belfry.api.routes.callers import Callers
from belfry.api.workers.everyone import Others, ask_others, no_others
from belfry.api.workers.internal_token import Target
from belfry.api.workers.parts import ApiDependencies
from belfry.api.workers.view import WorkerView
from belfry.schedules.triggers.zones import VERSION
from belfry.telemetry.metrics import Metrics

# The question to another worker: for itself alone, or each would ask all others in turn.
ALONE: Final = Target("GET", "/v1/cluster", "alone=true")


ClusterQuery = Annotated[OfAllAsked, Query()]


def cluster_routes(
    view: WorkerView, metrics: Metrics, parts: ApiDependencies, callers: Callers
) -> APIRouter:
    """Routes that show the cluster as the worker behind `view` and its peers know it.

    `metrics` are this worker's. A caller that is bound to some tenants gets no counts, because they
    are those of all tenants together.
    """
    routes = APIRouter(prefix="/v1", tags=["cluster"])

    @routes.get("/cluster", responses=problems(422, 429))
    async def cluster(
        query: ClusterQuery, caller: Principal = callers.who(Role.READ)
    ) -> ClusterAnswer:
        """The owners of partitions, and the state of each worker; the asked one comes first.

        Figures on schedules, such as `pending`, are shown to callers bound to all tenants.
        """
        identity, full = view.identity, caller.reaches_all
        others: Others[ClusterAnswer] = no_others()
        if not query.alone:
            asked = caller, ALONE, ClusterAnswer
            others = await ask_others(view, parts, *asked, at_once=query.at_once)
        return ClusterAnswer(
            app_id=identity.app_id,
            kafka_cluster_id=identity.kafka_cluster_id,
            members=[MemberAnswer.of(entry) for entry in view.assignment_map().entries],
            standbys=[StandbyAnswer.of(each, full=full) for each in view.standbys()],
            workers=[
                _worker(view, metrics, full=full),
                *(worker for each in others.told.values() for worker in each.workers),
            ],
            silent=others.silent,
            remembered=others.remembered,
        )

    return routes


def _worker(view: WorkerView, metrics: Metrics, *, full: bool) -> WorkerAnswer:
    """This worker, as it is at this instant; without counts unless `full`."""
    view.refresh()
    readiness = view.readiness()
    ready = ReadyAnswer.of(readiness) if full else ReadyAnswer.without_counts(readiness)
    identity = view.identity
    return WorkerAnswer(
        ready=ready.ready,
        problems=ready.problems,
        warnings=ready.warnings,
        partitions=ready.partitions,
        worker_id=identity.worker_id,
        version=__version__,
        zone_data=VERSION,
        started_at=instant(identity.started_ms),
        live=view.live(),
        pending=sum(each.pending for each in readiness.partitions) if full else None,
        fired=int(metrics.value("belfry_fired_total")) if full else None,
        lateness=LatenessAnswer(**metrics.steps.recent.look()._asdict()) if full else None,
        clock_skew_seconds=metrics.value("belfry_clock_skew_seconds"),
        firing_paused=bool(metrics.value("belfry_firing_paused")),
        take_overs=[TakeOverAnswer.of(each, full=full) for each in view.take_overs()],
    )
