"""One fetch of record batches as they are, over connections of its own.

librdkafka unpacks what it fetches.  Where it cannot unpack a batch, the batch is fetched once more
here, packed.  Connections, TLS, SASL and the protocol's messages are aiokafka's, as for the group's
client.  For threads without an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    KafkaError,
    NoError,
    OffsetOutOfRangeError,
    for_code,
)
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition

from belfry.kafka.security import group_client_security

Where = tuple[str, int]
ASK_S: Final = 10.0
WAIT_MS: Final = 100
# The first batch comes whole, however large it is.
ANSWER_BYTES: Final = 1024 * 1024
READ_COMMITTED: Final = 1
_AWAY: Final = (KafkaError, IncompatibleBrokerVersion, OSError, NotImplementedError, ValueError)


class Fetched(NamedTuple):
    """Batches as they are stored, and the transactions among them that were rolled back."""

    data: bytes
    aborted: tuple[tuple[int, int], ...] = ()


class OffsetGone(Exception):
    """The log does not hold the offset."""


def fetch(properties: Mapping[str, Any], where: Where, offset: int) -> Fetched:
    """What lies at an offset and behind it, `read_committed`; `properties` are librdkafka's.

    Raises OffsetGone, or ConnectionError where no broker answers.
    """
    name = f"{where[0]}/{where[1]}"
    try:
        return asyncio.run(asyncio.wait_for(_fetch(properties, where, offset), ASK_S))
    except TimeoutError:
        raise ConnectionError(f"{name}: no answer within {ASK_S:.0f} s") from None
    except OffsetOutOfRangeError:
        raise OffsetGone(f"{name}: offset {offset} is out of range") from None
    except _AWAY as error:
        raise ConnectionError(f"{name}: {type(error).__name__}: {error}") from error


async def _fetch(properties: Mapping[str, Any], where: Where, offset: int) -> Fetched:
    client: Any = AIOKafkaClient(
        bootstrap_servers=str(properties["bootstrap.servers"]).split(","),
        client_id=str(properties.get("client.id", "belfry")),
        request_timeout_ms=int(ASK_S * 1000),
        **group_client_security(properties),
    )
    topic, partition = where
    try:
        await client.bootstrap()
        await client.set_topics({topic})
        leader = client.cluster.leader_for_partition(TopicPartition(topic, partition))
        if leader is None or leader < 0:
            raise ConnectionError(f"{topic}/{partition} has no leader")
        wanted = [(topic, [(partition, offset, ANSWER_BYTES)])]
        request = FetchRequest(WAIT_MS, 1, ANSWER_BYTES, READ_COMMITTED, wanted)
        return _told(await client.send(leader, request))
    finally:
        await client.close()


def _told(answer: Any) -> Fetched:
    """What an answer holds of the only partition that was asked for."""
    row = answer.topics[0][1][0]
    error = for_code(row[1])
    if error is not NoError:
        raise error
    # The replica that is to be preferred stands between them from version 11 on.
    aborted = row[-3 if answer.API_VERSION > 10 else -2]
    return Fetched(bytes(row[-1] or b""), tuple(aborted or ()))
