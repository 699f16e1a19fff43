"""One simulated worker process: the shipped parts, joined by the shipped assembly.

In the place of Faust stands a loop that sends heartbeats and passes assignments on, and in the
place of its agent a function that hands batches to their runner, or, where the weather is bad,
loses one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from belfry.balance.assignment_map import MemberMetadata
from belfry.group.group import Group as AssignedMember
from belfry.group.group import Surroundings
from belfry.group.heartbeats import Heartbeats
from belfry.partitions.gauges import Gauges
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.step_shares import StepRoom
from belfry.partitions.supervisor import Owners
from belfry.partitions.surroundings import WorkerPort
from belfry.placement.partition_count import PartitionCount
from belfry.process import cluster_start, sharing
from belfry.process.self_check import SelfCheck
from belfry.settings import ClusterSettings, Settings
from belfry.telemetry.metrics import Metrics
from tests.simulation.delivering import deliverer
from tests.simulation.group import Group
from tests.simulation.leading import LedGroup
from tests.simulation.machine import Machine
from tests.simulation.registry import SimLookups, SimRegistry
from tests.simulation.stage import Stage, here

if TYPE_CHECKING:
    from tests.simulation.ports import Port

IDLE_COMMIT_MS: Final = 300.0
_METRICS: Final = Metrics(CollectorRegistry())


def settings_of(partitions: int, **given: Any) -> Settings:
    """Settings that suit a small world; the environment is not asked."""
    secret = given.pop("http_worker_secret", None)
    return Settings.model_construct(
        **{
            **Settings(cluster=ClusterSettings(partitions=partitions)).__dict__,
            "session_timeout_ms": 2_000,
            "transaction_timeout_ms": 4_000,
            "batch_records": 6,
            "fire_chunk": 4,
            **given,
            "http_worker_secret": SecretStr(secret) if secret else None,
        }
    )


def _nothing(_events: Any) -> None:
    """Nobody waits for what is committed."""


class SimWorker:
    """A process on a machine; `boot` starts it."""

    def __init__(
        self,
        machine: Machine,
        group: Group | LedGroup,
        settings: Settings,
        registry: SimRegistry | None,
        *,
        checks: bool = False,
    ) -> None:
        """`checks`: it looks at itself, at ids and at how many partitions there are."""
        self.machine = machine
        self.owners: Owners | None = None
        self.counted = PartitionCount(settings.cluster.partitions)
        self.opener: PartitionOpener | None = None
        self.room: StepRoom | None = None
        self.refusals: list[str] = []
        self._group = group
        self._registry = registry
        self._checks = checks
        self.settings = settings.model_copy(update={"data_dir": Path("data") / machine.name})
        self._stopping = False

    def boot(self, stage: Stage) -> None:
        """Start the process."""
        stage.spawn(f"{self.machine.name} main", self._run, self.machine)

    def terminate(self) -> None:
        """SIGTERM."""
        self._stopping = True

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return not self.machine.dead and bool(self.machine.tasks)

    def _run(self) -> None:
        clock: Any = self.machine
        settings = self.settings
        try:
            found = cluster_start.find(settings)
            entry = AssignedMember(self._says())
            shared = sharing.share(settings, found, clock, Gauges(_METRICS), entry)
        except (KafkaException, ConnectionError):
            # No broker: the process ends, and whoever supervises it starts it again.
            return
        lookups: Any = None
        if self._registry is not None:
            lookups = SimLookups(self._registry, settings.registry_wait_ms)
        self.room = shared.room
        opener = replace(shared.opener, failpoints=clock, lookups=lookups)
        shared = shared._replace(opener=opener)
        http = self._http(opener, entry, found.frames)
        port = WorkerPort(
            hand_over=self._hand_over,
            refused=self._refused,
            committed=_nothing if http is None else http.committed,
            is_asked_often=lambda: False,
        )
        try:
            opener.policies.start()
            shared.outputs.start()
            opener.watch.start()
        except (KafkaException, ConnectionError):
            return
        self.counted, self.opener = found.counted, opener
        beats = self._heartbeats() if isinstance(self._group, LedGroup) else None
        self.owners = owners = Owners(opener, shared.runners(port), entry, beats)
        entry.connect(
            Surroundings(
                rejoin=partial(self._group.rejoin, self.machine),
                look_again=partial(self._group.look_again, self.machine),
                holdings=owners.holdings,
                keeps_heartbeat=None if beats is None else lambda: beats.works,
            )
        )
        if beats is not None:
            beats.start(owners.well)
        owners.start()
        if beats is not None:
            beats.begun()
        if http is not None:
            http.start(owners)
        check = SelfCheck(opener, shared.guard, owners, entry) if self._checks else None
        delivers = deliverer(settings, found.frames, clock) if self._delivers() else None
        helpers: list[Any] = [each for each in (check, delivers) if each is not None]
        for each in helpers:
            each.start()
        self._be_member(owners, entry)
        ends: tuple[Any, ...] = (
            *(*helpers, owners, beats, opener.policies, shared.outputs, opener.watch, http),
        )
        for each in ends:
            if each is not None:
                each.stop()
        self._group.leave(self.machine)

    def _delivers(self) -> bool:
        return self.machine.hooks is not None and self.settings.role == "all"

    def _says(self) -> MemberMetadata:
        """What it says of itself: where it is called at, if it is."""
        name = self.machine.name
        if self.machine.calling is None:
            return MemberMetadata(name)
        from tests.simulation.ports import url_of

        return MemberMetadata(name, http=url_of(name))

    def _http(self, opener: PartitionOpener, entry: AssignedMember, frames: Any) -> Port | None:
        """Its port, where somebody calls; what that needs takes long to import."""
        if self.machine.calling is None:
            return None
        from tests.simulation.ports import Port

        return Port(self.machine.calling, opener, entry, frames)

    def _heartbeats(self) -> Heartbeats:
        clock: Any = self.machine
        return Heartbeats(self.machine.name, "belfry.changelog", {}, "belfry.heartbeats", clock)

    def _be_member(self, owners: Owners, entry: AssignedMember) -> None:
        """Beat until the process is to stop; where others stand by, hand on what is owned."""
        while not self._stopping:
            self._beat(owners, entry)
        if isinstance(self._group, LedGroup) and not (self.refusals or entry.alone):
            entry.leave()
            deadline_ms = here().now_ms + self.settings.hand_over_limit_ms
            while here().now_ms < deadline_ms and any(each.alive for each in owners.runners()):
                self._beat(owners, entry)

    def _beat(self, owners: Owners, entry: AssignedMember) -> None:
        told = None if self.machine.cut else self._group.beat(self.machine, entry, self.counted)
        if told is not None:
            owners.assign(told)
        if self.machine.calling is not None and isinstance(self._group, LedGroup):
            self._group.tell(entry)
        here().sleep(IDLE_COMMIT_MS)

    def _hand_over(self, runner: Any, term: int, batch: Any) -> None:
        weather = self.machine.weather
        here().sleep(weather.latency_ms())
        if weather.strikes(weather.lost_batch):
            self.machine.struck.append("lost batch")
            return
        runner.deliver(term, batch)

    def _refused(self, reason: str) -> None:
        self.refusals.append(reason)
        self._stopping = True


class SimSender(SimWorker):
    """A process that only delivers: `belfry worker --role deliver`."""

    def _run(self) -> None:
        clock: Any = self.machine
        settings = self.settings.model_copy(update={"role": "deliver"})
        try:
            found = cluster_start.find(settings)
        except (KafkaException, ConnectionError):
            return
        delivers = deliverer(settings, found.frames, clock)
        delivers.start()
        while not self._stopping:
            here().sleep(IDLE_COMMIT_MS)
        delivers.stop()
