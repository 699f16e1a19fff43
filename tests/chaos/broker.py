"""The brokers of a scene: three nodes that replicate everything, or a lone one.

Each node has two doors.  The first is for everybody.  The second leads through a hop (`proxy.py`),
and a client that bootstraps there is always led through it, for the listener behind it advertises
the hop's own port:

    worker ───────────────────────────► PLAINTEXT ┐
    victim ──► hop (a port a node) ───► HOP       ┤ node 1, node 2, node 3
    the nodes themselves, logged in ──► NODES     ┘
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient

from belfry.devstack import Kafka, KafkaNodes, free_ports
from belfry.devstack.kafka import Node
from tests.chaos.proxy import HOST, Proxy

READY_S: Final = 90.0
ANSWER_S: Final = 5.0
# The nodes log in to one another, and may everything: before they have elected a controller nobody
# has read the rules.
_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_NODE: Final = "node"
_LISTENERS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "HOP": "PLAINTEXT",
    "NODES": "SASL_PLAINTEXT",
    "CONTROLLER": "SASL_PLAINTEXT",
}
# Who may do what is a fault of its own; without a rule everybody may.
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": f"User:{_NODE}",
    "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in _LISTENERS.items()),
    "inter.broker.listener.name": "NODES",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    **{
        f"listener.name.{name}.plain.sasl.jaas.config": f'{_LOGIN} username="{_NODE}"'
        f' password="{_NODE}" user_{_NODE}="{_NODE}";'
        for name in ("nodes", "controller")
    },
}
# What docs/guarantees.md asks of a cluster: a record that is acknowledged lies on two nodes.
REPLICATED: Final = {"default.replication.factor": "3", "min.insync.replicas": "2"}


@dataclass(frozen=True, slots=True)
class Brokers:
    """Running brokers; `victims_servers` lead through the hop."""

    nodes: Sequence[Kafka]
    servers: str
    victims_servers: str
    hop: Proxy

    @property
    def log_dir(self) -> Path:
        """Segments of the first node.

        It has a copy of every partition, and what a `read_committed` reader has been given is in
        the log of each node that is in sync.
        """
        return self.nodes[0].log_dir


@contextmanager
def one_node(home: Path) -> Iterator[Brokers]:
    """A lone node."""
    port, controller = free_ports(2)
    lone = Node(controller_port=controller)
    node = Kafka(home, port, node=lone, properties=AUTHORIZER)
    with _with_hop([node]) as hop:
        try:
            node.start().wait_ready(READY_S)
            yield Brokers([node], node.bootstrap_servers, hop.addresses, hop)
        finally:
            node.stop()


@contextmanager
def three_nodes(home: Path, properties: Mapping[str, str] | None = None) -> Iterator[Brokers]:
    """Three nodes, replication 3, of which two have to have a record before it counts.

    `properties` are server properties that win over those here.
    """
    given = {**AUTHORIZER, **REPLICATED, **(properties or {})}
    cluster = KafkaNodes(home, nodes=3, properties=given)
    with _with_hop(cluster.nodes) as hop, cluster:
        yield Brokers(cluster.nodes, cluster.bootstrap_servers, hop.addresses, hop)


@contextmanager
def _with_hop(nodes: Sequence[Kafka]) -> Iterator[Proxy]:
    """Give each node, which has not started, a second door; a hop that leads there runs."""
    taken = [port for node in nodes for port in (node.port, node.node.controller_port)]
    ports = free_ports(3 * len(nodes), taken)
    ways = dict(zip(ports[::3], ports[1::3], strict=True))
    for node, (outside, behind), inside in zip(nodes, ways.items(), ports[2::3], strict=True):
        doors = {"PLAINTEXT": node.port, "HOP": behind, "NODES": inside}
        node.properties |= {
            "listeners": _listed({**doors, "CONTROLLER": node.node.controller_port}),
            "advertised.listeners": _listed({**doors, "HOP": outside}),
        }
    hop = Proxy(ways)
    hop.start()
    try:
        yield hop
    finally:
        hop.stop()


def _listed(listeners: dict[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in listeners.items())


def in_sync(admin: AdminClient, prefix: str = "") -> bool:
    """Whether each partition of these topics has all of its copies in sync, and a leader."""
    topics = admin.list_topics(timeout=ANSWER_S).topics
    partitions = [
        each
        for name, topic in topics.items()
        if name.startswith(prefix)
        for each in topic.partitions.values()
    ]
    return all(set(each.isrs) == set(each.replicas) and each.leader >= 0 for each in partitions)
