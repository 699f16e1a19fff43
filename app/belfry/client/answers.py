"""Verdicts on requests, read from the tail of ``belfry.lifecycle``.

One consumer without a group and one thread serve all callers of a client. The consumer stands at
the end of every partition *before* a request is written, so its answer cannot be missed; while no
caller waits, it reads no records.

    caller                                     thread `belfry-answers`
    12:00:00.000  expecting(id): assign at     sleeps, for nobody waits
                  the ends of all partitions
    12:00:00.003  writes the request           polls
    12:00:00.003  within(10 s): blocks         polls
    12:00:00.011  ◄─── verdict ─────────────── a record holds the id, and decodes to a verdict
    12:00:05.012                               nobody has waited for 5 s: gives the partitions back

A record is decoded only where its bytes hold an id that is waited for, so verdicts of others cost a
search and no more. While many ids are waited for, a search for each would cost more than decoding,
so each record is decoded. A broker that cannot be reached is waited for; an error that will not
pass by itself ends all waits with `Unavailable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Condition, Thread
from time import monotonic
from typing import Final

from confluent_kafka import Consumer, Message

from belfry.client.decoding import Decoder
from belfry.client.errors import Unavailable
from belfry.client.faults import permanent
from belfry.client.kafka import Cluster, headers_of
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.wire.lifecycle import generation_in
from belfry.wire.quick_verdicts import quick_verdict

# Seconds for which reading goes on after the last wait, so that requests in a row begin at once.
LINGER_S: Final = 5.0
# Longest poll, and so the longest time until a new caller is noticed.
POLL_S: Final = 0.1
# Records that are taken together at most; verdicts among them are handed out behind the last one.
AT_ONCE: Final = 1_000
# If more ids are waited for, records are decoded without a search for each of them.
MANY: Final = 60
# Outcomes that answer a request; the others tell of occurrences, and may carry its id too.
VERDICTS: Final = frozenset(Outcome) - {
    Outcome.FIRED,
    Outcome.MISSED,
    Outcome.COMPLETED,
    Outcome.DELIVERED,
    Outcome.FAILED,
}


class VerdictWait:
    """One verdict that is waited for: on the very record that was written.

    Somebody else may show the same request id at the same moment, so the place of the record
    counts. A DUPLICATE of an older release names no record, and is taken for ours where it names
    our schedule. The reading thread puts, and one caller waits.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: SimpleQueue[Verdict | Unavailable] = SimpleQueue()

    def put(self, found: Verdict | Unavailable) -> None:
        """Called by the reading thread."""
        self._found.put(found)

    def within(self, timeout_s: float, sent: Verdict) -> Verdict | None:
        """The verdict on what was `sent`, or None if it does not come within `timeout_s` seconds.

        Raises `Unavailable` where the reading has ended.
        """
        deadline = monotonic() + timeout_s
        while True:
            try:
                found = self._found.get(timeout=max(deadline - monotonic(), 0))
            except Empty:
                return None
            if isinstance(found, Unavailable):
                raise found
            if _answers(found, sent):
                return found


def _answers(verdict: Verdict, sent: Verdict) -> bool:
    """Whether a verdict is on the request that was sent."""
    source = (verdict.source_partition, verdict.source_offset)
    ours = (sent.source_partition, sent.source_offset)
    same_name = verdict.schedule_id == sent.schedule_id and verdict.tenant == sent.tenant
    return same_name and source in (ours, (None, None))


class Answers:
    """Reads ``belfry.lifecycle`` while somebody waits for a verdict.

    `group` is the group id of the consumer, which commits nothing. Any number of threads may wait.
    """

    def __init__(self, cluster: Cluster, topic: str, group: str, decoder: Decoder) -> None:
        self._cluster = cluster
        self._topic = topic
        self._group = group
        self._decoder = decoder
        self._consumer: Consumer | None = None
        self._thread: Thread | None = None
        self._waiting: dict[str, list[VerdictWait]] = {}
        self._reading = False
        self._closed = False
        self._idle_since = 0.0
        self._changed = Condition()

    @contextmanager
    def expecting(self, request_id: str) -> Iterator[VerdictWait]:
        """From here on the verdict on this request is looked for.

        The consumer and its thread are made at the first call, which takes a round trip to the
        brokers. Raises `MissingTopic` and `Unavailable`.
        """
        with self.expecting_all([request_id]) as (awaited,):
            yield awaited

    @contextmanager
    def expecting_all(self, request_ids: Sequence[str]) -> Iterator[list[VerdictWait]]:
        """The same for many requests, whose waits come in their order."""
        waits = [VerdictWait() for _ in request_ids]
        with self._changed:
            self._read_from_now()
            for request_id, awaited in zip(request_ids, waits, strict=True):
                self._waiting.setdefault(request_id, []).append(awaited)
            self._changed.notify_all()
        try:
            yield waits
        finally:
            with self._changed:
                for request_id, awaited in zip(request_ids, waits, strict=True):
                    self._waiting[request_id].remove(awaited)
                    if not self._waiting[request_id]:
                        del self._waiting[request_id]
                self._idle_since = monotonic()

    def close(self) -> None:
        """End the thread and the consumer; a caller that still waits gets no verdict."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._consumer is not None:
            self._consumer.close()

    def _read_from_now(self) -> None:
        """Stand at the ends of all partitions, unless the consumer reads already."""
        if self._reading:
            return
        if self._consumer is None:
            self._consumer = self._cluster.consumer(self._group)
        self._consumer.assign(self._cluster.ends(self._consumer, self._topic))
        self._reading = True
        if self._thread is None:
            self._thread = Thread(
                target=self._run, args=(self._consumer,), name="belfry-answers", daemon=True
            )
            self._thread.start()

    def _run(self, consumer: Consumer) -> None:
        """The thread: polls while somebody waits, sleeps while nobody does."""
        while self._wanted(consumer):
            message = consumer.poll(POLL_S)
            if message is not None:
                # What has come with it is taken at once: many verdicts share a transaction.
                self._take([message, *consumer.consume(AT_ONCE, 0)])

    def _wanted(self, consumer: Consumer) -> bool:
        """Wait until there is something to read for; False at the end."""
        with self._changed:
            if self._reading and not self._waiting and monotonic() > self._idle_since + LINGER_S:
                consumer.unassign()
                self._reading = False
            while not self._reading and not self._closed:
                self._changed.wait()
            return not self._closed

    def _take(self, messages: Sequence[Message]) -> None:
        """Look into some records, or at errors, of the topic."""
        with self._changed:
            ids = None if len(self._waiting) > MANY else [each.encode() for each in self._waiting]
        found: list[Verdict] = []
        for message in messages:
            error = message.error()
            value = message.value()
            if error is not None:
                if permanent(error):
                    self._give_all(self._cluster.unavailable(error, self._topic))
            elif value is not None and (ids is None or any(each in value for each in ids)):
                verdict = self._verdict(value, message)
                if verdict is not None:
                    found.append(verdict)
        with self._changed:
            for verdict in found:
                for awaited in self._waiting.get(verdict.request_id or "", ()):
                    awaited.put(verdict)

    def _verdict(self, value: bytes, message: Message) -> Verdict | None:
        """The verdict in a record; None for a record of another kind, or about an occurrence."""
        headers = headers_of(message)
        body = self._decoder.own_body(value, headers)
        quick = None if body is None else quick_verdict(body)
        if quick is not None:
            known = quick.outcome in VERDICTS
            return Verdict.from_quick(quick, generation_in(headers)) if known else None
        record = self._decoder.record(value, headers)
        if record is None or record["outcome"] not in VERDICTS:
            return None
        return Verdict.from_record(record, generation_in(headers))

    def _give_all(self, fault: Unavailable) -> None:
        """Hand an error to everybody who waits."""
        with self._changed:
            for awaited in [each for those in self._waiting.values() for each in those]:
                awaited.put(fault)
