"""Walks through a partition's rows: which file has to be read, and which rows are worth a file.

    near    files that a due schedule waits for, or a request asks back,
            then those of rows due within a day                               a file to be read
            where no rows go into files, also those of paused rows: all come back
    far     from the first whole day behind the days that are set, day by day  rows for a file

A turn takes some rows of a walk.  Behind the last one it rests, and begins anew.  A file that was
asked for is not asked for again for some seconds, so one that cannot be read holds up no other.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.day_files import LAST_MS, DayFileRows, Gathered, Place, day_after
from belfry.store.layout.day_reference import DAY_MS, DayFile

# How far ahead of now payloads come back.
AHEAD_MS: Final = DAY_MS
# Rows that a turn looks at.
LOOK_ROWS: Final = 1_000
# A day with fewer bytes of payload than this is not worth a file yet.
LEAST_FILE_BYTES: Final = 64_000
# The time between two walks through near rows, and through far ones.
NEAR_EVERY_MS: Final = 10_000.0
FAR_EVERY_MS: Final = 600_000.0
# A failure is tried again after so long, and a file that was read is not read again before.
RETRY_MS: Final = 10_000.0
_BEGIN: Final = Place()


class Walks:
    """The positions of both walks of one partition; instants are monotonic ms but for `wall_ms`.

    With `after_days` 0 no row is far, and all are near.
    """

    def __init__(self, after_days: int) -> None:
        self._after_days = after_days
        self._near: Place | None = _BEGIN
        self._far: Place | None = _BEGIN
        self._near_again_ms = self._far_again_ms = 0.0
        # The paused row that the walk has reached, None where it is not among paused rows.
        self._paused: bytes | None = None
        self._gathered = Gathered()
        self._not_before: dict[DayFile, float] = {}

    def wanted(self, rows: DayFileRows, now_ms: float, wall_ms: int) -> DayFile | None:
        """The file to be read next, if this turn finds one."""
        for file in [each for each, at_ms in self._not_before.items() if at_ms <= now_ms]:
            del self._not_before[file]
        asked_for = *rows.awaited, *rows.recalled
        found = next((each for each in asked_for if each not in self._not_before), None)
        if self._near is None and self._paused is None and now_ms >= self._near_again_ms:
            self._near = _BEGIN
        if found is None and self._near is not None:
            until_ms = wall_ms + AHEAD_MS if self._after_days else LAST_MS
            found, self._near = rows.lying(self._near, until_ms, LOOK_ROWS, self._not_before)
            if self._near is None:
                self._near_again_ms = now_ms + NEAR_EVERY_MS
                self._paused = None if self._after_days else b""
        elif found is None and self._paused is not None:
            found, self._paused = rows.lying_paused(self._paused, LOOK_ROWS, self._not_before)
        if found is not None:
            rows.recalled.pop(found, None)
        return found

    def has_read(self, file: DayFile, now_ms: float) -> None:
        """A file was asked for; whether it was read or not, it has its turn again later."""
        self._not_before[file] = now_ms + RETRY_MS

    def gathered(self, rows: DayFileRows, now_ms: float, wall_ms: int) -> Gathered | None:
        """Gather on; returns the rows that are worth a file now, or None."""
        if not self._after_days or now_ms < self._far_again_ms:
            return None
        first = day_after(wall_ms, self._after_days)
        self._far = rows.gather(self._far or _BEGIN, first, self._gathered, LOOK_ROWS)
        if self._far is None:
            self._far_again_ms = now_ms + FAR_EVERY_MS
        if not self._gathered.full:
            return None
        found, self._gathered = self._gathered, Gathered()
        return found if found.bytes >= LEAST_FILE_BYTES else None

    def failed(self, now_ms: float) -> None:
        """A file was not written: its rows are gathered again, with the next walk."""
        self._far, self._far_again_ms = None, now_ms + RETRY_MS
        self._gathered = Gathered()
