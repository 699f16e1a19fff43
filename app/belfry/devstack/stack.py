"""Broker and registry together: started side by side, stopped in the opposite order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from belfry.devstack.errors import PortTakenError
from belfry.devstack.kafka import Kafka
from belfry.devstack.lock import locked
from belfry.devstack.ports import free_port
from belfry.devstack.registry import Registry
from belfry.devstack.service import JavaService

PORT_MOVES = 5
START_TIMEOUT_S = 90.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class StackPorts:
    """Wished-for ports; a taken one moves on to the next free one, 0 is any."""

    kafka: int = 0
    registry: int = 0


@dataclass(frozen=True)
class Stack:
    """A broker and a registry that belong together."""

    kafka: Kafka
    registry: Registry

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
    """A running stack on ``data_dir``, which nobody else may use meanwhile.

    ``say`` gets a sentence for each port that had to move; ``cancelled`` is asked while waiting,
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
    return Stack(Kafka(data_dir / "kafka", kafka), Registry(data_dir / "registry", registry))


def moved_port(what: str, wanted: int, say: Say, avoid: int = 0) -> int:
    """``wanted`` or the next free port after it; a move is said."""
    port = free_port(wanted, avoid=[avoid])
    if wanted and port != wanted:
        say(f"Port {wanted} is taken. {what} takes {port}.")
    return port


def wait_ready_moving(
    service: JavaService, say: Say, cancelled: Callable[[], bool] = lambda: False
) -> None:
    """Wait for an answer; somebody who was faster at binding the port makes it move on."""
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
