"""Several Kafka nodes on one machine that make one cluster: replicas, and brokers that may be lost.

    with Cluster(Path("three"), nodes=3) as cluster:
        print(cluster.bootstrap_servers)

Every node is broker and controller.  Ports are chosen once and stay over the restart of a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from belfry.devstack.kafka import Kafka, Node, new_cluster_id
from belfry.devstack.ports import LOOPBACK, free_port

READY_S: Final = 100.0
HEAP_MB: Final = 256
# A dead broker is noticed after this long, by default after 9 s.
NOTICED: Final = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "3000"}


class Cluster:
    """Nodes that are started together; leaving it kills them."""

    def __init__(
        self, home: Path, nodes: int = 3, properties: Mapping[str, str] | None = None
    ) -> None:
        """``properties`` are server properties of every node."""
        controllers: list[int] = []
        for _ in range(nodes):
            controllers.append(free_port(avoid=controllers))
        voters = ",".join(f"{n}@{LOOPBACK}:{port}" for n, port in enumerate(controllers, 1))
        cluster_id = new_cluster_id()
        taken = list(controllers)
        self.nodes: list[Kafka] = []
        for number, controller in enumerate(controllers, 1):
            taken.append(free_port(avoid=taken))
            node = Node(number, controller, voters, cluster_id)
            given = {**NOTICED, **(properties or {})}
            self.nodes.append(
                Kafka(home / str(number), taken[-1], HEAP_MB, node=node, properties=given)
            )

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all nodes."""
        return ",".join(node.bootstrap_servers for node in self.nodes)

    def __enter__(self) -> Self:
        try:
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                node.wait_ready(READY_S)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._kill()

    def _kill(self) -> None:
        for node in self.nodes:
            if node.running:
                node.kill()
