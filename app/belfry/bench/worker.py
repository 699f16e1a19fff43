"""A worker of a benchmark: `belfry worker`, as shipped, in a process of its own.

Figures come from outside of the worker: CPU and memory from Linux's ``/proc``, counts from its HTTP
port. It is asked seldom, so that its answers hardly cost measured time. A worker that ends by
itself ends the benchmark, with the end of its log:

    BenchWorker ──► Popen(belfry worker) ──► folder/state, folder/log
       │ view, pending   GET /v1/cluster?alone=true
       │ fired           GET /metrics
       │ usage           /proc/PID/stat, /proc/PID/status
       └ stop            a signal, and 20 s later SIGKILL
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from belfry.settings import Settings

FIRED: Final = re.compile(rb"^belfry_fired_total(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
# Seconds that an answer may take: a worker of thousands of tenants is slow on a busy machine.
ANSWER_S: Final = 10.0
# Units of CPU time in ``/proc`` per second.
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
            # The group gives a killed worker up sooner than by default.
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

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def view(self) -> dict[str, Any]:
        """The worker's own answer about itself, or nothing while it does not answer."""
        if self._process.poll() is not None:
            raise WorkerFailed(f"a worker ended: {self.log.read_text()[-2000:]}")
        try:
            with urlopen(f"{self.url}/v1/cluster?alone=true", timeout=ANSWER_S) as answer:  # noqa: S310  # loopback
                found: dict[str, Any] = json.load(answer)["workers"][0]
                return found
        except OSError:
            return {}

    def ready(self) -> bool:
        """Whether all of its partitions fire."""
        view = self.view()
        return bool(view.get("ready")) and bool(view.get("partitions"))

    def pending(self) -> int:
        """Pending schedules in its partitions."""
        return sum(partition["pending"] for partition in self.view().get("partitions", []))

    def fired(self) -> int:
        """Events that it has fired; 0 while it does not answer."""
        try:
            with urlopen(f"{self.url}/metrics", timeout=ANSWER_S) as answer:  # noqa: S310  # loopback
                found = FIRED.search(answer.read())
        except OSError:
            return 0
        return 0 if found is None else int(float(found[1]))

    def usage(self) -> tuple[float, float]:
        """CPU seconds, and peak resident memory in MB; the worker must still run."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return cpu_seconds(self.pid), int(peak.split()[1]) / 1024

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End the process by a signal, and kill it where it has not ended in 20 s."""
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def cpu_seconds(pid: int) -> float:
    """CPU seconds that a process has used, by Linux's ``/proc`` (fields 14 and 15 of ``stat``)."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
