"""Outputs of a belfry, read and handed to the rules: fires, reports on them, refusals.

Three kinds of topics are read to their ends; each has its own way to take a record:

    fired.…     a fire, the copy of a redrive, or somebody else's record, which is passed over
    lifecycle   a report on a fire
    rejected    a refusal, or the mark of a redrive

How far each partition was read is kept in the state file, so that the next pass reads new records
only. Records from before, or removed by retention, cannot be judged: such a topic has a *floor*, an
instant up to which its records may be gone, and earlier events are not looked for there.
`belfry.verification.outputs` has the rules; this module reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from confluent_kafka import Message

from belfry.client.kafka import headers_of
from belfry.schedules.instants import parse_instant
from belfry.verification.coverage import ALL_OF_IT, Coverage
from belfry.verification.findings import Spot
from belfry.verification.headers import (
    COPY_HEADER,
    INSTANT_HEADER,
    fired_entry,
    identity_of,
    marked_by,
    origin_of,
)
from belfry.verification.memory import ToldFire
from belfry.verification.outputs import OutputVerifier

if TYPE_CHECKING:
    from belfry.cli.verified_topics import VerifiedTopics
    from belfry.cli.verify_state import StateFile
    from belfry.cli.verify_topics import ReadableRange, TopicReader
    from belfry.client.decoding import Decoder

# The outcome of a lifecycle event that tells of a fire.
FIRED: Final = "FIRED"
# Outcome and code of a report on a schedule whose payload no key opens.
UNDECRYPTABLE: Final = "PAUSED", "undecryptable_payload"

# Takes a record, where it lies, and its timestamp.
Take = Callable[[Message, Spot, int], None]


class OutputFeed:
    """Feeds an output verifier with all that came out since the last pass.

    If Kafka does not answer, the reader raises an error.
    """

    def __init__(
        self,
        reader: TopicReader,
        file: StateFile,
        topics: VerifiedTopics,
        decoder: Decoder,
        outputs: OutputVerifier,
    ) -> None:
        self._reader = reader
        self._file = file
        self._topics = topics
        self._decoder = decoder
        self._outputs = outputs
        # Output topics as they were read last, and where they ended first in this pass.
        self._spans: Mapping[str, Mapping[int, ReadableRange]] = {}
        self._first_ends: dict[tuple[str, int], int] = {}

    def begin(self) -> None:
        """A pass begins."""
        self._first_ends = {}

    def hides(self) -> bool:
        """Whether a transaction is open in an output since this pass began, and hides the rest."""
        return any(
            self._first_ends[topic, each] == spans[each].end
            for topic, spans in self._spans.items()
            for each in self._reader.hides(topic, spans)
        )

    def read(self) -> Coverage:
        """Read outputs, lifecycle and rejected to their present ends; returns the new coverage."""
        topics, all_topics = self._topics, self._reader.topics()
        outputs = topics.outputs(all_topics)
        takes = dict.fromkeys(outputs, self._take_fired)
        if topics.lifecycle in all_topics:
            takes[topics.lifecycle] = self._take_told
        if topics.rejected in all_topics:
            takes[topics.rejected] = self._take_refused
        self._outputs.begin(self._coverage(outputs))
        spans = self._reader.spans({each: all_topics[each] for each in takes})
        self._spans = {each: spans[each] for each in outputs}
        for topic in outputs:
            for partition, span in spans[topic].items():
                self._first_ends.setdefault((topic, partition), span.end)
        self._read_all(takes, spans)
        # The first record that was read may lie far behind the beginning of its topic.
        coverage = self._coverage(outputs)
        self._outputs.renew(coverage)
        return coverage

    def _coverage(self, outputs: Iterable[str]) -> Coverage:
        """Which output topics were read, and from which instant on they are whole."""
        floors = self._file.floors()
        read = {name: floors.get(name, ALL_OF_IT) for name in outputs}
        topics = self._topics
        whose = topics.tenants, topics.repeats, topics.held, topics.spread
        coverage = Coverage(topics.fired, read, *whose)
        repeating = self._file.repeating(map(coverage.topic_of, topics.repeats))
        return coverage._replace(repeated=repeating)

    def _read_all(
        self, takes: Mapping[str, Take], spans: Mapping[str, Mapping[int, ReadableRange]]
    ) -> None:
        """Read topics to the ends of these spans, each record by the method for its topic.

        It remembers where it stands in each partition, so that the next pass reads new records
        only.
        """
        starts: dict[tuple[str, int], int] = {}
        ends: dict[tuple[str, int], int] = {}
        # Earlier records were not read, and may be gone: up to the first record that is left.
        cut: set[tuple[str, int]] = set()
        for topic in takes:
            known = self._file.positions(topic)
            # No record says since when its policy names a topic.
            new = not known and topic in self._topics.tenants.values()
            for partition, span in spans[topic].items():
                place = topic, partition
                starts[place] = max(known.get(partition, 0), span.low)
                ends[place] = max(span.end, starts[place])
                if new or starts[place] > known.get(partition, 0):
                    cut.add(place)
        for messages in self._reader.read(starts, ends):
            for message in messages:
                spot = Spot(message.topic() or "", message.partition() or 0, message.offset() or 0)
                ms = message.timestamp()[1]
                if spot[:2] in cut:
                    cut.discard(spot[:2])
                    self._file.raise_floor(spot.topic, ms)
                takes[spot.topic](message, spot, ms)
        for topic, _ in cut:
            self._file.raise_floor(topic, self._file.now_ms)
        for place, end in ends.items():
            self._file.put_position(*place, end)

    def _take_fired(self, message: Message, spot: Spot, ms: int) -> None:
        """Take a record of an output topic: a fire, the copy of a redrive, or neither."""
        headers = dict(headers_of(message))
        try:
            nominal_ms = parse_instant((headers.get(INSTANT_HEADER) or b"").decode())
        # Not an event of belfry's: it lacks the header, or has nonsense in it.
        except ValueError:
            return
        fire = fired_entry(headers, spot, ms, nominal_ms)
        mark = headers.get(COPY_HEADER)
        if fire is not None and mark is not None:
            self._outputs.copied(fire, mark)
        elif fire is not None:
            self._outputs.fired(fire)

    def _take_told(self, message: Message, spot: Spot, ms: int) -> None:
        """Take a lifecycle event that tells of a fire, or of a pause that nobody asked for."""
        event = self._decoder.record(message.value() or b"", headers_of(message))
        if event is not None and (event["outcome"], event["code"]) == UNDECRYPTABLE:
            self._outputs.paused_unread()
        if event is None or event["outcome"] != FIRED:
            return
        identity = identity_of(event["fire_id"])
        if identity is not None:
            self._outputs.told(ToldFire(identity, event["schedule_id"].encode(), spot, ms))

    def _take_refused(self, message: Message, spot: Spot, ms: int) -> None:
        """Take a record of the rejected topic: a refusal, or the mark of a redrive."""
        headers = dict(headers_of(message))
        refusal = marked_by(headers, spot)
        if refusal is not None:
            self._outputs.marked(refusal, spot, ms)
        elif origin := origin_of(headers, follows=self._outputs.follows):
            self._outputs.refused(origin, spot, ms)
