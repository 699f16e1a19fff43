"""A belfry of its own for one benchmark: topics, worker processes, their figures, and the end.

    with BenchCluster(settings, workers=1, partitions=4) as cluster:     topics under a fresh prefix
        cluster.start_workers()                                          `belfry worker`, as shipped
        cluster.await_ready()
        …
    # workers are stopped, topics deleted, state removed, also after an error

Figures come from outside of what is measured: CPU and memory from Linux's ``/proc``, counts from
the workers' HTTP ports. A worker that ends by itself ends the benchmark, with the end of its log.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.request import urlopen

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient

from belfry.bench.plan import COMMON_TOPIC, EXACTLY_ONCE, BenchPlan, Tell, silent
from belfry.client.kafka import Cluster
from belfry.client.tenants import TenantPolicies
from belfry.kafka import topics
from belfry.kafka.partition_log import PartitionLog
from belfry.kafka.wanted_topics import output_topic_spec
from belfry.settings import ClusterSettings, Settings
from belfry.tenants.policy import TenantPolicy

# Seconds until workers that do not own all partitions end the benchmark.
READY_S: Final = 60.0
FIRED: Final = re.compile(rb"^belfry_fired_total(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
# Seconds that brokers have to delete topics.
PATIENT_S: Final = 60.0
# Topics that are created or deleted in one request.
TOGETHER: Final = 500
# Units of CPU time in ``/proc``, a second.
CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK")


class WorkerFailed(Exception):
    """A worker of the benchmark ended or did not get ready."""


class BenchWorker:
    """One `belfry worker` process.

    `folder` gets its state and its log. It starts with the object and is ended by `stop`. Its
    settings come from the environment, so they win over a settings file of the folder that the
    benchmark is run in.
    """

    def __init__(self, settings: Settings, folder: Path, port: int) -> None:
        environment = {
            **os.environ,
            "BELFRY_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
            "BELFRY_DATA_DIR": str(folder / "state"),
            "BELFRY_HTTP_PORT": str(port),
            "BELFRY_LOG_FORMAT": "json",
            "BELFRY_LOG_LEVEL": os.environ.get("BELFRY_BENCH_LOG_LEVEL", "warning"),
            "BELFRY_LIFECYCLE": settings.lifecycle,
            "BELFRY_CLUSTER__TOPIC_PREFIX": settings.cluster.topic_prefix,
            "BELFRY_CLUSTER__APP_ID": settings.cluster.app_id,
            "BELFRY_CLUSTER__PARTITIONS": str(settings.cluster.partitions),
            # A worker that is killed is given up sooner than by default.
            "BELFRY_SESSION_TIMEOUT_MS": "6000",
        }
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "log"
        self.url = f"http://127.0.0.1:{port}"
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "belfry.cli", "worker"],
                env=environment,
                stdout=out,
                stderr=out,
            )

    def view(self) -> dict[str, Any]:
        """The worker's own answer about itself, or nothing while it does not answer."""
        if self._process.poll() is not None:
            raise WorkerFailed(f"a worker ended: {self.log.read_text()[-2000:]}")
        try:
            with urlopen(f"{self.url}/v1/cluster?alone=true", timeout=2) as answer:  # noqa: S310  # loopback
                found: dict[str, Any] = json.load(answer)["workers"][0]
                return found
        except OSError:
            return {}

    def ready(self) -> bool:
        """Whether all of its partitions fire."""
        view = self.view()
        return bool(view.get("ready")) and bool(view.get("partitions"))

    def pending(self) -> int:
        """Schedules that wait in its partitions."""
        return sum(partition["pending"] for partition in self.view().get("partitions", []))

    def fired(self) -> int:
        """Events that it has fired; 0 while it does not answer."""
        try:
            with urlopen(f"{self.url}/metrics", timeout=2) as answer:  # noqa: S310  # loopback
                found = FIRED.search(answer.read())
        except OSError:
            return 0
        return 0 if found is None else int(float(found[1]))

    def usage(self) -> tuple[float, float]:
        """CPU seconds, and peak resident memory in MB; it has to run still."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return cpu, int(peak.split()[1]) / 1024

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End the process by a signal, and kill it where it has not ended in 20 s."""
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class BenchCluster:
    """Topics and workers of one benchmark; both go at the end.

    `settings` say how the broker is reached; prefix, group and partitions are replaced. `tell` is
    told how far a benchmark is. Methods run in one thread and block.
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
        """Create the topics that the plan's events come out on, and what the tenants' policies say.

        Each output partition gets a record, so that no benchmark measures how a broker opens the
        files of new ones.
        """
        names = [f"tenant-{number}" for number in range(plan.tenants)]
        self.open_topics([COMMON_TOPIC] if plan.common_topic else [f"fired.{n}" for n in names])
        common = self.settings.topic(COMMON_TOPIC) if plan.common_topic else None
        if common or plan.guarantee != EXACTLY_ONCE:
            promised = [
                TenantPolicy(name, output_topic=common, guarantee=plan.guarantee)  # type: ignore[arg-type]
                for name in names
            ]
            servers = self.properties["bootstrap.servers"]
            policies = TenantPolicies(Cluster(servers), self.settings.cluster.topic_prefix)
            policies.put(*promised, share_topic=True)

    def open_topics(self, names: list[str]) -> None:
        """Create output topics, and write a tombstone to each of their partitions."""
        for some in _portions(names):
            # A producer that knows very many topics asks after all of them, over and over.
            producer = Producer(self.properties)
            topics_of = [self.settings.topic(name) for name in some]
            specs = [output_topic_spec(self.settings.cluster, name, 1) for name in topics_of]
            topics.create_topics(self._admin, specs)
            for spec in specs:
                for partition in range(spec.partitions):
                    producer.produce(spec.name, None, partition=partition)
            producer.flush()

    def start_workers(self) -> None:
        """Start the workers; the group waits for none of them."""
        self.started_ms = time.time_ns() // 1_000_000
        ports = [_free_port() for _ in range(self._count)]
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
        """Schedules that wait, over all workers."""
        return sum(worker.pending() for worker in self.workers)

    def fired(self) -> int:
        """Events that all workers have fired."""
        return sum(worker.fired() for worker in self.workers)

    def usage(self) -> tuple[float, float]:
        """CPU seconds of all workers, and the peak memory of the largest one in MB."""
        figures = [worker.usage() for worker in self.workers]
        return sum(cpu for cpu, _ in figures), max(peak for _, peak in figures)

    def state_bytes(self) -> int:
        """What the workers' local state takes on disk."""
        return sum(
            each.stat().st_size for each in self._folder.rglob("state/**/*") if each.is_file()
        )

    def topic_bytes(self, name: str) -> tuple[int, int]:
        """Records of a topic, and the bytes of their keys, values and headers, uncompressed.

        Tombstones are in the bytes and not in the count. The whole topic is read for it.
        """
        topic = self.settings.topic(name)
        count = found = 0
        for partition in self._admin.list_topics(topic, timeout=10).topics[topic].partitions:
            log = PartitionLog(self.properties, topic, partition)
            try:
                low, high = log.ends()
                log.seek(low)
                for message in (each for some in log.read_until(high, 50_000) for each in some):
                    count += message.value() is not None
                    found += _record_bytes(message)
            finally:
                log.close()
        return count, found

    def stop_workers(self, how: int = signal.SIGTERM) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.stop(how)

    def wipe_state(self) -> None:
        """Remove the workers' local state, which is safe while they are stopped."""
        for number in range(self._count):
            shutil.rmtree(self._folder / f"worker-{number}" / "state", ignore_errors=True)


def _record_bytes(message: Message) -> int:
    """Bytes of one record as its client gave them."""
    headers: Any = message.headers() or ()
    own = len(message.key() or b"") + len(message.value() or b"")
    return own + sum(len(name) + len(value or b"") for name, value in headers)


def _portions(names: list[str]) -> Iterator[list[str]]:
    """Some hundred at a time: a broker takes long for thousands of topics."""
    for start in range(0, len(names), TOGETHER):
        yield names[start : start + TOGETHER]


def _free_port() -> int:
    """A port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
