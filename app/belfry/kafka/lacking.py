"""Rights that a worker with these properties lacks, by the answers of the brokers.

Brokers tell each client its rights to a topic and to a group (KIP-430), and refuse to describe a
transactional id to a client that has no right to it. So the check tries nothing out, and writes
nothing:

    topics             Metadata with its authorized operations, of all topics that are belfry's own
    groups             DescribeGroups with the same, of one group for each right
    transactional ids  DescribeTransactions, of one id; the right Write includes Describe

    wanted on belfry.*      Read Write Describe DescribeConfigs
    belfry.schedules        Read Write Describe DescribeConfigs       nothing is lacking
    belfry.changelog        Read Describe                             Write and DescribeConfigs are
    reported                one sentence, and the command of kafka-acls.sh that grants these two

Without an authorizer brokers allow everything, and nothing is lacking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError as ClientError
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from belfry.kafka.denials import denial, user_of
from belfry.kafka.rights import GROUP, TOPIC, TRANSACTIONAL_ID, Right, worker_rights
from belfry.kafka.security import group_client_security
from belfry.kafka.topics import wanted_topics
from belfry.kafka.transaction_requests import DescribeTransactions
from belfry.settings import SharedSettings

# Seconds for one answer of the brokers.
ASK_S: Final = 5.0
# Errors by which a broker says that a right is missing.
NOT_LET: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
# TRANSACTIONAL_ID_AUTHORIZATION_FAILED of Kafka's protocol.
_ID_DENIED: Final = 53


class Lacking(NamedTuple):
    """The missing part of a right: `problem` names it, `cure` is the command that grants it."""

    problem: str
    cure: str
    hides: tuple[str, ...] = ()
    """Topics that cannot be told from topics that are not there."""


def missing_rights(admin: AdminClient, settings: SharedSettings) -> Iterator[Lacking]:
    """The rights of a worker's main job that the principal of these settings lacks.

    Each right is asked for when the caller wants the next one. A right that the brokers do not tell
    counts as given, so that a cluster without an authorizer lacks nothing. Blocks; nothing is
    written.
    """
    properties, servers = settings.kafka_properties(), settings.bootstrap_servers
    user = user_of(properties)
    for right in worker_rights(settings.cluster.topic_prefix, settings.cluster.app_id):
        allowed = _allowed(admin, properties, settings, right)
        denied = {name: _left(right.operations, given) for name, given in allowed.items()}
        denied = {name: left for name, left in denied.items() if left}
        if denied:
            operations = tuple(
                each for each in right.operations if any(each in left for left in denied.values())
            )
            lacks = right._replace(operations=operations)
            problem, cure = denial(user, lacks, [*denied], servers)
            hidden = [name for name, left in denied.items() if "Describe" in left]
            yield Lacking(problem, cure, tuple(hidden) if right.kind == TOPIC else ())


def _left(wanted: Iterable[str], given: frozenset[str]) -> list[str]:
    """Operations that are wanted but not given."""
    return [operation for operation in wanted if operation not in given]


def _allowed(
    admin: AdminClient, properties: dict[str, Any], settings: SharedSettings, right: Right
) -> dict[str, frozenset[str]]:
    """The allowed operations on the resources of a right, if the brokers tell them."""
    if right.kind == TOPIC:
        names = [spec.name for spec in wanted_topics(settings, 1)]
        asked = admin.describe_topics(
            TopicCollection(names), include_authorized_operations=True, request_timeout=ASK_S
        )
        return dict(_told(asked))
    name = f"{right.name}0" if right.prefixed else right.name
    if right.kind == GROUP:
        groups = admin.describe_consumer_groups(
            [name], include_authorized_operations=True, request_timeout=ASK_S
        )
        return dict(_told(groups))
    if right.kind == TRANSACTIONAL_ID and _id_denied(properties, name):
        return {name: frozenset()}
    return {}


def _told(answers: dict[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    """The brokers' answer for each name; a refusal counts as no operation."""
    for name, answer in answers.items():
        try:
            operations = answer.result(ASK_S).authorized_operations
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, KafkaException) and error.args[0].code() in NOT_LET:
                yield name, frozenset()
            continue
        if operations is not None:
            yield name, frozenset(_words(each.name) for each in operations)


def _words(operation: str) -> str:
    """``DESCRIBE_CONFIGS`` as Kafka's own tool spells it, ``DescribeConfigs``."""
    return "".join(part.title() for part in operation.split("_"))


def _id_denied(properties: dict[str, Any], name: str) -> bool:
    """Whether a transactional id is denied; False without an answer."""
    try:
        return asyncio.run(asyncio.wait_for(_asked(properties, name), ASK_S)) == _ID_DENIED
    except (ClientError, OSError, NotImplementedError, ValueError, TimeoutError):
        return False


async def _asked(properties: dict[str, Any], name: str) -> int:
    """The error code of a broker's answer about a transactional id."""
    client = AIOKafkaClient(
        bootstrap_servers=properties["bootstrap.servers"],
        client_id="belfry-rights",
        request_timeout_ms=int(ASK_S * 1000),
        **group_client_security(properties),
    )
    try:
        await client.bootstrap()
        # A broker checks rights before it says which broker coordinates the id.
        told = await client.send(client.get_random_node(), DescribeTransactions([name]))
        return int(told.transactions[0][0])
    finally:
        await client.close()


def may_not_create(settings: SharedSettings) -> str:
    """The text if topics may not be created, with the command that grants it."""
    user, prefix = user_of(settings.kafka_properties()), settings.cluster.topic_prefix
    right = Right(TOPIC, prefix, True, ("Create",), "")
    problem, cure = denial(user, right, [f"{prefix}…"], settings.bootstrap_servers)
    return f"{problem}. Grant it: {cure}"
