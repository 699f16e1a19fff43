"""References to stored payloads in all topics of a belfry: rows, requests, events, refusals.

    1  where the changelog ends, to follow it from there later
    2  the changelog: claims of pending schedules, and the position of requests
    3  requests behind that, refusals, deliveries and output topics
    4  newer records of the changelog, as often as wanted, and at last those of the topics of 3

A claim moves from a request to a row, and from a row to an event.  Read in another order, one that
moves between two looks would be seen in neither place:

    12:00:00  the changelog is read: a row claims 5f0c…, and waits
    12:00:01  it fires, and its row is gone
    12:00:02  its output topic is read to an end that is asked for now: the event claims 5f0c…

A schedule that requests of one step create, trigger and cancel has an event, and no row. So the
changelog alone does not show all later claims.

Each topic is read to the end that it had, behind open transactions, which are waited for.  A record
that cannot be read ends the command. So an object never counts as unclaimed because its claim was
not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from belfry.cli.changelog import judges
from belfry.cli.failures import CommandError
from belfry.cli.policies import kafka_policies
from belfry.cli.verified_topics import VerifiedTopics, quick_cluster
from belfry.cli.verify_topics import TopicReader
from belfry.client.export import Fold, folded
from belfry.client.kafka import headers_of
from belfry.wire.claim_check import claims_in

if TYPE_CHECKING:
    from confluent_kafka import Message

    from belfry.cli.session import Session

Claimed = Callable[[Iterable[str]], object]


class ClaimReader:
    """Reads the claims on objects, and tells them to `claimed`; writes nothing to Kafka."""

    def __init__(self, session: Session, also: list[str], claimed: Claimed) -> None:
        """`also` are topics beside those that names and policies lead to."""
        self._session = session
        self._claimed = claimed
        self._topic = session.settings.topic
        self._also = also
        self._names = VerifiedTopics(self._topic, also)
        self._reader = TopicReader(quick_cluster(session))
        # The next offset of each partition of the changelog, and of requests not taken in yet.
        self._followed = self._reader.log_ends(self._of([self._topic("changelog")]))
        self._taken: dict[tuple[str, int], int] = {}
        # The next offset of each partition of all other topics.
        self._behind: dict[tuple[str, int], int] = {}

    def waiting(self) -> None:
        """Claims of pending schedules, by the changelog."""
        judge = judges(self._session)
        changelog, group = self._topic("changelog"), self._topic("client")

        def fold_of(partition: int) -> Fold:
            return Fold(judge(partition), _claims_of, self._note)

        for partition, fold in folded(self._session.cluster(), changelog, group, fold_of):
            for claims in fold.waiting.values():
                self._note(claims)
            if fold.manifest is not None:
                self._taken[self._topic("schedules"), partition] = fold.manifest.position
            # Before the next partition is read, for two of them may not fit into memory.
            del fold

    def elsewhere(self) -> int:
        """All else: requests that were not taken in yet, events, refusals; how many records."""
        there = self._reader.topics()
        if missing := sorted(set(self._also) - there.keys()):
            raise CommandError(f"There is no topic {', '.join(missing)}: see what --topic names.")
        parts = self._others(there)
        ends, spans = self._reader.log_ends(parts), self._reader.spans(parts)
        starts = {
            (name, partition): max(span.low, self._taken.get((name, partition), 0))
            for name, of in spans.items()
            for partition, span in of.items()
        }
        self._behind = ends
        return sum(map(self._take, self._reader.read(starts, ends)))

    def since(self) -> None:
        """Claims in records of those topics since the last look, and in new topics."""
        ends = self._reader.log_ends(self._others(self._reader.topics()))
        starts = {place: self._behind.get(place, 0) for place in ends}
        self._behind = ends
        for messages in self._reader.read(starts, ends):
            self._take(messages)

    def follow(self) -> None:
        """Claims in records of the changelog since the last look."""
        starts = self._followed
        self._followed = self._reader.log_ends(self._of([self._topic("changelog")]))
        for messages in self._reader.read(starts, self._followed):
            self._take(messages)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _others(self, there: dict[str, list[int]]) -> dict[str, list[int]]:
        """Topics beside the changelog whose records claim payloads, by the policies of today."""
        self._names.follow(kafka_policies(self._session).all())
        fixed = {
            self._topic(each) for each in ("schedules", "rejected", "deliveries", "undelivered")
        }
        of_tenants = self._topic("schedules."), self._topic("dead-letters.")
        topics = {name for name in there if name.startswith(of_tenants)}
        topics.update(self._names.outputs(there), fixed & there.keys())
        return {name: there[name] for name in topics}

    def _of(self, topics: list[str]) -> dict[str, list[int]]:
        there = self._reader.topics()
        return {name: there[name] for name in topics if name in there}

    def _take(self, messages: list[Message]) -> int:
        for message in messages:
            for part in _parts(message):
                self._note(part)
        return len(messages)

    def _note(self, data: bytes) -> None:
        if found := claims_in(data):
            self._claimed(found)


def _claims_of(row: bytes) -> bytes:
    """The part of a row that is kept until its partition is read: all of it if it claims something.

    Such a row has no payload, and of others the name is enough to count them.
    """
    return row if claims_in(row) else b""


def _parts(message: Message) -> Iterator[bytes]:
    """The parts of a record that may hold claims: its value, and its headers as they stand."""
    yield message.value() or b""
    for name, value in headers_of(message):
        yield name.encode() + b" " + (value if isinstance(value, bytes) else str(value).encode())
