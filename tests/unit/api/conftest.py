"""A worker that answers what a test sets."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from prometheus_client import CollectorRegistry

from belfry.api.routes.app import create_app
from belfry.api.workers.view import (
    PartitionView,
    Posting,
    Readiness,
    SilentHostView,
    StandbyView,
    WorkerIdentity,
)
from belfry.balance.assignment_map import AssignedMember, AssignmentMap
from belfry.balance.take_overs import TakenOver, TakeOverCause, TakeOverEntry
from belfry.engine.tenant_figures import TenantFigures
from belfry.telemetry.metrics import Metrics


class Leased:
    """Holdings whose terms never end, and whose reads are always true."""

    settled = True

    def lease(self, _partition: int) -> Leased:
        return self

    def proven(self, _partition: int, _lease: Leased, _read_ms: float) -> bool:
        return True

    def lies_at(self, partition: int, _tenant: str, *, handed_on: bool) -> int | None:
        assert not handed_on
        return partition

    def tenant(self, _tenant: str) -> Any:
        return None

    def waits(self, _partition: int, _tenant: str) -> tuple[None, None]:
        return None, None


class FakeWorker:
    """Implements `WorkerView`."""

    identity = WorkerIdentity("worker-1", "belfry", 1_700_000_000_000, "cluster-a")

    def __init__(self) -> None:
        self.is_live = True
        self.figures: dict[str, TenantFigures] = {}
        self.state = Readiness(
            ready=True,
            partitions=[
                PartitionView(
                    0, "firing", pending=5, position=9, oldest_due_ms={"firing": 1_700_000_001_500}
                )
            ],
        )

    def live(self) -> bool:
        return self.is_live

    def readiness(self) -> Readiness:
        return self.state

    def assignment_map(self) -> AssignmentMap:
        return AssignmentMap(
            (
                AssignedMember("worker-1", owns=(0,)),
                AssignedMember("worker-2", rack="b", stands_by=(0,)),
            )
        )

    def posting(self) -> Posting:
        silent = SilentHostView("hooks.example:8443", 1_000, 2_000, 9_000, "no answer")
        return Posting(posts=True, silent_hosts=[silent])

    def take_overs(self) -> list[TakeOverEntry]:
        taken = TakenOver(0, 1_700_000_000_000, 250, 12, True, True)
        return [TakeOverEntry(taken, "worker-2", TakeOverCause.SILENT)]

    def standbys(self) -> list[StandbyView]:
        return [StandbyView(3, warm=True, lag_records=2)]

    def tenants(self) -> dict[str, TenantFigures]:
        return self.figures

    def refresh(self) -> None:
        self.refreshed = True


@pytest.fixture
def worker() -> FakeWorker:
    return FakeWorker()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.fixture
def app(worker: FakeWorker, metrics: Metrics) -> FastAPI:
    more = APIRouter()

    @more.get("/test/fails")
    async def fails() -> None:
        raise RuntimeError("a bug with a secret in it")

    @more.get("/test/number")
    async def number(value: int) -> int:
        return value

    return create_app(worker, metrics, [more])
