"""A program of Kafka Streams in the place of belfry's worker, among the topics of a benchmark.

    peer/   Scheduler, Pending      `make bench-peer` compiles them, and fetches Kafka Streams

It is one process, as belfry's worker is one, with two threads.  What it has done it says itself, on
its output, and nobody asks it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from belfry.bench.cluster import BenchCluster
from belfry.bench.plan import COMMON_TOPIC, BenchPlan
from belfry.bench.worker import WorkerFailed, cpu_seconds
from belfry.settings import Settings
from belfry.wire import catalogue

HERE: Final = Path(__file__).parent / "peer"
# How Streams is set, unless the environment says otherwise: ms of a transaction and between two
# looks at what is due, and events of a look at most.
TUNING: Final = {
    "PEER_COMMIT_MS": "50",
    "PEER_PUNCTUATE_MS": "10",
    "PEER_FIRES_AT_ONCE": "20000",
}
JAVA: Final = ("java", "-Xmx1g", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
SAID: Final = re.compile(r"^taken (\d+) fired (\d+)$", re.MULTILINE)


class StreamsCluster(BenchCluster):
    """The topics of a benchmark, with a program of Kafka Streams in the place of the worker."""

    def __init__(self, settings: Settings, plan: BenchPlan) -> None:
        super().__init__(settings, 1, plan.partitions)
        self._plan = plan
        self._process: subprocess.Popen[bytes] | None = None
        self._log = self._folder / "log"

    def start_workers(self) -> None:
        """Start the program; it makes its own topic of changes, below the prefix."""
        self.started_ms = time.time_ns() // 1_000_000
        cluster = self.settings.cluster
        schema = self._folder / "request.avsc"
        schema.write_text(catalogue.text("ScheduleRequest"), "utf-8")
        common = {"PEER_COMMON_TOPIC": self.settings.topic(COMMON_TOPIC)}
        given = {
            **TUNING,
            **{name: os.environ[name] for name in TUNING if name in os.environ},
            "PEER_SERVERS": self.settings.bootstrap_servers,
            "PEER_APPLICATION": f"{cluster.topic_prefix}streams",
            "PEER_INPUT": self.settings.topic("schedules"),
            "PEER_OUTPUT_PREFIX": self.settings.topic("fired."),
            "PEER_STATE": str(self._folder / "state"),
            "PEER_SCHEMA": str(schema),
            **(common if self._plan.common_topic else {}),
        }
        classes = f"{HERE / 'target/classes'}:{HERE / 'target/jars'}/*"
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603  # the program beside this file
                [*JAVA, "-cp", classes, "io.belfry.peer.Scheduler"],
                env={**os.environ, **given},
                stdout=out,
                stderr=out,
            )

    def make_outputs(self, plan: BenchPlan) -> None:
        """The topics alone: nobody has a policy here."""
        names = [f"fired.tenant-{number}" for number in range(plan.tenants)]
        self.open_topics([COMMON_TOPIC] if plan.common_topic else names)

    def await_ready(self, at_most_s: float = 60.0) -> None:
        """Wait until it runs; raises `WorkerFailed`."""
        deadline = time.monotonic() + at_most_s
        while "state RUNNING" not in self._said():
            if time.monotonic() > deadline:
                raise WorkerFailed(f"not ready: {self._said()[-2_000:]}")
            time.sleep(0.1)

    def counts(self) -> tuple[int, int]:
        """Requests taken in, and events fired, as it said last; at most 200 ms old."""
        found = SAID.findall(self._said())
        return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)

    def usage(self) -> tuple[float, float]:
        """CPU seconds and peak memory in MB."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return cpu_seconds(self._process.pid), int(peak.split()[1]) / 1024

    def stop_workers(self, how: int = signal.SIGTERM) -> None:
        """End the program."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _said(self) -> str:
        if self._process is not None and self._process.poll() is not None:
            raise WorkerFailed(f"Streams ended: {self._log.read_text()[-2_000:]}")
        return self._log.read_text()
