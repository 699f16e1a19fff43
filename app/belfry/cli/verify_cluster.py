"""One pass of `belfry verify` over a cluster: topics read in an order, and handed to the verifiers.

    1  where the changelog ends ─► 2 where outputs, lifecycle and rejected end, which are read first
    3  the changelog, up to (1): all that its transactions fired was committed before (2)
    4  events without a transaction, and due schedules without an event: read on
       for them, and judge then

The order matters while workers run. Read the other way round, an event that fired between the two
looks would seem to be lost:

    12:00:00  the changelog ends at 500
    12:00:01  outputs are read to their ends; the transaction of 499 has its event there
    12:00:02  a worker commits 501 and its event: behind both ends, so it is left for the next pass
    12:00:03  the changelog is read to 500, and each of its fires is looked for among the outputs

The markers of a transaction are written one by one (KIP-98), so an output may show it a moment
later than the changelog. So the reader waits for missing records: `grace_s`, once in a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Final, NamedTuple

from belfry.cli.verify_elsewhere import FiredElsewhere
from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_outputs import OutputFeed
from belfry.cli.verify_topics import ReadableRange, TopicReader, logged, with_name
from belfry.verification.coverage import Coverage
from belfry.verification.findings import Breached, CheckCounts, Spot
from belfry.verification.key_groups import MovingGroups
from belfry.verification.move_check import MoveCheck, MovePass
from belfry.verification.outputs import OutputVerifier
from belfry.verification.overdue import OverdueSchedules, Suspect, owed_until
from belfry.verification.partition import PartitionVerifier
from belfry.verification.standing import NEVER, Standing, seen_until

if TYPE_CHECKING:
    from belfry.cli.verified_topics import VerifiedTopics
    from belfry.cli.verify_state import StateFile
    from belfry.client.decoding import Decoder
    from belfry.store.row_judge import Judge

# Older tombstones are removed by compaction: state of before may miss that a schedule is gone.
# Milliseconds. A partition that no pass has read for so long is begun anew.
STALE_MS: Final = 12 * 3_600_000
# Seconds between two looks for records that are not there yet.
AGAIN_S: Final = 0.2


class PassTerms(NamedTuple):
    """How a pass is made.

    It waits `grace_s` seconds in all for records that should be there. A schedule that should have
    fired `overdue_ms` before the end of the log is overdue. Facts that are settled for `forget_ms`
    are forgotten.
    """

    grace_s: float
    overdue_ms: int
    forget_ms: int


class ClusterVerifier:
    """Passes over one belfry's topics; `findings` are those of the last pass, `counts` of all.

    `judge_of` a partition tells whether a record was written by a worker, or by somebody else with
    access to the topic. It runs in one thread. If Kafka does not answer, the reader raises an
    error, and the pass is not saved.
    """

    def __init__(
        self,
        reader: TopicReader,
        file: StateFile,
        topics: VerifiedTopics,
        decoder: Decoder,
        judge_of: Callable[[int], Judge],
    ) -> None:
        self.counts = CheckCounts()
        self.findings: list[Breached] = []
        self._reader, self._file = reader, file
        self._memory = MemoryOnDisk(file)
        self._topics, self._judge_of = topics, judge_of
        # Rounds are counted on from run to run, for records of the last one are judged later.
        self._outputs = OutputVerifier(self._memory, self.counts, self._memory.last_round())
        self._overdue = OverdueSchedules(self._memory, self.counts)
        self._coverage = Coverage("", {})
        self._feed = OutputFeed(reader, file, topics, decoder, self._outputs)
        self._partitions: dict[int, PartitionVerifier] = {}
        # Of them: a belfry that has grown has more.
        self._homes = 1
        self._spans: dict[int, ReadableRange] = {}
        # Partitions that were not read to their ends, since an output hides events.
        self._held: set[int] = set()
        # By partition; any thread may ask for the sum.
        self._left: dict[int, int] = {}
        self._patient_until = 0.0
        # Carried fires of another cluster; looked at when a pass begins.
        self.elsewhere = FiredElsewhere()
        # Asks the log of a topic's partition about a hole.
        self.is_void: Callable[[str, int, int, int], bool] = lambda *_: False

    @property
    def behind(self) -> int:
        """Offsets of the changelog up to its ends, as of the last look, that were not read yet."""
        return sum(self._left.copy().values())

    def run(self, terms: PassTerms) -> list[Breached]:
        """One pass; its findings.

        All of a pass is saved at its end, in one transaction of the file.
        """
        self._file.now_ms = int(time() * 1000)
        self._patient_until = monotonic() + terms.grace_s
        self._outputs.elsewhere_until_ms = self.elsewhere.until_ms
        self._outputs.anew_ms = self.elsewhere.anew_ms
        checked = self.counts.checked
        self._feed.begin()
        self._begin_partitions()
        came_by = self._round(first=True)
        suspects = self._suspects(terms.overdue_ms)
        while suspects or self._outputs.undecided(came_by):
            # The first further rounds are read at once, later ones after a pause.
            patient = monotonic() < self._patient_until
            if patient and self._outputs.round > came_by + 1:
                sleep(AGAIN_S)
            self._round(first=False)
            suspects = self._overdue.still(suspects, self._coverage)
            if not patient:
                break
        self._decide(came_by, suspects)
        if self.elsewhere.unread:
            self.counts.marks_unread += self.counts.checked - checked
        self._memory.forget_before(self._file.now_ms - terms.forget_ms)
        self._file.save()
        return self.findings

    def _suspects(self, overdue_ms: int) -> list[Suspect]:
        """Schedules that should have fired so long before the end of the log, by the log's time."""
        standings = [each.standing for each in self._partitions.values()]
        until_ms = owed_until(standings, overdue_ms)
        return self._overdue.suspects(self._partitions, until_ms, self._coverage)

    def _decide(self, came_by: int, suspects: list[Suspect]) -> None:
        """Judge all open cases, since the waiting is over, and save the position of each partition.

        Behind an open transaction nobody sees what has fired.
        """
        blind_ms = [each.standing.blind_until_ms for each in self._partitions.values()]
        hidden = self._held.union(self._reader.hides(self._topics.changelog, self._spans))
        seen_ms = seen_until(self._partitions[each].standing for each in hidden)
        self._outputs.end(max(blind_ms, default=NEVER), came_by, seen_ms)
        self.findings, self._outputs.findings = self._outputs.findings, []
        suspects = [each for each in suspects if each.partition not in hidden]
        named = partial(with_name, self._reader)
        self.findings += map(named, self._overdue.tell(self._topics.changelog, suspects))
        of = MovePass(self._topics.changelog, self._homes, self._coverage.spread)
        self.findings += map(named, MoveCheck(self._memory, self.counts, of).tell())
        for partition, verifier in self._partitions.items():
            verifier.end(hidden=partition in hidden)
            self.findings = verifier.findings + self.findings
            verifier.findings = []
            verifier.standing.read_ms = self._file.now_ms
            self._file.put_standing(partition, verifier.standing)

    def _begin_partitions(self) -> None:
        """Go on from where the last pass was, or anew where that is too long ago."""
        topics = self._reader.topics()
        partitions = topics.get(self._topics.changelog, [])
        self._homes = max(1, len(topics.get(self._topics.homes, partitions)))
        self._overdue.moving = MovingGroups(self._memory, self._homes)
        for partition in partitions:
            standing = self._file.standing(partition)
            if standing.next_offset and self._file.now_ms - standing.read_ms > STALE_MS:
                self._memory.forget_partition(partition)
                standing = Standing(told_to=standing.told_to)
            spot = Spot(self._topics.changelog, partition, 0)
            made = PartitionVerifier(spot, self._memory, self.counts, standing)
            made.move_among(self._homes)
            made.wholeness.is_void = partial(self.is_void, self._topics.changelog, partition)
            made.elsewhere = self.elsewhere.stretches.get(partition, ())
            self._partitions[partition] = made

    def _round(self, *, first: bool) -> int:
        """Read all topics to their ends; the number of the round."""
        changelog, self._held = self._topics.changelog, set()
        self._spans = self._reader.spans({changelog: self._partitions})[changelog]
        for partition, verifier in self._partitions.items():
            span = self._spans[partition]
            self._left[partition] = max(0, span.end - max(span.low, verifier.standing.next_offset))
        coverage = self._coverage = self._feed.read()
        for partition, verifier in self._partitions.items():
            standing = verifier.standing
            holds = standing.older != NEVER
            # Compaction may have removed the older of the two records that the standing rests on.
            if holds and first:
                holds = self._reader.key_at(changelog, partition, standing.older) is not None
            verifier.begin(coverage, pair_holds=holds)
            self._read_changelog(partition, verifier)
            if partition not in self._held:
                self._left[partition] = 0
        return self._outputs.round

    def _read_changelog(self, partition: int, verifier: PartitionVerifier) -> None:
        """Feed a partition's verifier from where it stands to the end of its span."""
        span, judge = self._spans[partition], self._judge_of(partition)
        start = max(span.low, verifier.standing.next_offset)
        judge.restart(max(NEVER, verifier.standing.manifest_at))
        place = self._topics.changelog, partition
        for messages in self._reader.read({place: start}, {place: span.end}):
            verifier.feed([logged(message, judge) for message in messages])
            self._left[partition] = max(0, span.end - verifier.fed_to)
            if not verifier.go_on(final=False):
                break
        else:
            return
        self._read_patiently(partition, verifier, judge)

    def _read_patiently(self, partition: int, verifier: PartitionVerifier, judge: Judge) -> None:
        """Read on while an output lacks fires of a transaction: for a while, then as it is."""
        while monotonic() < self._patient_until:
            sleep(AGAIN_S)
            coverage = self._feed.read()
            verifier.renew(coverage)
            if verifier.go_on(final=False):
                break
        # Hidden events are not lost: the partition is left there for a later pass.
        final, place = not self._feed.hides(), (self._topics.changelog, partition)
        if verifier.go_on(final=final):
            ends = {place: self._spans[partition].end}
            for messages in self._reader.read({place: verifier.fed_to}, ends):
                verifier.feed([logged(message, judge) for message in messages])
                patient = monotonic() < self._patient_until
                if not verifier.go_on(final=final and not patient) and not final:
                    break
        if not verifier.go_on(final=final):
            self._held.add(partition)
