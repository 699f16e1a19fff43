"""Standing by for a partition: its changelog followed warm, and its owner watched.

A thread reads the changelog as the owner writes it, checks it for holes, and folds it into the
local store now and then (`standby_upkeep.py`).  On promotion it hands its parts over (`Warm`):
store, replay, reader and a producer that knows the cluster.  Then the take-over folds the records
that the replay holds, and reads the owner's last ones.

Where the owner shows signs of life by agreement (`watch`), a standby that sees none for long enough
(`failure_detector.py`) raises an alarm and ends; its `Owners` then promote it, ahead of the group.

An example.  The group drops a dead worker after 10 s; its standby need not wait for that:

    W1, owner     step ─ step ─ killed
    W2, standby   row ── row ─── (0.9 s without a heartbeat) ─ fences ─ reads the rest ─ fires
    group         W1 owns ·························································· W2 owns
    time          0.0           0.3                          1.2       1.3              10.3 s

If W1 was only slow, it is fenced in the same way: its next commit is refused, and it gives up.  The
group still assigns the partition to W1, so W1 takes it back after a session, and the standby waits
twice as long the next time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from belfry.group.failure_detector import FailureDetector, Timeouts
from belfry.group.heartbeat_watch import HeartbeatWatch
from belfry.host.background import END, Background
from belfry.host.errors import named
from belfry.host.rocks import StoreFigures
from belfry.kafka.changelog_reader import UnreadableBatch
from belfry.kafka.log_bounds import AheadOfLog, LostRange, OutOfRange
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.standby_upkeep import LOOK_S, StandbyUpkeep
from belfry.partitions.term import Warm
from belfry.recovery.reading import ReplayProgress
from belfry.recovery.takeover import seek_behind
from belfry.store.identity import Contradiction
from belfry.store.layout.records import UnknownFormat
from belfry.store.ordered_map import Damaged
from belfry.store.replay import HoleInChangelog

READ_RECORDS: Final = 5_000
# Longest wait for records of the changelog, so that a stop is noticed.
WAIT_S: Final = 0.1
# Small batches cost more than they are worth: the rest is read on promotion.
GATHER_S: Final = 0.1
PAUSE_AFTER_ERROR_S: Final = 1.0
# A standby that is so close to the end of the changelog takes over in well under a second.
NEAR_RECORDS: Final = 20_000

log = structlog.get_logger(__name__)


class Standby:
    """Follows one partition until stopped, promoted or alarmed.

    `alarm` is called once, in the standby's thread, when the owner has been silent for too long.
    `silent` is True afterwards. `problem` is why it began anew, empty once it has caught up.
    """

    def __init__(
        self, partition: int, opener: PartitionOpener, alarm: Callable[[int], None]
    ) -> None:
        self.partition = partition
        self.problem = ""
        self.silent = False
        self.reading = ReplayProgress()
        self._opener = opener
        self._clock = opener.clock
        self._alarm = alarm
        self._watched: tuple[Timeouts, HeartbeatWatch | None] | None = None
        self._warm: Warm | None = None
        self._log = log.bind(partition=partition)
        name = f"standby-{partition}"
        self._thread = Background(name, self._turn, self._log, "a standby stumbled")
        self._thread.last = self._tell_of_silence
        self._stopping = self._thread.stopping

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def watch(self, timeouts: Timeouts | None, heartbeats: HeartbeatWatch | None = None) -> None:
        """Raise the alarm when the owner has been silent for so long; None: leave it to the group.

        From any thread; the pair is replaced as a whole.
        """
        self._watched = None if timeouts is None else (timeouts, heartbeats)

    def store(self) -> StoreFigures | None:
        """Figures of its store, None where it has none just now; from any thread."""
        warm = self._warm
        return None if warm is None else warm.rows.figures()

    @property
    def warm(self) -> bool:
        """Whether it is close enough to the end of the changelog to be promoted at once."""
        return self._warm is not None and self.reading.end - self.reading.position < NEAR_RECORDS

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.alive

    def ask_to_stop(self) -> None:
        """Stop soon; so several can be asked before the first one is waited for."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop following; the store is closed when this returns."""
        self._thread.stop()
        self._fold_what_is_held()
        warm = self.hand_over()
        if warm is not None:
            warm.close()

    def hand_over(self) -> Warm | None:
        """Stop following and give the open parts away; None where no usable part is open."""
        self._thread.stop()
        warm, self._warm = self._warm, None
        return warm

    def _turn(self) -> object:
        """Open the copy and follow, to the first failure or to the owner's silence."""
        try:
            self._follow()
        except (AheadOfLog, OutOfRange, Contradiction) as error:
            # This copy may be the only one of records that the log has lost: the next owner of the
            # partition looks closer.
            self._fold_what_is_held()
            self._drop(str(error))
        except (Damaged, HoleInChangelog, LostRange) as error:
            self._drop(str(error))
            self._opener.forget(self.partition, str(error))
        except UnknownFormat as error:
            # Only another version can go on with this partition, so nothing is thrown away.
            self._drop(str(error))
        except Exception as error:  # noqa: BLE001  # whatever it is, the changelog has it all
            self._fold_what_is_held()
            self._drop(named(error))
        return END if self.silent else None

    def _tell_of_silence(self) -> None:
        """The thread's last turn: raise the alarm, now that the reading has ended."""
        if self.silent:
            self._log.warning("the owner is silent")
            self._alarm(self.partition)

    def _fold_what_is_held(self) -> None:
        """Bring the copy up to the records that were read; a failure must not keep it open."""
        if self._warm is not None:
            with suppress(Exception):
                self._warm.replay.fold(int(self._clock.wall_ms()))

    def _drop(self, why: str) -> None:
        """Close all parts, and log why; the next turn opens the copy anew."""
        if why != self.problem:
            self._log.warning("a standby starts over", reason=why)
        self.problem = why
        warm, self._warm = self._warm, None
        if warm is not None:
            warm.close()
        self._stopping.wait(PAUSE_AFTER_ERROR_S)

    def _follow(self) -> None:
        """Read the changelog, until the standby is to stop or the owner is silent."""
        warm = self._opener.open_warm(self.partition, self._stopping.is_set)
        try:
            low, end = warm.changelog.ends()
            self.reading.started(warm.replay.offset if warm.replay.begun else low, end)
            seek_behind(warm.changelog, warm.replay, (low, end))
        except BaseException:
            warm.close()
            raise
        self._warm = warm
        upkeep = StandbyUpkeep(self.partition, self._opener, self.reading)
        detector = FailureDetector(self.partition, self._clock.monotonic_ms())
        while not self._stopping.is_set():
            self._read(warm, detector)
            upkeep.turn(warm, caught_up=self.warm)
            warm.producer.serve()
            if (watched := self._watched) is None:
                continue
            timeouts, heartbeats = watched
            detector.follow(heartbeats, timeouts)
            if self._silent(warm, detector):
                self.silent = True
                return

    def _read(self, warm: Warm, detector: FailureDetector) -> None:
        """Hold the new records, and note that the owner lives, or that Kafka is away."""
        before = warm.changelog.position
        try:
            messages = warm.changelog.read(READ_RECORDS, WAIT_S)
        except UnreadableBatch:
            raise
        except ConnectionError:
            # The cluster is away: records that were read stay, and the silence is not the owner's.
            detector.unanswered(self._clock.monotonic_ms())
            self._stopping.wait(WAIT_S)
            return
        now_ms = self._clock.monotonic_ms()
        detector.here(now_ms)
        if warm.changelog.position == before:
            return
        detector.heard(now_ms)
        changes, offsets = warm.changelog.changes(messages)
        position = warm.changelog.position
        warm.replay.hold(changes, offsets)
        reading = self.reading
        reading.position, reading.records = position, reading.records + len(changes)
        if position >= reading.end:
            reading.end = position
            if self.problem:
                self.problem = ""
            self._stopping.wait(GATHER_S)

    def _silent(self, warm: Warm, detector: FailureDetector) -> bool:
        """Whether the owner has shown no sign of life for as long as `watch` allows."""
        now_ms = self._clock.monotonic_ms()
        if detector.wants_look(now_ms):
            try:
                topic = self._opener.output_topics.changelog
                end = self._opener.log_ends.end(topic, self.partition, LOOK_S)
            except ConnectionError:
                detector.unanswered(self._clock.monotonic_ms())
                return False
            now_ms, asked_ms = self._clock.monotonic_ms(), now_ms
            detector.here(now_ms)
            detector.looked(asked_ms, now_ms, warm.changelog.position, end)
        # An owner that has never written a manifest may still be about to write its first.
        known = warm.replay.manifest is not None
        # A worker that cannot fire all schedules waits for the group, which knows one that can.
        return self.warm and known and not warm.replay.unreadable and detector.over(now_ms)
