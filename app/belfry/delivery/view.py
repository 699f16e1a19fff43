"""The view of HTTP on a process that only delivers.

It has the methods of a worker's view (`process/view.py`), so the same port shows either. It owns no
partitions, and says so; it tells of its share of the deliveries, and of the hosts that its child
found silent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from belfry.api.workers.view import Posting, Readiness, StandbyView, WorkerIdentity
from belfry.balance.assignment_map import AssignmentMap
from belfry.balance.take_overs import TakeOverEntry
from belfry.delivery.deliverer import Deliverer
from belfry.engine.tenant_figures import TenantFigures
from belfry.telemetry.metrics import Metrics


class DeliveryView:
    """A process that only delivers, as HTTP sees it; it has the methods of a worker's view."""

    def __init__(self, identity: WorkerIdentity, metrics: Metrics) -> None:
        self.identity = identity
        self._metrics = metrics
        self._deliverer: Deliverer | None = None
        self._awaits = ""

    def awaits(self, what: str) -> None:
        """The cause for which the start of this process waits, as a clause; empty if none."""
        self._awaits = what

    def show(self, deliverer: Deliverer) -> None:
        """Show its share of the deliveries."""
        self._deliverer = deliverer

    def live(self) -> bool:
        """A dispatcher starts over by itself; a thread that ended does not."""
        return self._deliverer is None or self._deliverer.alive

    def readiness(self) -> Readiness:
        """Whether the group has given it its share."""
        if self._deliverer is None:
            problem = f"it starts: {self._awaits}" if self._awaits else "it starts"
            return Readiness(ready=False, problems=[problem], started=False)
        ready, silent = self._deliverer.ready, self._deliverer.silent.sentence()
        problems = [] if ready else ["the group that delivers has not answered yet"]
        return Readiness(ready, [], problems, ready, [silent] if silent else [])

    def assignment_map(self) -> AssignmentMap:
        """It owns no schedules."""
        return AssignmentMap()

    def standbys(self) -> list[StandbyView]:
        """It stands by for no partition."""
        return []

    def posting(self) -> Posting:
        """A child process posts; which hosts do not answer, its answers say."""
        silent = () if self._deliverer is None else self._deliverer.silent.views()
        return Posting(posts=True, silent_hosts=silent)

    def take_overs(self) -> Sequence[TakeOverEntry]:
        """It takes no partitions over."""
        return ()

    def tenants(self) -> Mapping[str, TenantFigures]:
        """It owns no schedules."""
        return {}

    def refresh(self) -> None:
        """Bring the gauges up to date; all else is counted as it happens."""
        self._metrics.readiness(ready=self.readiness().ready)
        if self._deliverer is not None:
            self._metrics.silent_hosts(len(self._deliverer.silent))
