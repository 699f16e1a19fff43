"""The brokers of a scene: one node with two doors, or three nodes.

The first door is for everybody; the second leads through a hop (`proxy.py`), and whoever bootstraps
there is always led through it, for the listener behind it advertises the hop's own port.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from belfry.devstack import Kafka, KafkaNodes, free_port
from tests.chaos.proxy import HOST, Proxy

READY_S: Final = 90.0
# Who may do what is a fault of its own; without a rule everybody may.
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@dataclass(frozen=True, slots=True)
class Brokers:
    """Running brokers; `victims_servers` lead through the hop, where there is one."""

    nodes: Sequence[Kafka]
    servers: str
    victims_servers: str
    log_dir: Path
    hop: Proxy


@contextmanager
def two_doors(home: Path) -> Iterator[Brokers]:
    """One node, and a hop before its second door."""
    near, controller, behind, outside = _ports(4)
    listeners = {"PLAINTEXT": near, "HOP": behind, "CONTROLLER": controller}
    node = Kafka(
        home,
        near,
        properties={
            "listeners": _listed(listeners),
            "advertised.listeners": _listed({"PLAINTEXT": near, "HOP": outside}),
            "listener.security.protocol.map": ",".join(f"{n}:PLAINTEXT" for n in listeners),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            **AUTHORIZER,
        },
    )
    hop = Proxy(outside, behind)
    try:
        node.start().wait_ready(READY_S)
        hop.start()
        yield Brokers([node], node.bootstrap_servers, hop.address, node.log_dir, hop)
    finally:
        hop.stop()
        node.stop()


@contextmanager
def three_nodes(home: Path) -> Iterator[Brokers]:
    """Three nodes that replicate everything; the hop leads nowhere and nobody uses it."""
    with KafkaNodes(home, nodes=3) as cluster:
        servers = cluster.bootstrap_servers
        hop = Proxy(free_port(), 0)
        hop.start()
        try:
            yield Brokers(cluster.nodes, servers, servers, cluster.nodes[0].log_dir, hop)
        finally:
            hop.stop()


def _ports(count: int) -> list[int]:
    found: list[int] = []
    for _ in range(count):
        found.append(free_port(avoid=found))
    return found


def _listed(listeners: dict[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items())
