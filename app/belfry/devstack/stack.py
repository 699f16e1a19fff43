"""The embedded stack: broker and registry together, the lock on their folder, and their worker.

Broker and registry start side by side and stop in the opposite order.  There is one stack per data
directory: the kernel releases the lock however its holder ends.  The worker is a child process with
the addresses of the stack; `belfry dev` and the tests start it.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from belfry.devstack.child import Child
from belfry.devstack.errors import DevStackError, PortTakenError, StartCancelledError
from belfry.devstack.kafka import Kafka
from belfry.devstack.ports import LOOPBACK, free_port
from belfry.devstack.probing import http_status
from belfry.devstack.registry import Apicurio
from belfry.devstack.service import JavaService
from belfry.host.private_files import close_to_others

PORT_MOVES = 5
START_TIMEOUT_S = 90.0
Say = Callable[[str], None]
POLL_S = 0.1
# A worker finishes its transactions and leaves its group before it ends.
STOP_GRACE_S = 30.0


@dataclass(frozen=True)
class StackPorts:
    """The wanted ports; in place of a taken one the next free one is used, 0 is any."""

    kafka: int = 0
    registry: int = 0


@dataclass(frozen=True)
class Stack:
    """A broker and a registry that belong together."""

    kafka: Kafka
    registry: Apicurio

    @property
    def bootstrap_servers(self) -> str:
        """Address of the broker."""
        return self.kafka.bootstrap_servers

    @property
    def schema_registry_url(self) -> str:
        """Address of the registry, for clients of Confluent's API."""
        return self.registry.url

    def start(
        self, say: Say = lambda _: None, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        """Start both at the same time and wait until both answer."""
        # The registry first: it takes longer, and a new data directory holds Kafka up for a second.
        for service in (self.registry, self.kafka):
            service.start()
        for waiting in (self.kafka, self.registry):
            wait_ready_moving(waiting, say, cancelled)

    def stop(self) -> None:
        """Stop the registry, then the broker."""
        self.registry.stop()
        self.kafka.stop()


@contextmanager
def open_stack(
    data_dir: Path,
    ports: StackPorts = StackPorts(),
    *,
    say: Say = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Iterator[Stack]:
    """A running stack on ``data_dir``, which no other stack may use meanwhile.

    ``say`` gets a sentence for each port that had to move; ``cancelled`` is called while waiting,
    and ends the start with `StartCancelledError`.
    """
    with locked(data_dir):
        stack = _placed(data_dir, ports, say)
        try:
            stack.start(say, cancelled)
            yield stack
        finally:
            stack.stop()


def _placed(data_dir: Path, ports: StackPorts, say: Say) -> Stack:
    kafka = moved_port("Kafka", ports.kafka, say)
    registry = moved_port("The schema registry", ports.registry, say, avoid=kafka)
    return Stack(Kafka(data_dir / "kafka", kafka), Apicurio(data_dir / "registry", registry))


def moved_port(what: str, wanted: int, say: Say, avoid: int = 0) -> int:
    """``wanted`` or the next free port after it; ``say`` is told of a move."""
    port = free_port(wanted, avoid=[avoid])
    if wanted and port != wanted:
        say(f"Port {wanted} is taken. {what} takes {port}.")
    return port


def wait_ready_moving(
    service: JavaService, say: Say, cancelled: Callable[[], bool] = lambda: False
) -> None:
    """Wait for an answer; if another process takes the port first, move to the next one."""
    for _ in range(PORT_MOVES):
        try:
            service.wait_ready(START_TIMEOUT_S, cancelled)
        except PortTakenError:
            taken, service.port = service.port, free_port(service.port + 1)
            say(f"Port {taken} was taken meanwhile. {service.name} takes {service.port}.")
            service.start()
        else:
            return
    service.wait_ready(START_TIMEOUT_S, cancelled)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold ``directory`` (made if missing); another holder is an error that names it."""
    # The broker in it keeps payloads.  A folder that cannot be closed to others is used all the
    # same: this is a stack for development, on the user's own machine.
    close_to_others(directory)
    with (directory / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise DevStackError(_in_use(directory, file.read().strip())) from None
        _write_holder(file.fileno())
        yield


def _write_holder(fd: int) -> None:
    os.ftruncate(fd, 0)
    os.write(fd, str(os.getpid()).encode())


def _in_use(directory: Path, holder: str) -> str:
    return (
        f"The data directory {directory} is in use by another belfry stack "
        f"(process {holder or 'unknown'}). Stop that one, or give this one its own: --data-dir DIR."
    )


class Worker:
    """``belfry worker`` against a stack; its output goes to that of this process."""

    name = "worker"

    def __init__(self, stack: Stack, data_dir: Path, http_port: int) -> None:
        """Start it; ``data_dir`` keeps its state."""
        self.http_url = f"http://{LOOPBACK}:{http_port}"
        environment = {**os.environ, **_settings_of_worker(stack, data_dir, http_port)}
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
        """Ask it to finish its work, wait, then kill it."""
        self._child.stop(STOP_GRACE_S)


def _settings_of_worker(stack: Stack, data_dir: Path, http_port: int) -> dict[str, str]:
    return {
        "BELFRY_BOOTSTRAP_SERVERS": stack.bootstrap_servers,
        "BELFRY_SCHEMA_REGISTRY_URL": stack.schema_registry_url,
        "BELFRY_REGISTRY_AUTO_REGISTER": "true",
        "BELFRY_DATA_DIR": str(data_dir.absolute()),
        "BELFRY_HTTP_PORT": str(http_port),
        # The receiver of a user who tries webhooks is on this machine.
        "BELFRY_WEBHOOK_PRIVATE_NETWORKS": '["127.0.0.0/8", "::1/128"]',
    }
