"""Appends a transaction's batches: to each leader its share, until all are acknowledged.

    12:00:00.000  Produce to broker 1: fired-a/0, changelog/3      Produce to broker 2: fired-b/1
    12:00:00.003  broker 1: both are appended
    12:00:00.004  broker 2: fired-b/1 NOT_LEADER_OR_FOLLOWER, broker 3 leads it since epoch 8
    12:00:00.004  Produce to broker 3: fired-b/1, the same batch with the same sequence
    12:00:00.007  broker 3: appended; all are acknowledged

If the broker does not name the leader, because it is gone or in protocol v1, the leader is looked
up after a pause. A broker that has just become the leader may not know that yet, and name the
former leader with an older epoch: then it is asked again soon (`kafka/moved_leaders.py`). A broker
that refuses and names no leader, because its disk is lost or the topic is not there, does not count
as the leader.

A batch is sent again with the producer id, epoch and sequence that it had. A broker that has the
batch already answers with its offset and appends nothing (idempotent producer, KIP-98), so a lost
answer does no harm.

Each partition answers for itself, so one that refuses does not keep others from appending. If a
transaction fails, its end rolls back the batches that were appended.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Final

from belfry.transactions import errors
from belfry.transactions.asking import Asker, Ended, Pauses, judge, named, now, refusals, tell_gone
from belfry.transactions.batches import ProducedBatch, Where, requests_of
from belfry.transactions.brokers import Brokers, Lost
from belfry.transactions.errors import Meaning
from belfry.transactions.produce import Produce, ProduceAdding

# Requests to one broker that are under way at once. A broker remembers as many batches of a
# producer in each partition, to know a repeat.
AT_ONCE: Final = 5


class Appender:
    """Appends the batches of one transactional id.

    It runs in the writers' event loop. With `own_epochs` partitions join the transaction by their
    first batch (KIP-890).
    """

    def __init__(self, brokers: Brokers, asker: Asker, name: str, *, own_epochs: bool) -> None:
        self._brokers = brokers
        self._asker = asker
        self._name = name
        self._own_epochs = own_epochs
        # The most bytes of a batch, for topics that have refused a larger one.
        self.limits: dict[str, int] = {}
        # Whether a broker has named a new leader since the last attempt.
        self._news = False

    async def append(self, batches: list[ProducedBatch], deadline: float) -> None:
        """Append all of these, or raise Ended.

        `deadline` is an instant of the loop's clock, in seconds. Batches get their offset and
        append time as they are acknowledged.
        """
        pauses, began = Pauses(deadline), now()
        left, self._news = batches, False
        while left := await self._attempt(left, deadline):
            codes = {batch.where: batch.code for batch in left}
            tell_gone(codes, began)
            line = judge(codes.values(), errors.of_partition)
            if line.meaning not in (Meaning.BUSY, Meaning.MOVED):
                self._note_sizes(left)
                raise Ended(line, refusals(codes, self._too_small(left)), "produce")
            if not await self._pause(pauses, left, line.meaning):
                late = line._replace(meaning=Meaning.ABORT)
                topics = named(codes, lambda code: code not in errors.BLAMES_NOBODY)
                raise Ended(late, topics, "produce: not in time")

    async def _pause(self, pauses: Pauses, left: list[ProducedBatch], meaning: Meaning) -> bool:
        """Wait before the next attempt, and look leaders up; False once the deadline has passed.

        If a broker has just named the leader, there is no wait and no question. That can happen
        once for each epoch, so the attempts end; and they end at the deadline, whatever brokers
        say.
        """
        news, self._news = self._news, False
        if meaning is Meaning.MOVED and news and pauses.lasts:
            return True
        moved = [each.where for each in left if _means(each) is Meaning.MOVED]
        if not all(self._brokers.is_told(where) for where in moved):
            if not await pauses.wait(meaning):
                return False
            if meaning is Meaning.MOVED:
                await self._brokers.refresh({each.where[0] for each in left})
            return True
        # The named leader has not learned yet that it leads.
        return await pauses.wait(Meaning.BUSY)

    async def _attempt(self, batches: list[ProducedBatch], deadline: float) -> list[ProducedBatch]:
        """Send these to their leaders, in parallel; returns those that were not appended."""
        shares: defaultdict[int, list[ProducedBatch]] = defaultdict(list)
        for batch in batches:
            leader = self._brokers.leader_of(batch.where)
            if leader is not None:
                batch.code = errors.LOST
                shares[leader].append(batch)
            else:
                known = self._brokers.partitions_of(batch.where[0])
                batch.code = errors.NOBODY if known else errors.UNKNOWN_TOPIC
        sends = [self._to_leader(node, share, deadline) for node, share in shares.items()]
        if len(sends) == 1:
            await sends[0]
        else:
            await asyncio.gather(*sends)
        return _told([batch for batch in batches if batch.code != errors.NONE])

    async def _to_leader(self, node: int, batches: list[ProducedBatch], deadline: float) -> None:
        """Send a leader its share: the first batch of each partition, and then the others.

        A log that does not know a producer yet takes any sequence. So the batches behind the first
        one must wait until that was appended, or the log could take them without it.
        """
        first: dict[Where, ProducedBatch] = {}
        for batch in batches:
            first.setdefault(batch.where, batch)
        await self._pipelined(node, list(first.values()), deadline)
        if len(first) == len(batches):
            return
        taken = {where for where, batch in first.items() if batch.code == errors.NONE}
        others = [each for each in batches if each.code != errors.NONE and each.where in taken]
        if others:
            await self._pipelined(node, others, deadline)

    async def _pipelined(self, node: int, batches: list[ProducedBatch], deadline: float) -> None:
        """Send these, a few requests at a time; connections keep their order."""
        requests = requests_of(batches)
        if len(requests) == 1:
            await self._produce(node, requests[0], deadline)
            return
        slots = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for some in requests:
                await slots.acquire()
                task = group.create_task(self._produce(node, some, deadline))
                task.add_done_callback(lambda _: slots.release())

    async def _produce(self, node: int, batches: list[ProducedBatch], deadline: float) -> None:
        """Send one request, and note each partition's answer; LOST stays if there is none."""
        kind = ProduceAdding if self._own_epochs else Produce
        left_ms = max(int((deadline - now()) * 1000), 1)
        try:
            answer = await self._asker.send(node, kind(self._name, left_ms, batches), deadline)
        except Lost:
            for batch in batches:
                self._brokers.doubt(batch.where, node)
            return
        for where, (leader, epoch) in answer.leaders.items():
            self._news |= self._brokers.tell_leader(where, leader, epoch)
        by_place = {batch.where: batch for batch in batches}
        for topic, partition, code, offset, appended_ms in answer.answers:
            batch = by_place[topic, partition]
            batch.code, batch.offset, batch.appended_ms = code, offset, appended_ms
            if code and (topic, partition) not in answer.leaders and _means(batch) is Meaning.MOVED:
                self._brokers.doubt(batch.where, node)

    def _note_sizes(self, batches: list[ProducedBatch]) -> None:
        """Remember topics that need smaller batches than they were sent."""
        for batch in self._too_small(batches):
            self.limits[batch.where[0]] = max(len(batch.data) // 2, 1)

    @staticmethod
    def _too_small(batches: list[ProducedBatch]) -> list[ProducedBatch]:
        """Batches that were refused for their size, and can be divided."""
        return [each for each in batches if each.code in errors.TOO_LARGE and each.records > 1]


def _means(batch: ProducedBatch) -> Meaning:
    return errors.of_partition(batch.code).meaning


def _told(batches: list[ProducedBatch]) -> list[ProducedBatch]:
    """The same, where batches behind one that was not appended get the error of that one."""
    first: dict[Where, int] = {}
    for batch in batches:
        code = first.setdefault(batch.where, batch.code)
        if batch.code in _FOLLOWS:
            batch.code = code
    return batches


# OUT_OF_ORDER_SEQUENCE_NUMBER and a lost answer: both follow from the error of the first batch.
_FOLLOWS: Final = (45, errors.LOST)
