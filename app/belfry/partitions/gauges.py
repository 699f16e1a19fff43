"""Counts and gauges of the partitions' loops, kept by one transaction at a time.

A step counts when it has been committed, and never before: a step that is rolled back shows in no
figure. So a counter of fires is the number of events that readers have seen, as far as this process
committed them. Counters begin at 0 with the process; `belfry verify` and the manifests know earlier
events.

One object serves all partitions of a worker. A lock keeps the counts of one step together, because
a scrape may come at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog

from belfry.engine.effects import Effects
from belfry.history.fire_hours import FireHours
from belfry.host import machine
from belfry.schedules.outcomes import Outcome
from belfry.telemetry.checkpoint_metrics import CheckpointMetrics
from belfry.telemetry.client_figures import ClientFigures
from belfry.telemetry.day_file_metrics import DayFileMetrics
from belfry.telemetry.limited import LimitedLogger
from belfry.telemetry.metrics import Metrics
from belfry.telemetry.move_metrics import EndedMove
from belfry.telemetry.tracing import Tracing

log = structlog.get_logger(__name__)

# Outcomes of fires and deliveries, which are not verdicts of requests.
NOT_OF_REQUESTS: Final = frozenset(
    {Outcome.FIRED, Outcome.MISSED, Outcome.COMPLETED, Outcome.DELIVERED, Outcome.FAILED}
)


class Gauges:
    """The metrics as the partitions' threads write them; safe from any of them."""

    def __init__(
        self,
        metrics: Metrics,
        tracing: Tracing | None = None,
        wall_ms: Callable[[], float] | None = None,
    ) -> None:
        """`wall_ms` is the clock by which the history forgets fires; None: they are not counted."""
        self._metrics = metrics
        # The fires of each hour, until the history takes them.
        self.fire_hours = None if wall_ms is None else FireHours(wall_ms)
        # None where nothing is traced.
        self._tracing = tracing
        self._lock = machine.Lock()
        self._clients: dict[str, ClientFigures] = {}
        # A missing zone may hold back thousands of schedules: the log names the first few, then
        # sums.
        self._faults = LimitedLogger(log)

    @property
    def traces(self) -> bool:
        """Whether engines are to report sampled requests and fires."""
        return self._tracing is not None

    def committed(self, effects: Effects, seconds: float, since_begin_ms: int = 0) -> None:
        """Count a committed step, and trace its sampled requests and fires.

        Its transaction took so many seconds; the step began `since_begin_ms` before its end.
        """
        if self._tracing is not None and effects.traced:
            self._tracing.committed(effects.traced)
        requests = {
            str(outcome): count
            for outcome, count in effects.outcomes.items()
            if outcome not in NOT_OF_REQUESTS
        }
        with self._lock:
            self._metrics.steps.transaction(seconds)
            if requests:
                self._metrics.steps.requests(requests)
            if effects.rejections:
                self._metrics.steps.rejected(effects.rejections)
            if effects.bulk:
                self._metrics.steps.bulk({(on, str(to)): n for (on, to), n in effects.bulk.items()})
            if effects.metered:
                self._metrics.steps.metered(len(effects.metered))
            self._count_fires(effects, since_begin_ms)
        for end in effects.move_ends:
            ended = EndedMove(end.group, end.move, end.source, end.target, end.why or None)
            self._metrics.moves.ends(ended)
            about = {"group": end.group, "source": end.source, "target": end.target}
            if end.why:
                log.warning("a key group stays where it lies", **about, cause=end.why)
            else:
                log.info("a key group has moved", **about)

    def _count_fires(self, effects: Effects, since_begin_ms: int) -> None:
        """Count the events that fired, were given up or are held back; with the lock."""
        missed, completed = (
            effects.outcomes[Outcome.MISSED],
            effects.outcomes[Outcome.COMPLETED],
        )
        if missed or completed:
            self._metrics.steps.given_up(missed, completed)
        if effects.outcomes[Outcome.FAILED]:
            self._metrics.steps.unacknowledged(effects.outcomes[Outcome.FAILED])
        if effects.rederived:
            self._metrics.steps.rederived(effects.rederived)
        if effects.unreadable:
            self._metrics.steps.unreadable(len(effects.unreadable))
            self._tell_unreadable(effects.unreadable)
        for where in effects.failed_checks:
            told = "a request was refused, or a schedule passed over, because of a fault of belfry"
            self._faults.error("check failed", told, where=where)
        if effects.drained:
            self._metrics.steps.drained([each.late_ms for each in effects.drained])
        if effects.lateness_ms:
            self._metrics.steps.fired(effects.lateness_ms, since_begin_ms)
            if self.fire_hours is not None:
                self.fire_hours.add(effects.lateness, effects.now_ms)

    def _tell_unreadable(self, schedules: list[tuple[bytes, str]]) -> None:
        """Name schedules that this worker cannot fire in the log; the first few, then sums."""
        for name, why in schedules:
            self._faults.error(
                "unreadable",
                "a schedule is held back: this worker cannot fire it",
                schedule=name.decode(errors="backslashreplace"),
                cause=why,
            )

    def recovered(self, seconds: float) -> None:
        """Count a take-over and how long it took."""
        self._metrics.held.recovery(seconds)

    def open_transactions(self, ages_s: Mapping[tuple[str, int], float]) -> None:
        """Show for how long transactions have held readers back: topic and partition to seconds."""
        self._metrics.open_transactions(ages_s)

    def topics_to_make(self, topics: int) -> None:
        """Show how many output topics of new tenants are still to be made."""
        self._metrics.topics_to_make(topics)

    @property
    def checkpoints(self) -> CheckpointMetrics:
        """The counts of checkpoints and restores; they have a lock of their own."""
        return self._metrics.checkpoints

    @property
    def day_files(self) -> DayFileMetrics:
        """The counts of day files; they have a lock of their own."""
        return self._metrics.day_files

    def payloads(self, outcome: str, objects: int) -> None:
        """Count large payloads by their outcome at their store."""
        with self._lock:
            self._metrics.payloads(outcome, objects)

    def looked_up(self, outcome: str) -> None:
        """Count a lookup at the schema registry."""
        self._metrics.looked_up(outcome)

    def probed(self, what: str, events: int = 1) -> None:
        """Count events of the canary."""
        self._metrics.probed(what, events)

    def probe_lateness(self, late_ms: int) -> None:
        """Count how late an event of the canary came."""
        self._metrics.probe_lateness(late_ms)

    def foreign(self, topic: str, records: int) -> None:
        """Count records in a topic of belfry's that belfry did not write."""
        with self._lock:
            self._metrics.foreign(topic, records)

    def client(self, kind: str, interval_ms: int) -> dict[str, Any]:
        """Properties of a Kafka client of this kind, by which it tells its figures."""
        with self._lock:
            if kind not in self._clients:
                self._clients[kind] = self._metrics.client(kind, interval_ms)
            return self._clients[kind].properties()

    def lost(self, partition: int) -> None:
        """Take the gauges of a partition away."""
        self._metrics.held.lost(partition)
        self._metrics.day_files.lost(partition)
