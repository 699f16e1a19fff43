"""The worker of ``belfry dev``: a child process that is told where the stack is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from belfry.devstack.child import Child
from belfry.devstack.errors import DevStackError, StartCancelledError
from belfry.devstack.ports import LOOPBACK
from belfry.devstack.probing import http_status
from belfry.devstack.stack import Stack

POLL_S = 0.1
# A worker finishes its transactions and leaves its group before it ends.
STOP_GRACE_S = 30.0


class Worker:
    """``belfry worker`` against a stack; its output is ours."""

    name = "worker"

    def __init__(self, stack: Stack, data_dir: Path, http_port: int) -> None:
        """Start it; ``data_dir`` keeps its state."""
        self.http_url = f"http://{LOOPBACK}:{http_port}"
        environment = {**os.environ, **_settings(stack, data_dir, http_port)}
        self._child = Child([sys.executable, "-m", "belfry.cli", "worker"], env=environment)

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._child.pid

    def exit_code(self) -> int | None:
        """Exit code of the worker, or None while it runs."""
        return self._child.exit_code()

    def wait_ready(self, timeout_s: float, cancelled: Callable[[], bool]) -> None:
        """Wait until the worker says that it fires events."""
        deadline = time.monotonic() + timeout_s
        while http_status(f"{self.http_url}/healthz/ready") != 200:
            if self.exit_code() is not None:
                raise DevStackError(
                    f"The worker ended while starting, exit code {self.exit_code()}. "
                    "Its own output above says why."
                )
            if cancelled():
                raise StartCancelledError("The worker was still starting.")
            if time.monotonic() > deadline:
                raise DevStackError(
                    f"The worker is not ready after {timeout_s:.0f} s: "
                    f"{self.http_url}/healthz/ready does not answer 200."
                )
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Ask it to finish what it does, wait, then kill it."""
        self._child.stop(STOP_GRACE_S)


def _settings(stack: Stack, data_dir: Path, http_port: int) -> dict[str, str]:
    return {
        "BELFRY_BOOTSTRAP_SERVERS": stack.bootstrap_servers,
        "BELFRY_SCHEMA_REGISTRY_URL": stack.schema_registry_url,
        "BELFRY_REGISTRY_AUTO_REGISTER": "true",
        "BELFRY_DATA_DIR": str(data_dir.absolute()),
        "BELFRY_HTTP_PORT": str(http_port),
        # Whoever tries webhooks out has their receiver on this machine.
        "BELFRY_WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8", "::1/128"]',
    }
