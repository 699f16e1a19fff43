"""The start of a writer of transactions: connections that know the changelog, then its ids.

    connected   the brokers are known, and the leaders of the changelog
    fenced      all transactional ids of the partition are this writer's; a former owner is refused

Both are coroutines of the loop of requests. A take-over runs one after the other; a standby has
connected long before it fences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from belfry.kafka.client_properties import transactional_ids
from belfry.transactions.alternating import AlternatingWriter
from belfry.transactions.brokers import BrokerConnections, Lost
from belfry.transactions.writer import TransactionWriter

CONNECT_S: Final = 10.0
DEFAULT_TIMEOUT_MS: Final = 60_000
_TIMEOUT: Final = "transaction.timeout.ms"


async def connected(cluster: BrokerConnections, changelog: str) -> None:
    """Connect, and learn of the changelog; ConnectionError if the topic is not there."""
    await cluster.start()
    try:
        await cluster.know([changelog], CONNECT_S)
    except Lost as error:
        raise ConnectionError(str(error)) from error
    if not cluster.partitions_of(changelog):
        raise ConnectionError(f"{changelog}: it is not there")


async def fenced(
    cluster: BrokerConnections, properties: Mapping[str, Any], in_turn: int
) -> AlternatingWriter:
    """Fence the writer that had the transactional ids; `in_turn` of them write. Raises Ended."""
    timeout_ms = int(properties.get(_TIMEOUT, DEFAULT_TIMEOUT_MS))
    own_epochs = await cluster.gives_own_epochs()
    writers = [
        TransactionWriter(cluster, name, timeout_ms, own_epochs=own_epochs)
        for name in transactional_ids(properties)
    ]
    writer = AlternatingWriter(writers, in_turn)
    await writer.begin()
    return writer
