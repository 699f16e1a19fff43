"""Reading topics for `belfry replay`: rows of changelogs, requests, policies and events.

A playback goes through two logs at once: the changelog says how far each transaction read, and the
requests up to there are read behind it. So two readers stand side by side, and neither holds more
than a few thousand records.

    changelog    step 1 ─ up to 41 ─► step 2 ─ up to 97 ─► …
    requests     0 ‥ 40               41 ‥ 96              …
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from belfry.cli.verify_topics import ReadableRange, TopicReader
from belfry.client.decoding import Decoder
from belfry.kafka.record_headers import headers_of, proof_of
from belfry.placement.partition_count import PartitionCount
from belfry.playback.logged import LoggedRow, Unplayable
from belfry.playback.treatment import PolicyAt
from belfry.playback.written_events import WrittenEvents
from belfry.wire.headers import FIRE_ID, REDRIVEN
from belfry.wire.policies import policy_of
from belfry.wire.policy_signatures import RecordLocation, is_signed_policy
from belfry.wire.record import Headers, SourceRecord
from belfry.wire.worker_keys import Keys

if TYPE_CHECKING:
    from belfry.client.kafka import Cluster
    from belfry.store.row_judge import Judge


class RequestStream:
    """Requests of one partition, from an offset on, up to an end; read as they are asked for.

    `appended` says whether the records that were taken last have the broker's timestamps.
    """

    def __init__(self, messages: Iterator[list[Message]]) -> None:
        self._messages = messages
        self._ahead: deque[tuple[SourceRecord, bool]] = deque()
        self._over = False
        self.appended = True

    def up_to(self, offset: int) -> list[SourceRecord]:
        """The next requests before an offset; blocks until they are read."""
        while not self._over and not (self._ahead and self._ahead[-1][0][0] >= offset):
            self._read()
        found: list[SourceRecord] = []
        self.appended = True
        while self._ahead and self._ahead[0][0][0] < offset:
            record, appended = self._ahead.popleft()
            found.append(record)
            self.appended = self.appended and appended
        return found

    def rest(self) -> Iterator[tuple[list[SourceRecord], bool]]:
        """All that is left, those of one timestamp together, and whether it is the broker's."""
        some: list[SourceRecord] = []
        appended = True
        while True:
            if not self._ahead and not self._over:
                self._read()
                continue
            if not self._ahead or (some and self._ahead[0][0][1] != some[-1][1]):
                if some:
                    yield some, appended
                if not self._ahead:
                    return
                some = []
            record, appended = self._ahead.popleft()
            some.append(record)

    def _read(self) -> None:
        messages = next(self._messages, None)
        if messages is None:
            self._over = True
            return
        for message, headers in zip(messages, headers_of(messages), strict=True):
            kind, ms = message.timestamp()
            record = (message.offset() or 0, ms, message.key(), message.value(), headers)
            self._ahead.append((record, kind == TIMESTAMP_LOG_APPEND_TIME))


class ReplayTopics:
    """Reads the topics of one belfry for a replay; `topic` gives a short name its prefix.

    `policies_compacted` says whether the topic of policies lacked some when it was read.

    It makes two connections. Methods block, and raise `BelfryError` where brokers do not answer.
    """

    def __init__(self, cluster: Cluster, topic: Callable[[str], str]) -> None:
        self._changelog, self._schedules = topic("changelog"), topic("schedules")
        self._homes, self._rejected = topic("homes"), topic("rejected")
        self._tenants, self._fired = topic("tenants"), topic("fired.")
        self._shared = topic("fired")
        self._reader, self._requests = TopicReader(cluster), TopicReader(cluster)
        self.policies_compacted = False

    def partitions(self) -> list[int]:
        """Partitions of the changelog: where schedules are; none where it is not there."""
        return self._reader.topics().get(self._changelog, [])

    def counted(self) -> PartitionCount | None:
        """How many of them there are, and how many are homes; None where there is no changelog."""
        topics = self._reader.topics()
        there = topics.get(self._changelog, [])
        return PartitionCount(len(topics.get(self._homes, there)), len(there)) if there else None

    def span(self, partition: int) -> ReadableRange:
        """Where a partition of the changelog begins and ends now."""
        return self._reader.spans({self._changelog: [partition]})[self._changelog][partition]

    def rows(self, partition: int, span: ReadableRange, judge: Judge) -> Iterator[LoggedRow]:
        """Rows of a changelog; records that no worker wrote are passed over."""
        judge.restart(-1)
        place = self._changelog, partition
        for messages in self._reader.read({place: span.low}, {place: span.end}):
            for message in messages:
                key, offset = message.key() or b"", message.offset() or 0
                known, value = judge.row(offset, key, message.value(), partial(proof_of, message))
                if known:
                    yield LoggedRow(offset, message.timestamp()[1], key, value)

    def requests(self, partition: int, start: int | None) -> tuple[int, RequestStream]:
        """Requests from an offset on, None for the first; and where they begin.

        Raises `Unplayable` where retention has removed some of them.
        """
        name = self._schedules
        span = self._requests.spans({name: [partition]})[name][partition]
        if start is not None and span.low > start:
            raise Unplayable(
                f"{name}/{partition} begins at offset {span.low}, and the first transaction read"
                f" from {start}: the topic's retention has removed requests, so a playback from the"
                " partition's birth is not possible any more."
            )
        start = span.low if start is None else start
        place = name, partition
        return start, RequestStream(self._requests.read({place: start}, {place: span.end}))

    def policies(self, decoder: Decoder, signed_by: Keys | None) -> list[PolicyAt]:
        """All policies that the topic still holds; with `signed_by` those that are signed alone."""
        found: list[PolicyAt] = []
        following: dict[int, int] = {}
        for message in self._all_of([self._tenants]):
            partition, offset = message.partition() or 0, message.offset() or 0
            if offset != following.get(partition, 0):
                self.policies_compacted = True
            following[partition] = offset + 1
            headers, value = headers_of([message])[0], message.value()
            if signed_by is not None and not _is_signed(signed_by, message, headers):
                continue
            record = None if value is None else decoder.record(value, headers)
            name = (message.key() or b"").decode(errors="replace")
            policy = None if record is None else policy_of(record)
            found.append(PolicyAt(message.timestamp()[1], name, policy))
        return found

    def events(self, more: Iterable[str]) -> WrittenEvents:
        """Events in the output topics, also those that policies name; without redriven copies."""
        found = WrittenEvents()
        topics = self._reader.topics()
        outputs = {each for each in topics if each.startswith(self._fired) or each == self._shared}
        for message in self._all_of(sorted(outputs | (topics.keys() & set(more)))):
            headers = headers_of([message])[0] or []
            names = dict(headers)
            identity = names.get(FIRE_ID)
            if identity is not None and REDRIVEN not in names:
                topic = message.topic() or ""
                found.add(identity, topic, message.key(), message.value(), headers)
        return found

    def refused_schemas(self, partition: int) -> set[int]:
        """Offsets of a partition's requests that workers refused, for they did not know the schema.

        Only of refusals that the topic still holds.
        """
        wanted = b"unknown_schema_id", self._schedules.encode(), b"%d" % partition
        found: set[int] = set()
        for message in self._all_of([self._rejected]):
            # The last of a name is belfry's; a sender may have given others.
            said = dict(headers_of([message])[0] or [])
            names = ("code", "topic", "partition")
            told = tuple(said.get(f"belfry-error-{name}") for name in names)
            offset = said.get("belfry-error-offset") or b""
            if told == wanted and offset.isdigit():
                found.add(int(offset))
        return found

    def _all_of(self, topics: Sequence[str]) -> Iterator[Message]:
        """All records of topics up to their present ends."""
        known = self._reader.topics()
        spans = self._reader.spans({name: known[name] for name in topics if name in known})
        places = {(name, each): span for name in spans for each, span in spans[name].items()}
        starts = {place: span.low for place, span in places.items()}
        for messages in self._reader.read(starts, {at: span.end for at, span in places.items()}):
            yield from messages

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        self._requests.close()


def _is_signed(signed_by: Keys, message: Message, headers: Headers | None) -> bool:
    where = message.topic() or "", message.partition() or 0, message.offset() or 0
    record = message.key() or b"", message.value(), headers
    return is_signed_policy(signed_by, RecordLocation(*where), record)
