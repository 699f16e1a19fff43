"""The rights that an authorizer has to give: to workers, to a tenant, to a sink of Kafka Connect.

The rights are data. `belfry acls` prints them as commands and as a KafkaUser, the chart and the
table in docs/tenants.md are made from them, and a test gives a worker exactly these.

    worker   topics of the prefix     READ WRITE DESCRIBE DESCRIBE_CONFIGS
             group, and those below   READ
             transactional ids        WRITE, which includes DESCRIBE
    tenant   its input topic          WRITE DESCRIBE
             its output topic         READ DESCRIBE, in groups of its own
             its dead letters         the same

Only principals that create topics or look at others' transactions need rights on the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from belfry.tenants.topic_names import LETTERS

TOPIC: Final = "topic"
GROUP: Final = "group"
TRANSACTIONAL_ID: Final = "transactional-id"
CLUSTER: Final = "cluster"
EVERY: Final = "*"
# A client without a group still names one; it commits nothing, and the name is the same everywhere.
READERS_GROUP: Final = "belfry-reads-without-a-group"
_STRIMZI_KINDS: Final = {TRANSACTIONAL_ID: "transactionalId"}


class Right(NamedTuple):
    """Allowed operations on a resource.

    `kind` is one of the four above, `name` that of the resource, or the start of all names of a
    `prefixed` right. `operations` are spelt as in Kafka's tool, such as ``DescribeConfigs``. `why`
    says in a few words what they are for.
    """

    kind: str
    name: str
    prefixed: bool
    operations: tuple[str, ...]
    why: str


class Options(NamedTuple):
    """Work of workers besides their main job, which needs more rights.

    `creates_topics`: they make missing topics. `names_transactions`: they name the transaction that
    holds them back. `output_topics` are those that policies name.
    """

    creates_topics: bool = False
    names_transactions: bool = False
    output_topics: tuple[str, ...] = ()


MAIN_JOB: Final = Options()


def worker_rights(prefix: str, app_id: str, options: Options = MAIN_JOB) -> list[Right]:
    """The rights of a worker whose topics begin with `prefix` and whose group is `app_id`."""
    made = ("Create",) if options.creates_topics else ()
    in_topics = ("Read", "Write", "Describe", "DescribeConfigs", *made)
    found = [
        Right(TOPIC, prefix, True, in_topics, "requests, state, events and outcomes"),
        Right(GROUP, app_id, False, ("Read",), "workers share the partitions as one group"),
        Right(GROUP, f"{app_id}.", True, ("Read",), "positions in further topics"),
        Right(GROUP, READERS_GROUP, False, ("Read",), "reads that commit nothing"),
        Right(TRANSACTIONAL_ID, f"{app_id}.", True, ("Write",), "exactly once"),
    ]
    outside = [name for name in options.output_topics if not name.startswith(prefix)]
    for name in outside:
        operations = ("Write", "Describe", *made)
        found.append(Right(TOPIC, name, False, operations, "an output topic that a policy names"))
    if options.names_transactions:
        why = "names whose transaction stays open"
        found.append(Right(CLUSTER, "", False, ("Describe",), why))
        found.append(Right(TRANSACTIONAL_ID, EVERY, False, ("Describe",), why))
    return found


def tenant_rights(prefix: str, tenant: str, *, shared: bool = False) -> list[Right]:
    """The rights of a tenant with an input topic of its own; `shared` adds the shared output.

    A principal that may read the shared output reads the events of all tenants on it.
    """
    write, read = ("Write", "Describe"), ("Read", "Describe")
    return [
        Right(TOPIC, f"{prefix}schedules.{tenant}", False, write, "its requests"),
        Right(TOPIC, f"{prefix}fired.{tenant}", False, read, "its events"),
        Right(TOPIC, f"{prefix}{LETTERS}.{tenant}", False, read, "its dead letters"),
        *_shared_output(prefix, shared=shared),
        Right(GROUP, f"{tenant}.", True, ("Read",), "its consumers' groups"),
    ]


def sink_rights(
    prefix: str, connector: str, tenants: Iterable[str], *, shared: bool = False
) -> list[Right]:
    """The rights of a sink of Kafka Connect that reads these tenants' events, or those of all
    tenants that share an output.
    """
    topics = [
        Right(TOPIC, f"{prefix}fired.{tenant}", False, ("Read", "Describe"), f"events of {tenant}")
        for tenant in tenants
    ]
    group = Right(GROUP, f"connect-{connector}", False, ("Read",), "the group that Connect gives")
    return [*topics, *_shared_output(prefix, shared=shared), group]


def _shared_output(prefix: str, *, shared: bool) -> list[Right]:
    """The right to read the shared output, if it is wanted."""
    why = "events of all tenants that share an output"
    return [Right(TOPIC, f"{prefix}fired", False, ("Read", "Describe"), why)] if shared else []


def commands(rights: Iterable[Right], user: str, servers: str) -> Iterator[str]:
    """A command of Kafka's own tool for each right.

    A command may be run again: it does no harm if the right is there. `servers` go into each line.
    """
    for each in rights:
        operations = " ".join(f"--operation {name}" for name in each.operations)
        yield (
            f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal"
            f" {_quoted(f'User:{user}')} {operations} {_resource(each)}"
        )


def strimzi(rights: Iterable[Right]) -> list[dict[str, Any]]:
    """The rights as `spec.authorization.acls` of a KafkaUser."""
    return [_strimzi(each) for each in rights]


def kafka_user(rights: Iterable[Right], user: str, cluster: str) -> dict[str, Any]:
    """The whole KafkaUser, for a Kafka resource of this name."""
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaUser",
        "metadata": {"name": user, "labels": {"strimzi.io/cluster": cluster}},
        "spec": {
            "authentication": {"type": "scram-sha-512"},
            "authorization": {"type": "simple", "acls": strimzi(rights)},
        },
    }


def table(rows: Iterable[tuple[str, Iterable[Right]]]) -> str:
    """The rights as a table for people, by principal."""
    lines = ["| who | may | on | for |", "|---|---|---|---|"]
    for who, rights in rows:
        for each in rights:
            may = ", ".join(f"`{name}`" for name in each.operations)
            lines.append(f"| {who} | {may} | {_told(each)} | {each.why} |")
    return "\n".join(lines)


def _resource(right: Right) -> str:
    """The resource as options of Kafka's tool."""
    if right.kind == CLUSTER:
        return "--cluster"
    pattern = " --resource-pattern-type prefixed" if right.prefixed else ""
    return f"--{right.kind} {_quoted(right.name)}{pattern}"


def _strimzi(right: Right) -> dict[str, Any]:
    """One rule of a KafkaUser."""
    resource: dict[str, Any] = {"type": _STRIMZI_KINDS.get(right.kind, right.kind)}
    if right.kind != CLUSTER:
        pattern = "prefix" if right.prefixed else "literal"
        resource |= {"name": right.name, "patternType": pattern}
    return {"resource": resource, "operations": list(right.operations)}


def _told(right: Right) -> str:
    """The resource in words, for a table."""
    if right.kind == CLUSTER:
        return "the cluster"
    kind = right.kind.replace("-", " ")
    return f"{kind} `{right.name}`{', and all that begin so' if right.prefixed else ''}"


def _quoted(text: str) -> str:
    """Quote a text for a shell, which would expand a star; names have no quotes in them."""
    return f"'{text}'" if "*" in text or " " in text else text
