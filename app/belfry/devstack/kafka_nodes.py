"""Several Kafka nodes that make one cluster on one machine, to test replicas and dying brokers.

    with KafkaNodes(Path("three"), nodes=3) as nodes:
        print(nodes.bootstrap_servers)
        nodes.nodes[1].kill()

    node 1   ports 5001 (controller)  9101 (clients)   three/1   ┐
    node 2         5002               9102             three/2   ├ one cluster id, the same voters
    node 3         5003               9103             three/3   ┘

Ports are chosen once, before the first node starts, because each node needs the ports of all
controllers.  They stay over the restart of a node, so clients and the other nodes find it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from belfry.devstack.kafka import Kafka, Node, new_cluster_id
from belfry.devstack.ports import LOOPBACK, free_ports

# Seconds after which a node that does not answer ends the start of all.
READY_S: Final = 100.0
# MB of Java's heap for each of several nodes.
HEAP_MB: Final = 256
# A dead broker is noticed after 3 s, instead of 9 s by default.  The first node waits for a
# majority before it can register; by default it gives up after a minute, which a busy machine may
# need to start three.
NOTICED: Final = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "initial.broker.registration.timeout.ms": "300000",
    # Where a leader moves, a follower often asks the new leader before that one knows of its role.
    # The follower is refused and, by default, asks again after a second. Until then no record with
    # acks=all is acknowledged (docs/reliability.md).
    "replica.fetch.backoff.ms": "50",
}


class KafkaNodes:
    """Nodes that are started together; leaving the context kills them.

    A test may stop, kill and start single nodes meanwhile. Each node is broker and controller, so
    the cluster works while more than half of them live.
    """

    def __init__(
        self, home: Path, nodes: int = 3, properties: Mapping[str, str] | None = None
    ) -> None:
        """``properties`` are server properties of every node."""
        ports = free_ports(2 * nodes)
        controllers, listeners = ports[:nodes], ports[nodes:]
        voters = ",".join(f"{n}@{LOOPBACK}:{port}" for n, port in enumerate(controllers, 1))
        cluster_id = new_cluster_id()
        self.nodes: list[Kafka] = []
        for number, (controller, port) in enumerate(zip(controllers, listeners, strict=True), 1):
            node = Node(number, controller, voters, cluster_id)
            given = {**NOTICED, **(properties or {})}
            self.nodes.append(Kafka(home / str(number), port, HEAP_MB, node=node, properties=given))

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
