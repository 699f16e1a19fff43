"""A Kafka node in KRaft mode, broker and controller in one process: alone, or one of several.

The defaults make a node that is a whole cluster: every internal topic has one replica and a few
partitions, groups form without delay, and short sessions are allowed so that tests of failure
need not wait.

A quorum is static (``controller.quorum.voters``). So the controller's port of a lone node may
differ from start to start, and a port that was taken meanwhile does no harm.

`kafka_nodes.py` joins several of them.
"""

from __future__ import annotations

import base64
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from belfry.devstack.artifacts import kafka_jars
from belfry.devstack.child import Child
from belfry.devstack.class_cache import class_cache_options
from belfry.devstack.errors import DevStackError
from belfry.devstack.java import java
from belfry.devstack.ports import LOOPBACK, free_port
from belfry.devstack.service import JavaService

# Seconds for Kafka's storage tool, which prepares a new data directory.
FORMAT_TIMEOUT_S = 60
# Seconds for one question whether a node answers; it is asked again until it does.
METADATA_TIMEOUT_S = 2.0
# Server properties of a node that is a cluster by itself.
LONE_NODE = {
    # A killed node is let in again only when its former session has passed, which takes 9 s by
    # default.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    # There is no other node to take its partitions.  If it tries to hand them over, they have no
    # leader for a moment, in which Kafka 4.3 may end transactions without their markers
    # (KAFKA-20734).
    "controlled.shutdown.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
# Server properties of every node here: little memory and disk, quick groups.
SMALL = {
    "auto.create.topics.enable": "false",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # The default, 128 MiB of heap, would be a quarter of the heap here.
    "log.cleaner.dedupe.buffer.size": str(32 * 1024 * 1024),
    # Each partition maps two indexes of this size from its first record on: 10 MiB by default.
    "log.index.size.max.bytes": str(1024 * 1024),
    "num.partitions": "1",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
}


def not_formatted(ended: bool, log: Path) -> str:  # whether the tool ended
    """Why Kafka's tool has not prepared a directory, with its output if there is any."""
    said = log.read_text("utf-8", errors="replace").strip() if log.exists() else ""
    why = (
        "its tool ended with an error."
        if ended
        else f"its tool was not done within {FORMAT_TIMEOUT_S} s. Try again where less is running."
    )
    return f"{why}\n{said}" if said else f"{why} It said nothing."


def new_cluster_id() -> str:
    """A fresh cluster id in Kafka's own form: 16 random bytes, URL-safe base64, no padding."""
    while True:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # Kafka's tools take a leading dash for an option, and Kafka never makes such an id.
        if not cluster_id.startswith("-"):
            return cluster_id


@dataclass(frozen=True)
class Node:
    """A place in a cluster; the default is a cluster of one.

    Several nodes share ``cluster_id`` and ``voters`` (``1@127.0.0.1:5001,2@...``), and each has
    its own ``node_id`` and the ``controller_port`` named for it there.
    """

    node_id: int = 1
    controller_port: int = 0
    voters: str = ""
    cluster_id: str = ""


class Kafka(JavaService):
    """A Kafka node whose topics and cluster id outlive it in ``data_dir``.

    `start`, `wait_ready`, `stop` and `kill` are those of `JavaService`. Clients connect without
    security, from this machine alone.
    """

    name = "kafka"

    def __init__(
        self,
        data_dir: Path,
        port: int = 0,
        heap_mb: int = 512,
        *,
        node: Node = Node(),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """``properties`` are server properties that win over those of this module."""
        super().__init__(data_dir, port, heap_mb)
        self.node = node
        self.properties = dict(properties or {})

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def log_dir(self) -> Path:
        """Directory of the partitions' segments."""
        return self.data_dir / "log"

    @property
    def cluster_id(self) -> str:
        """Id of the cluster this data directory belongs to; known once it was started."""
        lines = (self.log_dir / "meta.properties").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]

    def _command(self) -> list[str]:
        config = self._write_config()
        if not (self.log_dir / "meta.properties").exists():
            self._format(config)
        return [*self._java(f"-Xms{self.heap_mb}m"), "kafka.Kafka", str(config)]

    def _answers(self) -> bool:
        """Whether this node is among the brokers of the cluster's metadata."""
        if not _accepts(self.port):
            return False
        # Imported here: asking needs the client library, building a command line does not.
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        try:
            brokers = admin.list_topics(timeout=METADATA_TIMEOUT_S).brokers
        except KafkaException:
            return False
        mine = brokers.get(self.node.node_id)
        return mine is not None and mine.port == self.port

    def _java(self, *options: str) -> list[str]:
        fixed = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Dlog4j2.level=INFO")
        jars = kafka_jars()
        known = class_cache_options(jars)
        return java(self.heap_mb, self.temp_dir, *fixed, *known, *options, "-cp", str(jars / "*"))

    def _format(self, config: Path) -> None:
        """Make a new data directory a Kafka one, with Kafka's own tool; it takes a second or
        two.
        """
        cluster_id = self.node.cluster_id or new_cluster_id()
        tool = [*self._java("-XX:TieredStopAtLevel=1"), "kafka.tools.StorageTool", "format"]
        what = [f"--cluster-id={cluster_id}", f"--config={config}", "--ignore-formatted"]
        log = self.log_file.with_name("format.log")
        child = Child([*tool, *what], log=log)
        ended = child.wait(FORMAT_TIMEOUT_S)
        if not ended or child.exit_code() != 0:
            child.kill()
            raise DevStackError(
                f"The data directory {self.data_dir} could not be prepared for Kafka:"
                f" {not_formatted(ended, log)}"
            )

    def _write_config(self) -> Path:
        """Write the server properties anew, because each start may have another controller port."""
        config = self.data_dir / "server.properties"
        lines = [f"{key}={value}\n" for key, value in self._server_properties().items()]
        config.write_text("".join(lines), "utf-8")
        return config

    def _server_properties(self) -> dict[str, str]:
        """All properties of the node; those of the caller win."""
        controller = self.node.controller_port or free_port(avoid=[self.port])
        voters = self.node.voters or f"{self.node.node_id}@{LOOPBACK}:{controller}"
        place = {
            "process.roles": "broker,controller",
            "node.id": str(self.node.node_id),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": f"PLAINTEXT://{LOOPBACK}:{self.port},CONTROLLER://{LOOPBACK}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{self.port}",
            "log.dirs": str(self.log_dir),
        }
        replicas = {} if self.node.voters else LONE_NODE
        return {**replicas, **SMALL, **place, **self.properties}


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True
