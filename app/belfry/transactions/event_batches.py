"""Fired events as record batches: the records of thousands of events, in one loop.

Most records of a step are fired events, and those of one topic have nearly all of their headers in
common. So the common headers are encoded once, and an event adds its own bytes:

    length number │ key │ value │ 6 headers: fire id, schedule id │ instant, tenant, version, …
    ◄──────────── of each event ───────────────────────────────► │◄── as in the event before

The next event may have other headers: on a topic that tenants share, or at another instant. Most
headers occur in many events, so each is encoded once a step.

Besides joining these pieces, a record only costs the partition of its key, by librdkafka's own
function. Records are not copied until their batch is finished (`joined_batch.py`).

If an event begins with other headers (those of its user), it is encoded header by header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from belfry.engine.effects import Fired
from belfry.transactions.batches import Filling, Where
from belfry.transactions.joined_batch import LENGTH_BYTES, JoinedBatch
from belfry.transactions.record_bytes import (
    LOOKED_UP,
    NO_ATTRIBUTES,
    SMALL,
    EncodedHeaders,
    numbered_anew,
    record_body,
    sized,
    varint,
)
from belfry.wire.headers import FIRE_ID
from belfry.wire.record import Headers

SCHEDULE_ID: Final = "belfry-schedule-id"
_BEGIN: Final = sized(FIRE_ID.encode())
_THEN: Final = sized(SCHEDULE_ID.encode())


class _Output:
    """An output topic in a step: its open batches by partition, and headers of the event before."""

    __slots__ = ("begin", "end", "grouped", "keyed", "open", "same")

    def __init__(self, batches: list[JoinedBatch]) -> None:
        self.open = batches
        # The number of partitions for keys, and for groups: 0 until a key or a group is met.
        self.keyed = len(batches)
        self.grouped = 0
        # All headers but the first two, with their bytes; and the bytes before the fire id.
        self.same: Headers | None = None
        self.begin = self.end = b""

    def learn(self, headers: Headers, encoded: EncodedHeaders) -> bool:
        """Remember headers that the next events may have as well; False if they begin otherwise.

        The first two are the event's own: its id, and that of its schedule. `encoded` has all other
        headers that the step has met: tenants differ in few of theirs.
        """
        same = headers[2:]
        if not same or headers[0][0] != FIRE_ID or headers[1][0] != SCHEDULE_ID:
            return False
        self.same = same
        self.begin = SMALL[len(headers)] + _BEGIN
        self.end = b"".join(map(encoded.__getitem__, same))
        return True


class Counts(NamedTuple):
    """The number of a topic's partitions, which two parts of a worker learn at different times.

    Keys go by the writer's metadata, which may be minutes old. Groups go by the look at all output
    topics, which is a few seconds old: their order is promised, and their writers have to agree
    soon.
    """

    of_keys: Callable[[str], int]
    of_groups: Callable[[str], int]


class EventBatches:
    """The batches of one step's fired events, by topic and partition.

    `now_ms` is the time of all records, epoch ms. `most_of` gives the most bytes of a batch of a
    topic, and `counts` the numbers of its partitions; each is called once for a topic.
    `partition_of` gives the partition of a key, among a number of partitions.
    """

    def __init__(
        self,
        now_ms: int,
        most_of: Callable[[str], int],
        counts: Counts,
        partition_of: Callable[[bytes, int], int],
    ) -> None:
        self._now_ms = now_ms
        self._most_of = most_of
        self._counts = counts
        self._partition_of = partition_of
        self._outputs: dict[str, _Output] = {}
        self._encoded = EncodedHeaders()
        self._full: dict[Where, list[Filling]] = {}

    def add(self, fired: Iterable[Fired]) -> None:
        """Put events behind those that their partitions already get.

        The partition is that of the group, if there is one, else of the key. Errors of `counts` are
        raised: the step cannot be written then.
        """
        outputs, partition_of, small, join = self._outputs, self._partition_of, SMALL, b"".join
        encoded = self._encoded
        for topic, key, group, value, headers in fired:
            output = outputs.get(topic)
            if output is None:
                output = outputs[topic] = self._output(topic)
            if group is None:
                partition = partition_of(key, output.keyed)
            else:
                partition = partition_of(group, output.grouped or self._group(topic, output))
            batch = output.open[partition]
            number = batch.count
            if headers[2:] != output.same and not output.learn(headers, encoded):
                body = record_body(number, key, value, headers)
            else:
                # Typed so, because neither of them is ever null.
                first: Any = headers[0]
                second: Any = headers[1]
                if (
                    value is None
                    or number + len(key) + len(value) >= LOOKED_UP
                    or first[0] != FIRE_ID
                    or second[0] != SCHEDULE_ID
                ):
                    body = record_body(number, key, value, headers)
                else:
                    identity, schedule_id = first[1], second[1]
                    body = join(
                        (NO_ATTRIBUTES, small[number], small[len(key)], key,
                         small[len(value)], value, output.begin, small[len(identity)], identity,
                         _THEN, small[len(schedule_id)], schedule_id, output.end)
                    )  # fmt: skip
            size = len(body)
            if size + LENGTH_BYTES > batch.room and number:
                batch = self._next(topic, partition)
                body = numbered_anew(body)
            batch.parts += (small[size] if size < LOOKED_UP else varint(size), body)
            batch.room -= size + LENGTH_BYTES
            batch.count += 1

    def filled(self) -> dict[Where, list[Filling]]:
        """All batches of each partition that gets records, in order."""
        found: dict[Where, list[Filling]] = {}
        for topic, output in self._outputs.items():
            for partition, batch in enumerate(output.open):
                if batch.count:
                    found[topic, partition] = [*self._full.get((topic, partition), ()), batch]
        return found

    def _output(self, topic: str) -> _Output:
        return _Output([self._batch(topic) for _ in range(self._counts.of_keys(topic))])

    def _group(self, topic: str, output: _Output) -> int:
        """The number of partitions for groups; each of them has a batch from now on."""
        grouped = output.grouped = self._counts.of_groups(topic)
        output.open += [self._batch(topic) for _ in range(grouped - len(output.open))]
        return grouped

    def _batch(self, topic: str) -> JoinedBatch:
        return JoinedBatch(self._most_of(topic), self._now_ms)

    def _next(self, topic: str, partition: int) -> JoinedBatch:
        """A new batch for a partition, behind those that are full."""
        batches = self._outputs[topic].open
        self._full.setdefault((topic, partition), []).append(batches[partition])
        batch = batches[partition] = self._batch(topic)
        return batch
