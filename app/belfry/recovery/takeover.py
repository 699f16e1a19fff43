"""Taking a partition over, in the order that makes it safe.

    catch up unfenced ─ fence ─ ask for the changelog's end ─ read up to it ─ seek the source

An end that is asked for before the fence lets the former owner commit in between, and the event
fires twice.  So does an end that a stranger's open transaction holds back: after the fence it is
waited for until the log can be read as a whole (`FencedEnd`).  Local state that is holed is set
aside and rebuilt from the changelog; what the changelog itself cannot tell consistently stops the
partition.  A standby's work (`Warm`) makes the catch-up short and changes nothing else.

An example.  W1 owns the partition and sleeps amid a step; W2 takes over:

    W1   manifest 41 ─ fires A ─ sleeps ················ wakes ─ EndTxn: refused, W1 gives up
    W2                          reads to 41 ─ fences ─ asks for the end ─ reads ─ fires A
    log  … 41 │ A's row, open                  │ marker: A's row is rolled back │ claim 42 │ …

The fence rolls W1's transaction back, and the marker lies in the log before the end that W2 asks
for.  So W2 reads that A is still due, and fires it: once, since readers never see W1's record.  Had
W2 asked for the end first, W1 could have woken in between and committed A behind that end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from belfry.engine.ownership import Event
from belfry.host.failpoints import Failpoints
from belfry.host.rocks import RocksMap
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.log_bounds import AheadOfLog, LostRange, OutOfRange
from belfry.kafka.step_producer import StepProducer
from belfry.recovery.evidence import READ_RECORDS, Evidence
from belfry.recovery.local_state import LocalState
from belfry.recovery.reading import ReplayProgress
from belfry.store.identity import Identity, truncated_log
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest
from belfry.store.ordered_map import Damaged
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore

# What a fence waits for, if it takes long; for people.
FENCES: Final = (
    "nothing fires before Kafka has ended the former owner's last transaction, in all partitions"
    " that it wrote to; where that lasts, `belfry doctor` names them"
)

log = structlog.get_logger(__name__)


class LeftToOthers(Exception):
    """The partition holds schedules that this worker cannot fire and another may be able to."""


@dataclass(slots=True)
class Recovered:
    """A partition's store at the end of its changelog; no manifest where it never had an owner."""

    rows: RocksMap
    store: ScheduleStore
    manifest: Manifest | None
    # The cluster settings that were kept with the state, None if it has no settings.
    settings: bytes | None
    identity: Identity
    # The row of the identity, where the changelog does not hold it so.
    new_identity: bytes | None
    # When the former owner's last commit was appended, epoch ms, if it lent a read lease by it.
    lent_ms: int | None = None
    # Where the changelog ended: nothing of the new owner lies before it.
    end: int = 0
    # Keys of rows in the changelog that are no state, and that the next manifest would count.
    unclosed_rows: tuple[bytes, ...] = ()


def _keeps(_unable: bool) -> bool:
    return False


class TakeOver:
    """Brings one partition's store to the end of its changelog, fenced.

    It runs in the partition's thread and blocks. `moved` is told of each step that the ownership
    goes through, and `fenced_end` gives the end of the changelog after the fence.
    """

    def __init__(
        self,
        local: LocalState,
        evidence: Evidence,
        reading: ReplayProgress,
        failpoints: Failpoints,
        moved: Callable[[Event], None],
        fenced_end: Callable[[ChangelogReader], int],
    ) -> None:
        self._local = local
        self._evidence = evidence
        self._reading = reading
        self._failpoint = failpoints.reach
        self._moved = moved
        self._fenced_end = fenced_end

    def run(
        self,
        changelog: ChangelogReader,
        producer: StepProducer,
        warm: tuple[RocksMap, Replay] | None = None,
        leaves: Callable[[bool], bool] = _keeps,
    ) -> Recovered:
        """Fence and recover; an error closes the store.  HoleInChangelog: a rebuild from nothing
        fails, too.  Contradiction: the evidence forbids to go on with the state; nobody has been
        fenced then, unless it came with the last writes of the former owner.
        """
        rows, begun = self._open(changelog, warm)
        try:
            try:
                replay = self._catch_up(rows, changelog, begun)
            except (Damaged, HoleInChangelog, LostRange) as error:
                rows = self._rebuilt(rows, changelog, error)
                replay = self._catch_up(rows, changelog)
            self._evidence.check(replay, lambda: changelog.hides)
            _leave_what_others_can_fire(replay, leaves)
            self._moved(Event.CAUGHT_UP)
            self._fence(producer)
            self._moved(Event.FENCED)
            self._failpoint("R2")
            try:
                unclosed_rows = self._finish(replay, changelog)
            except (Damaged, HoleInChangelog, LostRange) as error:
                rows = self._rebuilt(rows, changelog, error)
                replay = self._catch_up(rows, changelog)
                unclosed_rows = self._finish(replay, changelog)
            self._evidence.check(replay)
            lent_ms = None
            if replay.manifest is not None and replay.manifest.read_lease:
                # Where nothing was left to read, it had been appended before it was written down
                # here, or in a checkpoint, by another clock, which was fetched later.
                written_ms = max(replay.written_ms, self._local.restored_ms)
                lent_ms = written_ms if changelog.newest_ms is None else changelog.newest_ms
            identity, row = self._evidence.identity(replay)
            return Recovered(
                rows, ScheduleStore(rows), replay.manifest, replay.settings, identity, row,
                lent_ms, changelog.position, unclosed_rows,
            )  # fmt: skip
        except BaseException:
            rows.close()
            raise

    def _fence(self, producer: StepProducer) -> None:
        """Fence the former owner, and show what a fence that takes long waits for."""
        self._reading.held_by = FENCES
        try:
            producer.open()
        finally:
            self._reading.held_by = ""

    def _open(
        self, changelog: ChangelogReader, warm: tuple[RocksMap, Replay] | None
    ) -> tuple[RocksMap, Replay | None]:
        """The local state, where it may be used; a standby's with the replay that it has begun."""
        if warm is None:
            return self._local.open_newest(changelog), None
        rows, replay = warm
        if rows.get(keys.META_STAMP) == self._local.stamp.encode():
            return rows, replay
        # The changelog has become another topic since the standby began to follow it.
        return self._local.accept(rows, changelog.holds_records), None

    def _rebuilt(self, rows: RocksMap, changelog: ChangelogReader, error: Exception) -> RocksMap:
        """An empty store, where the changelog can be read anew from its beginning."""
        if isinstance(error, OutOfRange):
            raise error
        if isinstance(error, AheadOfLog) and not self._superseded(rows, changelog):
            raise truncated_log(error.end, error.offset) from error
        self._local.found_wrong()
        return self._local.anew(rows, str(error))

    def _superseded(self, rows: RocksMap, changelog: ChangelogReader) -> bool:
        """Whether a recovery has been done since this store was written."""
        kept = Replay(ScheduleStore(rows)).identity
        generation = 0 if kept is None else kept.generation
        return self._evidence.recovered_since(generation, changelog)

    def _catch_up(
        self, rows: RocksMap, changelog: ChangelogReader, begun: Replay | None = None
    ) -> Replay:
        """Read the rows of the changelog, even where another worker owns the partition."""
        low, end = changelog.ends()
        replay = begun
        if replay is None:
            replay = Replay(ScheduleStore(rows))
            seek_behind(changelog, replay, (low, end))
        else:
            # Records that a standby has read and holds are not read again.
            replay.fold(self._now())
            if changelog.position > end:
                # Its place has to be one that the log reaches.
                at = changelog.sieve.manifest_at
                changelog.seek(changelog.position, manifest_at=at, known=(low, end))
        self._reading.started(changelog.position, end)
        self._read(replay, changelog, end)
        return replay

    def _finish(self, replay: Replay, changelog: ChangelogReader) -> tuple[bytes, ...]:
        """Read the rest; nobody else writes any more, and nothing is hidden.  Returns the keys of
        rows that are left: the next manifest would count them.
        """
        end = self._fenced_end(changelog)
        self._reading.end = end
        self._read(replay, changelog, end)
        unclosed_rows: tuple[bytes, ...] = ()
        if replay.unclosed and changelog.sieve.may_be_copies(replay.unclosed):
            first = replay.unclosed[0]
            unclosed_rows = replay.leave_unclosed()
            log.error(
                "rows without a manifest are left: copies of what was rolled back",
                first_offset=first, rows=len(unclosed_rows),
                to_do="find out who else may write to the changelog, and take the right away",
            )  # fmt: skip
        replay.finish(self._now())
        return unclosed_rows

    def _read(self, replay: Replay, changelog: ChangelogReader, end: int) -> None:
        """Fold the changelog up to `end`, batch by batch, and show how far it has come."""
        for messages in changelog.read_until(end, READ_RECORDS):
            changes, offsets = changelog.changes(messages)
            replay.apply(changes, offsets, self._now())
            self._reading.position = changelog.position
            self._reading.records += len(changes)
            self._failpoint("R3")

    def _now(self) -> int:
        return int(self._local.clock.wall_ms())


def seek_behind(changelog: ChangelogReader, replay: Replay, ends: tuple[int, int]) -> None:
    """Read on behind the records that a replay has folded, or from the beginning.

    `ends` are where the log begins and ends, as it has just said.
    """
    if replay.begun:
        changelog.seek(replay.offset, manifest_at=replay.manifest_at, known=ends)
    else:
        changelog.seek(ends[0], known=ends)


def _leave_what_others_can_fire(replay: Replay, leaves: Callable[[bool], bool]) -> None:
    """Fence nobody who can fire a schedule that this worker cannot."""
    unable = replay.unreadable
    if leaves(bool(unable)):
        name, why = next(iter(unable.items()))
        raise LeftToOthers(
            f"{len(unable)} schedules cannot be fired by this worker"
            f" ({name.decode(errors='backslashreplace')}: {why}); the partition is left to one"
            " that can"
        )
