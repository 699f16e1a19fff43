"""Day files of one partition: payloads that are due far ahead go there, and come back in time.

    every turn    a file that a due schedule waits for is read first, then files of the next day
                  else the rows further ahead are gathered, day by day
    far ahead     gathered ─► written, and read back ─► put aside, some hundred rows a step
    within a day  the file that the next such row names ─► read whole ─► put back, the same way

A turn is a moment of the partition's loop.  The store is asked in a thread, and the partition fires
meanwhile.  A step changes some hundred rows, about one step each tenth of a second, so that no due
event waits for it.

Where the store is away, payloads due far ahead stay in their rows, and nothing is lost.  A file
that is to come back is asked for again and again; schedules that need it fire as soon as it is
there, late and whole.  A file that cannot be read, or was changed, holds up no other.

A step that was rolled back is done again: a part of a file counts as done once a look at it finds
no row that is left to be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from os import urandom
from typing import Any, Final

import structlog

from belfry.engine.day_files import PutAside
from belfry.engine.effects import Effects
from belfry.engine.partition import PartitionEngine
from belfry.host.errors import named
from belfry.outputs.day_store import Asked, DayStore
from belfry.partitions.day_file_changes import RowChange, filed, parts_of
from belfry.partitions.day_file_walks import Walks
from belfry.partitions.parts import PartitionDependencies
from belfry.store.layout.day_files import Entry, read_file
from belfry.store.layout.day_reference import DayFile
from belfry.telemetry.day_file_metrics import DayFileMetrics

# Parts of a change that a turn looks through until it finds one with rows to change.
LOOK_PARTS: Final = 4
# Between turns: where rows are changed, where it only looks, and while the store is asked.
TURN_MS: Final = 100.0
LOOK_MS: Final = 250.0
SOON_MS: Final = 20.0
# While so many questions are left behind without an end, a silent store is asked no further one.
MOST_LEFT: Final = 3
RUNBOOK: Final = "docs/runbooks/BelfryDayFilesNotRead.md"

log = structlog.get_logger(__name__)


class DayFileTurns:
    """The turns of one partition for its day files; belongs to the thread of its loop.

    Instants are monotonic ms but for `wall_ms`.  With `after_days` 0 all payloads come back.
    """

    def __init__(
        self,
        store: DayStore,
        partition: int,
        after_days: int,
        metrics: DayFileMetrics,
        failpoint: Callable[[str], None] = lambda _step: None,
    ) -> None:
        self._failpoint = failpoint
        # Questions whose answer is not awaited any longer, and that have not ended.
        self._left: list[Asked[Any]] = []
        self._asked: Asked[bytes | None] | None = None
        self._store = store
        self._partition = partition
        self._after_days = after_days
        self._metrics = metrics
        self._log = log.bind(partition=partition)
        self.begin()

    def begin(self) -> None:
        """A term of ownership begins: unfinished work of an earlier one is forgotten."""
        self._next_ms = 0.0
        self._walks = Walks(self._after_days)
        self._leave_behind()
        self._filed: tuple[DayFile, list[PutAside]] | None = None
        self._read: DayFile | None = None
        self._change: RowChange | None = None

    @property
    def pause_s(self) -> float:
        """The longest pause until the next turn."""
        if self._asked is not None:
            return SOON_MS / 1000
        return TURN_MS / 1000 if self._change is not None else LOOK_MS / 1000

    def add_to(
        self,
        engine: PartitionEngine,
        effects: Effects | None,
        now_ms: float,
        ask_wall_ms: Callable[[], int],
    ) -> Effects | None:
        """The effects of the step, with the work on day files that is to be done now."""
        if now_ms < self._next_ms:
            return effects
        self._next_ms, wall_ms = now_ms + TURN_MS, ask_wall_ms()
        self._metrics.awaited(self._partition, len(engine.day_files.awaited))
        if self._change is not None:
            return self._go_on(engine, self._change, now_ms, wall_ms) or effects
        if self._asked is not None:
            if self._asked.over():
                self._answered(engine, self._asked, now_ms)
            self._next_ms = now_ms + SOON_MS
            return effects
        self._look(engine, now_ms, wall_ms)
        return effects

    # -- the next file ---------------------------------------------------------------------------

    def _look(self, engine: PartitionEngine, now_ms: float, wall_ms: int) -> None:
        """Find a file to be read, or gather for one to be written."""
        self._next_ms = now_ms + LOOK_MS
        self._left = [each for each in self._left if not each.ended]
        if len(self._left) >= MOST_LEFT:
            return
        wanted = self._walks.wanted(engine.day_files, now_ms, wall_ms)
        if wanted is not None:
            self._read = wanted
            self._asked = Asked(lambda: self._store.read(wanted))
            return
        found = self._walks.gathered(engine.day_files, now_ms, wall_ms)
        if found is None:
            return
        file = DayFile(found.day or 0, self._partition, urandom(8))
        data, rows = filed(found, file)
        self._filed = file, rows
        self._asked = Asked(lambda: self._store.write(file, data))

    # -- the store's answers ---------------------------------------------------------------------

    def _answered(self, engine: PartitionEngine, asked: Asked[bytes | None], now_ms: float) -> None:
        written, read = self._filed, self._read
        self._leave_behind()
        self._filed = self._read = None
        if written is not None:
            self._written(written, asked.error, now_ms)
        elif read is not None:
            self._has_read(engine, read, asked, now_ms)

    def _leave_behind(self) -> None:
        """Do not wait for the store's answer any longer; questions that never end are counted."""
        if self._asked is not None and not self._asked.ended:
            self._left.append(self._asked)
        self._asked = None

    def _written(
        self, written: tuple[DayFile, list[PutAside]], error: Exception | None, now_ms: float
    ) -> None:
        file, rows = written
        if error is None:
            self._failpoint("D1")
            self._metrics.files("written")
            self._change = RowChange(file, parts_of(rows), back=False)
            return
        self._metrics.files("write_failed")
        self._walks.failed(now_ms)
        self._log.warning(
            "a day file was not written: payloads stay in Kafka", reason=named(error)[:300],
            setting="BELFRY_DAY_STORE", to_do="see whether the store can be written to and read",
        )  # fmt: skip

    def _has_read(
        self,
        engine: PartitionEngine,
        file: DayFile,
        asked: Asked[bytes | None],
        now_ms: float,
    ) -> None:
        error, entries = asked.error, list[Entry]()
        if error is None:
            try:
                entries = list(read_file(asked.answer or b""))
            except ValueError as broken:
                error = broken
        self._walks.has_read(file, now_ms)
        if error is None:
            self._metrics.files("read")
            self._change = RowChange(file, parts_of(entries), back=True)
            return
        self._metrics.files("read_failed")
        self._log.error(
            "a day file cannot be read back: schedules that need it wait",
            file=self._store.path_of(file), reason=named(error)[:300], setting="BELFRY_DAY_STORE",
            awaited=file in engine.day_files.awaited, to_do=RUNBOOK,
        )  # fmt: skip

    # -- changes of rows -------------------------------------------------------------------------

    def _go_on(
        self, engine: PartitionEngine, change: RowChange, now_ms: float, wall_ms: int
    ) -> Effects | None:
        """Do the next part of a change that has rows left to change; None where no part has."""
        for part in change.parts[change.at : change.at + LOOK_PARTS]:
            if change.back:
                effects = engine.put_back(wall_ms, change.file, part)
            else:
                effects = engine.put_aside(wall_ms, part)
            rows = engine.day_files
            if rows.changed:
                self._failpoint("D2")
                change.changed = rows.changed
                return effects
            self._metrics.payloads("back" if change.back else "aside", change.changed)
            change.damaged, change.changed = change.damaged + rows.damaged, 0
            change.at += 1
        self._next_ms = now_ms
        if change.at == len(change.parts):
            self._end(engine, change)
        return None

    def _end(self, engine: PartitionEngine, change: RowChange) -> None:
        self._change = None
        if not change.back:
            return
        if change.damaged:
            self._metrics.files("damaged")
            self._log.error(
                "payloads in a day file differ from those put there: their schedules wait",
                file=self._store.path_of(change.file), payloads=change.damaged,
                to_do=RUNBOOK,
            )  # fmt: skip
        else:
            engine.day_files.awaited.pop(change.file, None)


def turns_of(given: PartitionDependencies, partition: int) -> DayFileTurns | None:
    """The turns of a partition for its day files, None where no store is set for them."""
    if given.day_store is None:
        return None
    after_days = given.settings.day_store_after_days
    told = given.metrics.day_files, given.failpoints.reach
    return DayFileTurns(given.day_store, partition, after_days, *told)
