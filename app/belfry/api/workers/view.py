"""The view of HTTP on a worker: a protocol that the worker implements.

The server lives in a thread of its own, so every method is called from there: it has to be quick,
must not block, and returns values that nobody changes afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from belfry.balance.assignment_map import AssignmentMap
from belfry.balance.take_overs import TakeOverEntry
from belfry.engine.stale import NONE_STALE, StaleSchedules
from belfry.engine.tenant_figures import TenantFigures


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One owned partition at one moment."""

    partition: int
    state: str
    pending: int = 0
    position: int = 0  # Offset of the next request that has no verdict yet.
    # Earliest due instants, by what is waited for.
    oldest_due_ms: Mapping[str, int] = field(default_factory=dict)
    ingest_lag_records: int = 0
    missing: str | None = None  # A sentence; None once the partition fires.
    stale: StaleSchedules = NONE_STALE


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the owned partitions fire, and if not, what is missing."""

    ready: bool
    partitions: list[PartitionView] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    started: bool = True  # False until the group has answered for the first time.
    warnings: list[str] = field(default_factory=list)  # What is wrong though partitions fire.


@dataclass(frozen=True, slots=True)
class StandbyView:
    """One partition that this worker stands by for, at one moment."""

    partition: int
    warm: bool
    lag_records: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SilentHostView:
    """A host of webhooks whose circuit breaker is open at one moment; instants in epoch ms.

    `tried_ms` is the last post or postponed delivery, and before `next_ms` none is sent: 0 where
    that is not known, and the next delivery is tried.  `reason` tells the result of the last post.
    """

    host: str
    since_ms: int
    tried_ms: int
    next_ms: int
    reason: str


class Posting(NamedTuple):
    """Whether a process posts to hosts of webhooks, and which of them do not answer, by name."""

    posts: bool = False
    silent_hosts: Sequence[SilentHostView] = ()


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """The worker that answers."""

    worker_id: str
    app_id: str
    started_ms: int
    kafka_cluster_id: str | None = None


class WorkerView(Protocol):
    """The worker as HTTP sees it."""

    @property
    def identity(self) -> WorkerIdentity:
        """The identity of this worker."""

    def live(self) -> bool:
        """Whether the process can still do its work; False asks to be restarted."""

    def readiness(self) -> Readiness:
        """Whether the owned partitions fire."""

    def assignment_map(self) -> AssignmentMap:
        """Who owns what, as the group told last; empty before it did."""

    def standbys(self) -> list[StandbyView]:
        """The partitions that this worker stands by for."""

    def take_overs(self) -> Sequence[TakeOverEntry]:
        """The last partitions that this worker took over, the latest last."""

    def posting(self) -> Posting:
        """Whether this process posts to hosts of webhooks, and which of them do not answer."""

    def tenants(self) -> Mapping[str, TenantFigures]:
        """The tenants of the owned partitions; "" stands for schedules without a known tenant."""

    def refresh(self) -> None:
        """Bring the gauges up to date, before they are shown."""


class Nobody:
    """A view without a worker: for the description of the application alone."""

    identity = WorkerIdentity("nobody", "belfry", 0)

    def live(self) -> bool:
        """Nothing lives."""
        return False

    def readiness(self) -> Readiness:
        """Nothing fires."""
        return Readiness(ready=False, started=False)

    def assignment_map(self) -> AssignmentMap:
        """Nobody owns anything."""
        return AssignmentMap()

    def standbys(self) -> list[StandbyView]:
        """Nobody stands by."""
        return []

    def posting(self) -> Posting:
        """Nothing is posted."""
        return Posting()

    def take_overs(self) -> Sequence[TakeOverEntry]:
        """Nobody took anything over."""
        return ()

    def tenants(self) -> Mapping[str, TenantFigures]:
        """Nobody has tenants."""
        return {}

    def refresh(self) -> None:
        """There are no gauges."""
