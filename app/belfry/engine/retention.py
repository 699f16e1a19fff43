"""Retention: markers, verdicts and jobs whose time is over become tombstones.

A marker's time is a day, or less where its tenant says so; a verdict's an hour, an ended job's a
week.  They lie in the store by when they are over (`store/ends.py`), so a sweep reads the first of
them, looks up each name, and forgets the row where its time is over.  Pending rows are not read,
and a sweep with nothing to forget reads one row.

    12:00:00.000   sweep: 500 names whose time is over, 500 tombstones       behind: there are more
    12:00:00.100   sweep: the next 500, or as many as were written since, up to 2 000

A marker's and a verdict's time are those of requests: a request that repeats another, or is
throttled by a fire, may lie in the log for days before it is read.  So each row stays until a
request has been read that came so much later.  Each reader of a row judges its age, so forgetting
may be slow: it gives space back, and nobody waits for it.

A row whose time is not over yet although the store says so is kept on: its tenant remembers for
longer now.  One that is newer than the store says is another end of the same name, and the store
leads to that as well.

A store that was replayed, or written by an older release, does not know all of them.  Its owner
walks through all names once, a few with each sweep, from a cursor that goes back with the step:

    names     a  b  c  d  e  f  g          at most 3 with each sweep
    sweep 1   ───────►                     cursor c
    sweep 2            ───────►            cursor f
    sweep 3                     ──►        the end: from now on the store leads to all of them

It ends rows that are over and puts down when the others are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.engine.step import Step
from belfry.engine.undo import UndoLog
from belfry.store.layout.ends import BY_CLOCK, BY_REQUESTS, kept_ms_of, kept_since_ms
from belfry.store.layout.jobs import HEAD_OF_JOB
from belfry.store.layout.records import MARKER_MS, is_marker
from belfry.store.schedules import ScheduleStore

# A sweep after many ends takes more rows than it was given, up to so many times as many.
MOST_TIMES: Final = 4
# Clocks of two owners, and of brokers, differ by less.
APART_MS: Final = 3_600_000


class Retention:
    """Forgets the rows of one partition that are kept for a time."""

    def __init__(
        self,
        store: ScheduleStore,
        undo: UndoLog,
        remember_ms: Callable[[bytes], int] = lambda _name: MARKER_MS,
    ) -> None:
        """`remember_ms` says of a schedule's name for how long its end is remembered."""
        self._store = store
        self._remember_ms = remember_ms
        self._undo = undo
        state = store.state()
        store.ends.whole = store.ends.are_whole(None if state is None else state.changelog_offset)
        self._cursor: bytes | None = None
        self._walks_since_ms: int | None = None
        self._written = 0
        self._more = False

    @property
    def behind(self) -> bool:
        """Whether there is more to forget, or rows were written that a walk has not made up for."""
        return self._more or (self._written > 0 and not self._store.ends.whole)

    def wrote(self, rows: int) -> None:
        """So many more rows were written."""
        self._written += rows

    def sweep(self, step: Step, at_most: int) -> None:
        """Forget the next rows whose time is over, and walk on through `at_most` names."""
        for attribute in ("_written", "_more", "_cursor", "_walks_since_ms"):
            self._undo.attribute(self, attribute)
        walks, written = not self._store.ends.whole, self._written
        self._written = max(0, written - at_most) if walks else 0
        if not walks or self._walks_since_ms is not None:
            self._forget(step, min(max(at_most, written), MOST_TIMES * at_most))
        if walks:
            self._walk(step, at_most)

    def _forget(self, step: Step, at_most: int) -> None:
        """Take the first names whose time is over, by the order in the store."""
        take, heard_ms = self._store.ends.take, min(step.begins.heard_ms, step.now_ms)
        taken = list(take(BY_REQUESTS, heard_ms, at_most))
        self._more = sum([len(each.names) for each in taken]) >= at_most
        taken += take(BY_CLOCK, step.now_ms, at_most)
        said_ms: dict[bytes, int] = {}
        for newest_ms, names in sorted(taken):
            said_ms.update(dict.fromkeys(names, newest_ms))
        # A store finds neighbours faster than a mixture.
        names = sorted(said_ms)
        for name, row in zip(names, self._store.committed(names), strict=True):
            if row is not None:
                self._judge(name, row, said_ms[name], step)

    def _walk(self, step: Step, at_most: int) -> None:
        """Walk on through the names that a former owner may have written."""
        if self._walks_since_ms is None:
            # Rows that the store leads to from another time as an owner must not be led to twice.
            self._store.ends.begin_anew()
            self._walks_since_ms = step.now_ms
        rows = list(self._store.names(self._cursor, at_most))
        for name, row in rows:
            # Rows that have ended since the walk began are led to.
            self._judge(name, row, self._walks_since_ms, step)
        if len(rows) == at_most:
            self._cursor = rows[-1][0]
        else:
            self._undo.attribute(self._store.ends, "whole")
            self._store.ends.whole = True

    def _judge(self, name: bytes, row: bytes, newest_ms: int, step: Step) -> None:
        """Forget a row whose time is over, or keep it on, unless it is newer than that instant."""
        since_ms = kept_since_ms(row)
        # A row that the step has changed is led to by that change, or has no end.
        if since_ms is None or name in self._store.changed:
            return
        # All requests that came before it have been read, and their steps are committed.
        until_ms = min(step.begins.heard_ms, step.now_ms)
        if is_marker(row):
            kept_ms = self._remember_ms(name)
        else:
            kept_ms = kept_ms_of(row)
            until_ms = step.now_ms if row[:2] == HEAD_OF_JOB else until_ms
        if until_ms - since_ms >= kept_ms:
            self._store.note(name, None)
        elif since_ms <= newest_ms + APART_MS:
            self._store.ends.keep_on(name, since_ms, kept_ms)
