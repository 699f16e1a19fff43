"""A belfry of its own for one benchmark: topics, worker processes, their figures, and the end.

    with BenchCluster(settings, workers=1, partitions=4) as cluster:     topics under a fresh prefix
        cluster.start_workers()                                          `belfry worker`, as shipped
        cluster.await_ready()
        …
    # workers are stopped, topics deleted, state removed, also after an error

`worker.py` tells the counts and the costs of a worker, `logged.py` the content of topics
afterwards.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from belfry.bench.plan import COMMON_TOPIC, EXACTLY_ONCE, BenchPlan, Tell, silent
from belfry.bench.worker import BenchWorker, WorkerFailed
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.devstack.ports import free_ports
from belfry.kafka import topics
from belfry.kafka.wanted_topics import output_topic_spec
from belfry.settings import ClusterSettings, Settings
from belfry.tenants.policy import TenantPolicy

# Seconds until workers that do not own all partitions end the benchmark.
READY_S: Final = 60.0
# Seconds that brokers have to delete topics.
PATIENT_S: Final = 60.0
# Topics that are created or deleted in one request.
TOGETHER: Final = 500


class BenchCluster:
    """Topics and workers of one benchmark; both go at the end.

    `settings` say how the broker is reached; prefix, group and partitions are replaced. `tell` is
    called with the progress of a benchmark. Methods run in one thread and block.
    """

    def __init__(
        self, settings: Settings, workers: int, partitions: int, tell: Tell = silent
    ) -> None:
        self.tell = tell
        name = f"bench{int(time.time() * 1000)}"
        cluster = ClusterSettings(topic_prefix=f"{name}.", app_id=name, partitions=partitions)
        self.settings = settings.model_copy(update={"cluster": cluster})
        self.properties = self.settings.kafka_properties()
        self._admin = AdminClient(self.properties)
        self._folder = Path(tempfile.mkdtemp(prefix="belfry-bench-"))
        self._count = workers
        self.workers: list[BenchWorker] = []
        # Epoch ms of the last start of workers, by this machine's clock.
        self.started_ms = 0

    def __enter__(self) -> Self:
        topics.create(self._admin, self.settings)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop_workers()
        prefix = self.settings.cluster.topic_prefix
        mine = [
            name for name in self._admin.list_topics(timeout=10).topics if name.startswith(prefix)
        ]
        for some in _portions(mine):
            for future in self._admin.delete_topics(some, operation_timeout=PATIENT_S).values():
                future.result(2 * PATIENT_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def make_outputs(self, plan: BenchPlan) -> None:
        """Create the output topics of the plan's events, and the policies of its tenants.

        Each output partition gets a record, so that no benchmark measures how a broker opens the
        files of new partitions.
        """
        names = [f"tenant-{number}" for number in range(plan.tenants)]
        self.open_topics([COMMON_TOPIC] if plan.common_topic else [f"fired.{n}" for n in names])
        output = "SHARED" if plan.common_topic else "OWN"
        if plan.common_topic or plan.guarantee != EXACTLY_ONCE:
            promised = [
                TenantPolicy(name, output=output, guarantee=plan.guarantee)  # type: ignore[arg-type]
                for name in names
            ]
            servers = self.properties["bootstrap.servers"]
            policies = TenantPolicies(Cluster(servers), self.settings.cluster.topic_prefix)
            policies.put(*promised, share_topic=True)

    def open_topics(self, names: list[str]) -> None:
        """Create output topics, and write a tombstone to each of their partitions."""
        for some in _portions(names):
            # A producer that knows very many topics asks for all of them, over and over.
            producer = Producer(self.properties)
            topics_of = [self.settings.topic(name) for name in some]
            specs = [output_topic_spec(self.settings.cluster, name, 1) for name in topics_of]
            topics.create_topics(self._admin, specs)
            for spec in specs:
                for partition in range(spec.partitions):
                    producer.produce(spec.name, None, partition=partition)
            producer.flush()

    def start_workers(self) -> None:
        """Start the workers, without waiting until they are ready."""
        self.started_ms = time.time_ns() // 1_000_000
        ports = free_ports(self._count)
        self.workers = [
            BenchWorker(self.settings, self._folder / f"worker-{number}", port)
            for number, port in enumerate(ports)
        ]

    def await_ready(self, at_most_s: float = READY_S) -> None:
        """Wait until all workers fire and all partitions are owned; raises `WorkerFailed`."""
        deadline = time.monotonic() + at_most_s
        while time.monotonic() < deadline:
            views = [worker.view() for worker in self.workers]
            owned = sum(len(view.get("partitions", [])) for view in views)
            all_own = all(view.get("partitions") for view in views)
            complete = all_own and owned == self.settings.cluster.partitions
            if complete and all(view["ready"] for view in views):
                return
            time.sleep(0.1)
        raise WorkerFailed(
            f"not ready within {at_most_s} s: {self.workers[0].log.read_text()[-2000:]}"
        )

    def pending(self) -> int:
        """Pending schedules, over all workers."""
        return sum(worker.pending() for worker in self.workers)

    def fired(self) -> int:
        """Events that all workers have fired."""
        return sum(worker.fired() for worker in self.workers)

    def usage(self) -> tuple[float, float]:
        """CPU seconds of all workers, and the peak memory of the largest one in MB."""
        figures = [worker.usage() for worker in self.workers]
        return sum(cpu for cpu, _ in figures), max(peak for _, peak in figures)

    def state_bytes(self) -> int:
        """Bytes of the workers' local state on disk."""
        return sum(
            each.stat().st_size for each in self._folder.rglob("state/**/*") if each.is_file()
        )

    def stop_workers(self, how: int = signal.SIGTERM) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.stop(how)

    def wipe_state(self) -> None:
        """Remove the workers' local state, which is safe while they are stopped."""
        for number in range(self._count):
            shutil.rmtree(self._folder / f"worker-{number}" / "state", ignore_errors=True)


def _portions(names: list[str]) -> Iterator[list[str]]:
    """Names, some hundred at a time: a broker takes long for thousands of topics."""
    for start in range(0, len(names), TOGETHER):
        yield names[start : start + TOGETHER]
