"""One pass of `belfry verify` over a cluster: topics read in an order, and handed to the verifiers.

    1  where the changelog ends ─► 2 where outputs, lifecycle and rejected end, which are read first
    3  the changelog, up to (1): all that its transactions fired was committed before (2)
    4  what came out and belongs to no transaction is read on for, and decided of then

The order matters while workers run. Read the other way round, an event that fired between the two
looks would seem to be lost:

    12:00:00  the changelog ends at 500
    12:00:01  outputs are read to their ends; the transaction of 499 has its event there
    12:00:02  a worker commits 501 and its event: behind both ends, so it is left for the next pass
    12:00:03  the changelog is read to 500, and each of its fires is looked for among the outputs

The markers of a transaction are written one by one (KIP-98), so an output may show it a moment
later than the changelog. What is missing is therefore waited for: `grace_s`, once in a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Final

from confluent_kafka import Message

from belfry.cli.verify_topics import ReadableRange, TopicReader
from belfry.client.kafka import headers_of
from belfry.kafka.record_headers import proof_of
from belfry.schedules.instants import parse_instant
from belfry.verification.coverage import ALL_OF_IT, Coverage
from belfry.verification.findings import Breached, CheckCounts, Spot
from belfry.verification.memory import ToldFire
from belfry.verification.outputs import (
    COPY_HEADER,
    INSTANT_HEADER,
    OutputVerifier,
    fired_entry,
    identity_of,
    marked_by,
    origin_of,
)
from belfry.verification.partition import PartitionVerifier
from belfry.verification.rows import Logged
from belfry.verification.standing import NEVER, Standing

if TYPE_CHECKING:
    from belfry.cli.verify_memory import MemoryOnDisk
    from belfry.client.decoding import Decoder
    from belfry.store.row_judge import Judge

# Older tombstones are removed by compaction: state of before may miss that a schedule is gone.
# Milliseconds. A partition that no pass has read for so long is begun anew.
STALE_MS: Final = 12 * 3_600_000
# Seconds between two looks for what is not there yet.
AGAIN_S: Final = 0.2
# The outcome of a lifecycle event that tells of a fire.
FIRED: Final = "FIRED"

# Takes a record, where it lies, and its timestamp.
Take = Callable[[Message, Spot, int], None]


class VerifiedTopics:
    """Names of the topics that are compared; `tenants` are those whose policy names another.

    `topic` gives a short name its prefix. `tenants` maps a tenant to its output topic. Those in
    `also` are read as well: events went there once, before a policy was changed.
    """

    def __init__(self, topic: Callable[[str], str], tenants: dict[str, str]) -> None:
        self.changelog = topic("changelog")
        self.lifecycle = topic("lifecycle")
        self.rejected = topic("rejected")
        self.fired = topic("fired.")
        self.tenants = tenants
        self.also: frozenset[str] = frozenset()

    def outputs(self, names: Iterable[str]) -> list[str]:
        """Output topics among all topics of the cluster."""
        named = self.also.union(self.tenants.values())
        return [name for name in names if name.startswith(self.fired) or name in named]


class ClusterVerifier:
    """Passes over one belfry's topics; `findings` are those of the last pass, `counts` of all.

    `repeats` are tenants whose guarantee lets events come twice. `judge_of` a partition tells
    whether a record was written by a worker, or by somebody else with access to the topic. It runs
    in one thread. What Kafka does not answer is raised by the reader, and nothing of the pass is
    saved then.
    """

    def __init__(
        self,
        reader: TopicReader,
        memory: MemoryOnDisk,
        topics: VerifiedTopics,
        decoder: Decoder,
        judge_of: Callable[[int], Judge],
    ) -> None:
        self.counts = CheckCounts()
        self.findings: list[Breached] = []
        self.repeats: frozenset[str] = frozenset()
        self._reader = reader
        self._memory = memory
        self._topics = topics
        self._decoder = decoder
        self._judge_of = judge_of
        self._outputs = OutputVerifier(memory, self.counts)
        self._partitions: dict[int, PartitionVerifier] = {}
        self._spans: dict[int, ReadableRange] = {}
        self._patient_until = 0.0

    def run(self, grace_s: float, forget_ms: int) -> list[Breached]:
        """One pass; what it found. What is settled for `forget_ms` is forgotten.

        `grace_s` is how long, in seconds, the pass waits in all for records that should be there.
        All of a pass is saved at its end, in one transaction of the file.
        """
        self._memory.now_ms = int(time() * 1000)
        self._patient_until = monotonic() + grace_s
        self._begin_partitions()
        came_by = self._round(first=True)
        while self._outputs.undecided(came_by):
            # The first further rounds are read at once, later ones after a pause.
            patient = monotonic() < self._patient_until
            if patient and self._outputs.round > came_by + 1:
                sleep(AGAIN_S)
            self._round(first=False)
            if not patient:
                break
        self._decide(came_by)
        self._memory.forget_before(self._memory.now_ms - forget_ms)
        self._memory.save()
        return self.findings

    def _decide(self, came_by: int) -> None:
        """Judge what is still open, now that no more is waited for, and keep where each partition
        stands.
        """
        standings = [each.standing.blind_until_ms for each in self._partitions.values()]
        self._outputs.end(max(standings, default=NEVER), came_by)
        self.findings = self._outputs.findings
        self._outputs.findings = []
        hidden = self._reader.hides(self._topics.changelog, self._spans)
        for partition, verifier in self._partitions.items():
            verifier.end(hidden=partition in hidden)
            self.findings = verifier.findings + self.findings
            verifier.findings = []
            verifier.standing.read_ms = self._memory.now_ms
            self._memory.put_standing(partition, verifier.standing)

    # -- a round -----------------------------------------------------------------------------------

    def _begin_partitions(self) -> None:
        """Go on from where the last pass was, or anew where that is too long ago."""
        now_ms = self._memory.now_ms
        for partition in self._reader.topics().get(self._topics.changelog, []):
            standing = self._memory.standing(partition)
            if standing.next_offset and now_ms - standing.read_ms > STALE_MS:
                self._memory.forget_partition(partition)
                standing = Standing(told_to=standing.told_to)
            spot = Spot(self._topics.changelog, partition, 0)
            self._partitions[partition] = PartitionVerifier(
                spot, self._memory, self.counts, standing
            )

    def _round(self, *, first: bool) -> int:
        """Read all topics to their ends; the number of the round."""
        changelog = self._topics.changelog
        self._spans = self._reader.spans({changelog: self._partitions})[changelog]
        coverage = self._read_outputs()
        for partition, verifier in self._partitions.items():
            standing = verifier.standing
            holds = standing.older != NEVER
            # Compaction may have removed the older of the two records that the standing rests on.
            if holds and first:
                holds = self._reader.is_there(changelog, partition, standing.older)
            verifier.begin(coverage, pair_holds=holds)
            self._read_changelog(partition, verifier)
        return self._outputs.round

    def _read_changelog(self, partition: int, verifier: PartitionVerifier) -> None:
        """Feed a partition's verifier from where it stands to the end of its span."""
        span, judge = self._spans[partition], self._judge_of(partition)
        start = max(span.low, verifier.standing.next_offset)
        judge.restart(max(NEVER, verifier.standing.manifest_at))
        place = self._topics.changelog, partition
        for messages in self._reader.read({place: start}, {place: span.end}):
            verifier.feed([_logged(message, judge) for message in messages])
            if not verifier.go_on(final=False):
                break
        else:
            return
        self._read_patiently(partition, verifier, judge)

    def _read_patiently(self, partition: int, verifier: PartitionVerifier, judge: Judge) -> None:
        """Read on where an output lacked what a transaction fired: for a while, then as it is."""
        while monotonic() < self._patient_until:
            sleep(AGAIN_S)
            coverage = self._read_outputs()
            verifier.renew(coverage)
            if verifier.go_on(final=False):
                break
        verifier.go_on(final=True)
        span = self._spans[partition]
        place = self._topics.changelog, partition
        for messages in self._reader.read({place: verifier.fed_to}, {place: span.end}):
            verifier.feed([_logged(message, judge) for message in messages])
            verifier.go_on(final=monotonic() >= self._patient_until)
        verifier.go_on(final=True)

    # -- outputs -----------------------------------------------------------------------------------

    def _read_outputs(self) -> Coverage:
        """Read outputs, lifecycle and rejected to their present ends; what they cover now."""
        topics, all_topics = self._topics, self._reader.topics()
        outputs = topics.outputs(all_topics)
        takes = dict.fromkeys(outputs, self._take_fired)
        if topics.lifecycle in all_topics:
            takes[topics.lifecycle] = self._take_told
        if topics.rejected in all_topics:
            takes[topics.rejected] = self._take_refused
        self._outputs.begin(self._coverage(outputs))
        self._read_all(takes, self._reader.spans({each: all_topics[each] for each in takes}))
        # What was read first may lie far behind the beginning of its topic.
        coverage = self._coverage(outputs)
        self._outputs.renew(coverage)
        return coverage

    def _coverage(self, outputs: Iterable[str]) -> Coverage:
        """Which output topics were read, and from which instant on they are whole."""
        floors = self._memory.floors()
        read = {name: floors.get(name, ALL_OF_IT) for name in outputs}
        return Coverage(self._topics.fired, read, self._topics.tenants, self.repeats)

    def _read_all(
        self, takes: Mapping[str, Take], spans: Mapping[str, Mapping[int, ReadableRange]]
    ) -> None:
        """Read topics to the ends of these spans, each record by what takes those of its topic.

        It remembers where it stands in each partition, so that the next pass reads what is new
        only.
        """
        starts: dict[tuple[str, int], int] = {}
        ends: dict[tuple[str, int], int] = {}
        # What lay before was not read, and may be gone: up to the first record that is left.
        cut: set[tuple[str, int]] = set()
        for topic in takes:
            known = self._memory.positions(topic)
            # Since when its policy names a topic, nothing says.
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
                    self._memory.raise_floor(spot.topic, ms)
                takes[spot.topic](message, spot, ms)
        for topic, _ in cut:
            self._memory.raise_floor(topic, self._memory.now_ms)
        for place, end in ends.items():
            self._memory.put_position(*place, end)

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
        """Take a lifecycle event that tells of a fire."""
        event = self._decoder.record(message.value() or b"", headers_of(message))
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
        elif origin := origin_of(headers):
            self._outputs.refused(origin, spot, ms)


def _logged(message: Message, judge: Judge) -> Logged:
    """A record of the changelog without its proof, and whether a worker wrote it."""
    key, offset = message.key() or b"", message.offset() or 0
    known, value = judge.row(offset, key, message.value(), partial(proof_of, message))
    return Logged(offset, message.timestamp()[1], key, value, not known)
