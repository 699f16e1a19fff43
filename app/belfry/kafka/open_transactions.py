"""The open transactions of a partition: their producers, their begin, and the way to end them.

A reader of committed records stops at the first transaction that is open: at the partition's *last
stable offset*. The brokers know the producer that holds it back: the leader has the producer's id
and the begin of its transaction, a coordinator has its transactional id. If no coordinator knows
the producer, the transaction hangs (it will not end by itself), or belongs to a producer that this
principal may not see.

    DescribeProducers    leader of belfry.changelog/3   producer 4711, epoch 2, open from 100 on
    ListTransactions     each broker                    4711 is "billing-7" at broker 2
    DescribeTransactions broker 2                       Ongoing, begun 12:00:00, time-out 900 s
    reported             "a stranger: transactional id 'billing-7', … open … from offset 100 on"

The requests are those of KIP-664, and take a right of the cluster that workers need not have.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from belfry.host.errors import named
from belfry.kafka.fetch_position import Where
from belfry.kafka.holders import OpenTransaction, Untold
from belfry.kafka.security import group_client_security
from belfry.kafka.transaction_requests import (
    DescribeProducers,
    DescribeTransactions,
    ListTransactions,
)

ASK_S: Final = 5.0


def look_up(properties: dict[str, Any], places: Sequence[Where]) -> list[OpenTransaction]:
    """The open transactions of these partitions, the first of each partition first.

    `properties` are librdkafka's.  Asks over connections of its own; for threads without an event
    loop. Raises Untold if the brokers refuse, do not know the requests (before Kafka 3.0), or do
    not answer within `ASK_S`.
    """
    try:
        return asyncio.run(asyncio.wait_for(_ask(properties, places), ASK_S))
    except TimeoutError:
        raise Untold(f"no answer within {ASK_S:.0f} s") from None
    except (KafkaError, OSError, NotImplementedError, ValueError) as error:
        raise Untold(named(error)) from error


async def _ask(properties: dict[str, Any], places: Sequence[Where]) -> list[OpenTransaction]:
    """Ask leaders and coordinators over one client, which is closed at the end."""
    client = AIOKafkaClient(
        bootstrap_servers=properties["bootstrap.servers"],
        client_id="belfry-transactions",
        request_timeout_ms=int(ASK_S * 1000),
        **group_client_security(properties),
    )
    try:
        await client.bootstrap()
        await client.set_topics({topic for topic, _ in places})
        found = [each async for each in _in_partitions(client, places)]
        found.sort(key=lambda each: (each.topic, each.partition, each.start_offset))
        return await _with_names(client, found)
    finally:
        await client.close()


async def _in_partitions(client: Any, places: Sequence[Where]) -> Any:
    """Open transactions of partitions, asked of their leaders; raises Untold without a leader."""
    asked: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for topic, partition in places:
        leader = client.cluster.leader_for_partition(TopicPartition(topic, partition))
        if leader is None or leader < 0:
            raise Untold(f"{topic}/{partition} has no leader")
        asked[leader, topic].append(partition)
    for (leader, topic), partitions in asked.items():
        answer = await client.send(leader, DescribeProducers(topic, partitions))
        for name, told, _ in answer.topics:
            for each in _open_in(name, told):
                yield each


def _open_in(topic: str, partitions: Iterable[Any]) -> Iterable[OpenTransaction]:
    """Open transactions in the answer of one leader."""
    for partition, code, message, producers, _ in partitions:
        if code:
            raise Untold(f"{topic}/{partition}: error {code} {message or ''}".rstrip())
        for producer_id, epoch, _, last_ms, _, start, _ in producers:
            if start >= 0:
                yield OpenTransaction(topic, partition, start, producer_id, epoch, last_ms)


async def _with_names(client: Any, found: list[OpenTransaction]) -> list[OpenTransaction]:
    """The same with transactional ids and states, if a coordinator tells them.

    Each broker is asked, since a producer's id does not say which broker coordinates it.
    """
    if not found:
        return found
    ids = sorted({each.producer_id for each in found})
    known: dict[int, tuple[str, str, int, int]] = {}
    for broker in client.cluster.brokers():
        listed = await client.send(broker.nodeId, ListTransactions(ids))
        if listed.error_code:
            raise Untold(f"broker {broker.nodeId}: error {listed.error_code}")
        names = [name for name, _, _, _ in listed.transactions]
        if not names:
            continue
        told = await client.send(broker.nodeId, DescribeTransactions(names))
        for code, name, state, timeout_ms, start_ms, producer_id, _, _, _ in told.transactions:
            if not code:
                known[producer_id] = (name, state, start_ms, timeout_ms)
    return [_named(each, known.get(each.producer_id)) for each in found]


def _named(
    transaction: OpenTransaction, known: tuple[str, str, int, int] | None
) -> OpenTransaction:
    """A transaction with the facts that its coordinator has."""
    if known is None:
        return transaction
    name, state, start_ms, timeout_ms = known
    return replace(
        transaction,
        transactional_id=name,
        state=state,
        started_ms=start_ms if start_ms > 0 else None,
        timeout_ms=timeout_ms,
    )
