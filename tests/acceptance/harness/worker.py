"""A worker as a process of its own: `belfry worker`, started, killed, stopped, asked."""

from __future__ import annotations

import http.client
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from belfry.devstack import free_port
from belfry.devstack.child import Child
from tests.acceptance.harness.forked import TEMPLATES, Forked

POLL_S = 0.02
TAIL = 4_000


class Worker:
    """One `belfry worker` at a time, with one data directory, configured by its environment."""

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        """`settings` are ``BELFRY_…`` variables; the worker sees no others of that kind."""
        home.mkdir(parents=True, exist_ok=True)
        self.data_dir = home / "data"
        self.log = home / "worker.log"
        self.http_port = free_port()
        self.settings = {
            "BELFRY_DATA_DIR": str(self.data_dir),
            "BELFRY_HTTP_PORT": str(self.http_port),
            "BELFRY_CONFIG_FILE": str(home / "none.toml"),
            "BELFRY_LOG_FORMAT": "json",
            **settings,
        }
        self._child: Child | Forked | None = None

    @property
    def child(self) -> Child | Forked:
        """The process of the present or last run."""
        assert self._child is not None, "the worker was not started"
        return self._child

    def start(self, failpoint: str = "") -> Worker:
        """Start the process, which may be told to hurt itself (``S5:kill:3``).

        `make test` forks it where that makes no difference. Else it is ``python -m belfry.cli
        worker``, as in runs that measure and take no processes of pytest-xdist.
        """
        foreign = {k: v for k, v in os.environ.items() if not k.startswith("BELFRY_")}
        env = {**foreign, **self.settings}
        if failpoint:
            env["BELFRY_FAILPOINT"] = failpoint
        if "PYTEST_XDIST_WORKER" in os.environ and TEMPLATES.fits(env):
            self._child = Forked(TEMPLATES.next(), ["worker"], env=env, log=self.log)
        else:
            command = [sys.executable, "-m", "belfry.cli", "worker"]
            self._child = Child(command, env=env, log=self.log)
        return self

    @property
    def ready(self) -> bool:
        """Whether all its partitions fire."""
        return self.get("/healthz/ready")[0] == 200

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of its HTTP port; status 0 where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=5)
        try:
            connection.request("GET", path)
            with connection.getresponse() as response:
                return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def wait_ready(self, timeout_s: float = 60.0) -> Worker:
        """Wait until all its partitions fire."""
        deadline = time.monotonic() + timeout_s
        while not self.ready:
            assert self.child.exit_code() is None, f"the worker ended: {self.tail()}"
            assert time.monotonic() < deadline, f"not ready in {timeout_s} s: {self.tail()}"
            time.sleep(POLL_S)
        return self

    def kill(self) -> None:
        """End it as a power failure would."""
        self.child.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.child.pid, number)

    def wait_end(self, timeout_s: float = 30.0) -> int:
        """Exit code, once it ends by itself."""
        assert self.child.wait(timeout_s), f"still running after {timeout_s} s: {self.tail()}"
        code = self.child.exit_code()
        assert code is not None
        return code

    def stop(self, timeout_s: float = 30.0) -> int:
        """Ask it to stop; its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait_end(timeout_s)

    def said(self) -> str:
        """The end of its log, as it is."""
        text = self.log.read_text("utf-8", errors="replace") if self.log.exists() else ""
        return text[-TAIL:]

    def tail(self) -> str:
        """The last lines of its log, each cut to what a reader of a failed test can take in."""
        return "\n".join(line[:300] for line in self.said().splitlines()[-12:])
