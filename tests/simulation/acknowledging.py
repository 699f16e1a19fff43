"""What a leader answers to the direct writer's Produce: with acks=all, once all replicas have it.

    Produce ─► appended at the leader ─► on all replicas: the answer
                                     └─► lost by an election: NOT_LEADER_OR_FOLLOWER
                                     └─► not in time: REQUEST_TIMED_OUT, and it may lie there

With acks=1 the answer comes at once, whatever becomes of the batch.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from belfry.transactions.produce import Answered, ProduceAnswer
from tests.simulation.broker import Broker
from tests.simulation.replication import LOOK_MS, Replicas

FINE, NOT_LEADER, TIMED_OUT = 0, 6, 7
ACKS_OF_ALL: Final = -1


async def acknowledged(broker: Broker, request: Any, answer: ProduceAnswer) -> None:
    """Wait until all replicas have what was appended, or it is known that they never will."""
    if broker.cluster is None or acks_of(request) != ACKS_OF_ALL:
        return
    loop = asyncio.get_running_loop()
    until_s = loop.time() + request._fields[1] / 1000
    sizes = {batch.where: batch.records for batch in request.batches}
    waits: dict[int, tuple[Replicas, int, int]] = {}
    for at, (topic, partition, code, offset, _) in enumerate(answer.answers):
        replicas = broker.log(topic, partition).replicas if code == FINE else None
        if replicas is not None:
            last = offset + sizes[topic, partition] - 1
            waits[at] = replicas, last, len(replicas.cuts)
    while waits:
        for at, (replicas, last, elections) in list(waits.items()):
            lost = replicas.is_lost(last, elections)
            if not lost and replicas.high > last:
                del waits[at]
            elif lost or loop.time() >= until_s:
                answer.answers[at] = _refused(answer.answers[at], NOT_LEADER if lost else TIMED_OUT)
                del waits[at]
        if waits:
            await asyncio.sleep(LOOK_MS / 1000)


def _refused(answered: Answered, code: int) -> Answered:
    return (*answered[:2], code, -1, -1)


def acks_of(request: Any) -> int:
    """The acks that a Produce asks for, read from its bytes: they stand behind a short name."""
    data = request.prepare({request.API_KEY: (0, 99)}).encode()
    return int.from_bytes(data[data[0] : data[0] + 2], signed=True)
