"""Taking a partition over, in the order that makes it safe.

    catch up unfenced ─ fence ─ ask for the changelog's end ─ read up to it ─ seek the source

An end that is asked for before the fence lets the former owner commit in between, and the event
fires twice.  Local state that is holed is set aside and rebuilt from the changelog; what the
changelog itself cannot tell consistently stops the partition.  A standby's work (`Warm`) makes the
catch-up short and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from belfry.engine.ownership import Event
from belfry.store.records import Manifest
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore
from belfry.worker.failpoints import Failpoints
from belfry.worker.local_state import LocalState
from belfry.worker.partition_log import LostRange, PartitionLog
from belfry.worker.reading import Reading
from belfry.worker.rocks import Damaged, RocksMap
from belfry.worker.transactions import PartitionProducer

READ_RECORDS: Final = 20_000


@dataclass(slots=True)
class Recovered:
    """A partition's store at the end of its changelog; no manifest where it never had an owner."""

    rows: RocksMap
    store: ScheduleStore
    manifest: Manifest | None
    settings: bytes | None


class TakeOver:
    """Brings one partition's store to the end of its changelog, fenced."""

    def __init__(
        self,
        local: LocalState,
        reading: Reading,
        failpoints: Failpoints,
        moved: Callable[[Event], None],
    ) -> None:
        self._local = local
        self._reading = reading
        self._failpoint = failpoints.reach
        self._moved = moved

    def run(
        self,
        changelog: PartitionLog,
        producer: PartitionProducer,
        warm: tuple[RocksMap, Replay] | None = None,
    ) -> Recovered:
        """Fence and recover; raises HoleInChangelog where a rebuild from nothing fails too."""
        rows = self._local.open() if warm is None else warm[0]
        try:
            try:
                replay = self._catch_up(rows, changelog, None if warm is None else warm[1])
            except (Damaged, HoleInChangelog, LostRange) as error:
                rows = self._local.anew(rows, str(error))
                replay = self._catch_up(rows, changelog)
            self._moved(Event.CAUGHT_UP)
            producer.open()
            self._moved(Event.FENCED)
            self._failpoint("R2")
            try:
                self._finish(replay, changelog)
            except (Damaged, HoleInChangelog, LostRange) as error:
                rows = self._local.anew(rows, str(error))
                replay = self._catch_up(rows, changelog)
                self._finish(replay, changelog)
        except BaseException:
            rows.close()
            raise
        return Recovered(rows, ScheduleStore(rows), replay.manifest, replay.settings)

    def _catch_up(
        self, rows: RocksMap, changelog: PartitionLog, begun: Replay | None = None
    ) -> Replay:
        """Read what lies in the changelog, whoever owns the partition."""
        low, end = changelog.ends()
        replay = begun
        if replay is None:
            replay = Replay(ScheduleStore(rows))
            changelog.seek(replay.offset if replay.begun else low)
        self._reading.started(changelog.position, end)
        self._read(replay, changelog, end)
        return replay

    def _finish(self, replay: Replay, changelog: PartitionLog) -> None:
        """Read the rest; nobody else writes any more."""
        end = changelog.ends()[1]
        self._reading.end = end
        self._read(replay, changelog, end)
        replay.finish(self._now())

    def _read(self, replay: Replay, changelog: PartitionLog, end: int) -> None:
        for messages in changelog.read_until(end, READ_RECORDS):
            changes = [(m.key() or b"", m.value()) for m in messages]
            offsets: Any = [m.offset() for m in messages]
            replay.apply(changes, offsets, changelog.position, self._now())
            self._reading.position = changelog.position
            self._reading.records += len(changes)
            self._failpoint("R3")

    def _now(self) -> int:
        return int(self._local.clock.wall_ms())
