"""Verdicts that are awaited: from the tail of the lifecycle topic, or from this worker itself.

The reader stands at the end of every partition before the first request is written.  This worker
tells its own committed verdicts at once: readers see a record in Kafka only when all transactions
that began before it in the same partition have ended.

Most of the tail is about requests of others.  While no caller waits, fetched records are passed
over unopened, ten times a second.  The first caller that begins to wait wakes the reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import structlog

from belfry.client.answers import VERDICTS
from belfry.client.decoding import Decoder
from belfry.client.verdict import Verdict
from belfry.host import machine
from belfry.host.background import Background
from belfry.kafka.fetch_position import Fetched
from belfry.kafka.followed_topic import FollowedTopic, portions
from belfry.settings import SharedSettings
from belfry.wire.accepted import PlainAccepted, Told, whole
from belfry.wire.lifecycle import generation_in, record_of
from belfry.wire.lifecycle_heads import asked_in
from belfry.wire.record import SourceRecord

# Seconds to wait for the next record, and between two takes while no caller waits.
POLL_S: Final = 0.1
UNASKED_S: Final = 0.1
BATCH: Final = 1_000
# Seconds between two looks for partitions that were added to the topic.
LOOK_S: Final = 30.0
# The source of a verdict that names none.
NO_SOURCE: Final = (None, None)
# Tenant, schedule and request id, as they lie in a lifecycle event.
Asked = tuple[bytes, bytes, bytes]

log = structlog.get_logger(__name__)


class AwaitedVerdict:
    """A verdict that is awaited: the one on the request that lies where ours was written.

    The same request may have been answered a moment ago, to another worker: that verdict has
    another source.  A DUPLICATE of an older release names none, and says the same of any.  Belongs
    to one event loop.
    """

    def __init__(self, answer: asyncio.Future[Verdict]) -> None:
        self.answer = answer
        self._source: tuple[int | None, int | None] | None = None
        self._early: list[Verdict] = []

    @property
    def is_written(self) -> bool:
        """Whether Kafka has confirmed the request."""
        return self._source is not None

    def written(self, partition: int | None, offset: int | None) -> None:
        """Kafka has the request, there."""
        self._source = partition, offset
        for verdict in self._early:
            self.heard(verdict)

    def heard(self, verdict: Verdict) -> None:
        """A verdict on a request of this id."""
        if self._source is None:
            self._early.append(verdict)
        elif (verdict.source_partition, verdict.source_offset) in (self._source, NO_SOURCE):
            settle(self.answer, verdict)


class VerdictReader:
    """Reads the tail of the lifecycle topic in a thread; settles the futures of a loop.

    `expect` and `forget` are called in the loop, `committed` by the threads of partitions. `head`
    is what stands before a lifecycle event of this release; records that begin otherwise are
    decoded.
    """

    def __init__(self, settings: SharedSettings, head: bytes) -> None:
        self._topic = FollowedTopic(settings.kafka_properties(), settings.topic("lifecycle"))
        self._head = head
        self._decoder = Decoder("LifecycleEvent", only=True)
        self._waiting: dict[Asked, AwaitedVerdict] = {}
        self._read: dict[int, int] = {}
        self._looked = monotonic()
        self._expects = machine.Event()
        self._thread = Background("http-verdicts", self._turn, log, "verdicts not read")

    def start(self) -> None:
        """Stand at the end of every partition, and begin to read.

        Raises ConnectionError if the topic does not exist, or if no broker tells its ends.
        """
        self._read = self._topic.ends(self._topic.partitions())
        self._topic.follow(self._read)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the connections."""
        self._thread.stopping.set()
        self._expects.set()
        self._thread.stop()
        self._topic.close()

    def expected(self, asked: Asked) -> asyncio.Future[Verdict] | None:
        """The future that waits for this verdict already."""
        awaited = self._waiting.get(asked)
        return None if awaited is None else awaited.answer

    def expect(self, asked: Asked, awaited: AwaitedVerdict) -> None:
        """From here on verdicts on this request are told."""
        first = not self._waiting
        self._waiting[asked] = awaited
        if first:
            self._expects.set()

    def forget(self, asked: Asked) -> None:
        """Forget the waiting caller of this verdict."""
        del self._waiting[asked]

    def committed(self, events: Sequence[Told]) -> None:
        """Verdicts before they can be read; from any thread."""
        if self._waiting:
            _tell([heard for event in events for heard in self._meant(event)])

    def _meant(self, event: Told) -> Iterator[tuple[AwaitedVerdict, Verdict]]:
        """A verdict of this worker's own, for those who wait for it."""
        if isinstance(event, PlainAccepted):
            asked = event.asked
        elif event.request_id is None or event.outcome not in VERDICTS:
            return
        else:
            asked = _named(event.tenant, event.schedule_id, event.request_id)
        awaited = self._waiting.get(asked)
        if awaited is not None:
            told = whole(event)
            yield awaited, Verdict.from_record(record_of(told), told.generation)

    def _turn(self) -> None:
        if not self._waiting:
            self._expects.wait(UNASKED_S)
            self._expects.clear()
        fetched = self._topic.take(POLL_S)
        # All records that have come, or an awaited one would lie behind them.
        while fetched is not None and not self._thread.stopping.is_set():
            self._read[fetched.where[1]] = fetched.behind
            self._take(fetched)
            fetched = self._topic.take(0.0)
        if monotonic() - self._looked > LOOK_S:
            self._looked = monotonic()
            self._look_for_more()

    def _look_for_more(self) -> None:
        """Read partitions that were added to the topic, from their beginning."""
        try:
            added = set(self._topic.partitions()) - self._read.keys()
        except ConnectionError as error:
            # The cluster is away: the next look tells.
            log.debug("the lifecycle topic was not looked at", reason=str(error))
            return
        if added:
            self._read |= dict.fromkeys(added, 0)
            self._topic.follow(self._read)

    def _take(self, fetched: Fetched) -> None:
        if not self._waiting:
            return
        for records, _ in portions(fetched, BATCH):
            _tell([settled for record in records for settled in self._answered(record)])

    def _answered(self, record_read: SourceRecord) -> Iterator[tuple[AwaitedVerdict, Verdict]]:
        """A verdict in a record, for those who wait for it."""
        _, _, _, value, headers = record_read
        if value is None or not self._may_be_awaited(value):
            return
        record = self._decoder.record(value)
        if record is None or record["outcome"] not in VERDICTS or record["request_id"] is None:
            return
        awaited = self._waiting.get(asked_in_fields(record))
        if awaited is not None:
            yield awaited, Verdict.from_record(record, generation_in(headers))

    def _may_be_awaited(self, value: bytes) -> bool:
        """Whether a record is worth decoding; most belong to others."""
        if not value.startswith(self._head):
            return True
        try:
            return asked_in(value, len(self._head)) in self._waiting
        except IndexError:
            return False


def _tell(found: list[tuple[AwaitedVerdict, Verdict]]) -> None:
    """Have verdicts heard in the loop in which they are awaited."""
    if found:
        # A loop that has ended has no waiting callers.
        with suppress(RuntimeError):
            found[0][0].answer.get_loop().call_soon_threadsafe(_tell_all, found)


def _tell_all(found: list[tuple[AwaitedVerdict, Verdict]]) -> None:
    for awaited, verdict in found:
        awaited.heard(verdict)


def asked_in_fields(fields: dict[str, Any]) -> Asked:
    """Which request a request's or an event's fields are about."""
    return _named(fields["tenant"], fields["schedule_id"], fields["request_id"])


def _named(tenant: str, schedule_id: str, request_id: str) -> Asked:
    """Whatever lies in a request; what is no text has been replaced where it was written."""
    return (
        tenant.encode(errors="replace"),
        schedule_id.encode(errors="replace"),
        request_id.encode(errors="replace"),
    )


def settle(future: asyncio.Future[Verdict], verdict: Verdict) -> None:
    """Answer the callers that still wait."""
    if not future.done():
        future.set_result(verdict)
