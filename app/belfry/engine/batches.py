"""Batches: the requests of a step on their way to intake, in the order of the source.

    batch ─┬─ cannot be read yet ──────► set aside (`aside.py`), or goes on unread
           └─ can be ─► hot tenants? ─┬─ plain ───► fast path, in one loop
                                      └─ others ──► intake, one by one, when their turn has come

Small requests may have large effects: a TRIGGER fires a payload that was stored.  Where a step has
no room left it stops amid the batch, and the next step begins there.  To read a batch anew for each
few that a step takes in would leave time for nothing else, so after such a step only a few are
read, and twice as many with each step that has room:

    batch of 2 000      step 1   reads 2 000, no room behind 40
    the 1 960 left      step 2   reads 64         step 3   reads 128       step 4   reads 256  …

Some requests take long to be judged: the first instant of a rule that leaves out nearly everything
is looked for in a hundred milliseconds, and a batch may hold thousands of such rules.  So the shell
says when a step's `time_is_up`, and the step stops amid the batch as well.  Others' events fire
before the next one.

Requests that were set aside and can be read by now come first in a step, in the order of their
lanes.  Their number is limited: others come between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from belfry.engine.admission import Admission
from belfry.engine.aside import Aside, Need, Unread
from belfry.engine.culprits import FAULTS, PLAIN, Culprits
from belfry.engine.fast_path import FastPath
from belfry.engine.intake import Intake
from belfry.engine.step import Step, never
from belfry.engine.traces import TracedIntake
from belfry.engine.unforeseen import read_all, read_whole
from belfry.engine.waiting import Waiting
from belfry.firing.hot_tenants import HotTenants
from belfry.schedules.rejections import Rejection
from belfry.wire.batch import SourceBatch
from belfry.wire.record import SourceRecord
from belfry.wire.requests import RequestReader

# Requests that a step looks at, behind one that had no room for all of its batch.
FEW: Final = 64
# Requests that were set aside and are taken in by one step: others come between.
MOST_ASIDE: Final = 500

# Records that the fast path leaves to the general way, each with its request as far as it was read.
Others = Generator[tuple[SourceRecord, Any]]


class GapInSource(Exception):
    """A batch does not begin where the last one ended: read again from the stored position."""


class WaysIn(NamedTuple):
    """The ways in: `taker` is `intake`, or the wrapper around it that tells of traces.

    `admission` has to know whether timestamps are the broker's; `waiting` isolates hot tenants.
    Where the fast path is among the `culprits`, a batch goes the general way: that finds the
    culprit.
    """

    fast_path: FastPath
    intake: Intake
    taker: Intake | TracedIntake
    admission: Admission
    waiting: Waiting
    culprits: Culprits


class Batches:
    """Takes the requests of one partition in; called by its thread alone."""

    def __init__(
        self,
        reader: RequestReader,
        aside: Aside,
        hot_tenants: HotTenants,
        ways: WaysIn,
        step_bytes: int,
    ) -> None:
        """A step takes in about `step_bytes` of effects; the last may be larger."""
        self._step_bytes = step_bytes
        self._reader = reader
        self._aside = aside
        self._hot_tenants = hot_tenants
        self._fast_path, self._intake, self._taker, self._admission = ways[:4]
        self._waiting, self._culprits = ways[4:]
        # How many requests the next step looks at, where the last one had no room for more.
        self._few: int | None = None

    def take_aside(
        self,
        step: Step,
        refused: Mapping[Need, Rejection],
        time_is_up: Callable[[], bool] = never,
    ) -> None:
        """Take in requests that were set aside and can be read, or are `refused`, by now."""
        for taken, (record, appended, why) in enumerate(self._aside.ready(refused), 1):
            self._admission.appended = appended
            self._taker.take(record, why or read_whole(self._reader, record, step), step)
            if step.effects.room <= 0 or taken == MOST_ASIDE or time_is_up():
                break

    def accept(
        self,
        batch: SourceBatch,
        step: Step,
        refused: Mapping[Need, Rejection] | None,
        time_is_up: Callable[[], bool] = never,
    ) -> None:
        """Take a batch in as far as there is room and time; the step's position follows.

        One request at least is taken in.  Raises GapInSource.
        """
        if batch.start != step.position:
            raise GapInSource(f"expected offset {step.position}, the batch begins at {batch.start}")
        effects = step.effects
        # A batch is bounded itself, so its own records fit; records that follow from it may not.
        effects.room = self._step_bytes + 2 * batch.size
        records, behind = batch.records, batch.next_position
        most = len(records) if self._few is None else self._few
        if self._culprits.some and time_is_up is not never:
            most = min(most, self._near_culprits(records))
        if len(records) > most:
            records, behind = records[:most], records[most][0]
        split = self._aside.split(records, refused, appended=batch.appended)
        batch_of_step = batch._replace(records=split.taken, next_position=behind)
        last, behind = self._take_in(batch_of_step, split.decided, step, time_is_up)
        self._aside.keep([each for each in split.waits if each.record[0] < behind])
        room = 0 if behind < batch_of_step.next_position else effects.room
        self._few = _next_few(self._few, behind < batch.next_position, room)
        effects.moved = effects.moved or behind != step.position
        step.position = behind
        if last is not None:
            step.heard_ms = max(step.heard_ms, last[1])

    def _near_culprits(self, records: Sequence[SourceRecord]) -> int:
        """How many of these to look at: not many behind the last one that made the step fail.

        There may be thousands of such requests, and those behind would be read anew for each of
        them.
        """
        last = self._culprits.last_request
        if last is None:
            return len(records)
        return max(FEW, bisect_right(records, last + FEW, key=itemgetter(0)))

    def _take_in(
        self,
        batch: SourceBatch,
        decided: Mapping[int, Rejection | Unread],
        step: Step,
        time_is_up: Callable[[], bool],
    ) -> tuple[SourceRecord | None, int]:
        """Take in as much as has room and time; the last record, and the offset behind it."""
        records = batch.records
        last = records[-1] if records else None
        requests: list[Any] = read_all(self._reader, records, step)
        if self._culprits.some and self._culprits.of(PLAIN, batch.start):
            requests = [
                read_whole(self._reader, record, step) if type(request) is tuple else request
                for record, request in zip(records, requests, strict=True)
            ]
        if decided:
            requests = [
                decided.get(record[0], request)
                for record, request in zip(records, requests, strict=True)
            ]
        for tenant in self._hot_tenants.found_in(requests, batch.start):
            self._waiting.isolate(tenant)
        self._admission.appended = batch.appended
        taking = self._others(batch.start, self._fast_path.keep(records, requests, step))
        for record, request in taking:
            if isinstance(request, Unread):
                self._intake.pass_on(record, request.home, step)
            else:
                plain = type(request) is tuple
                whole = read_whole(self._reader, record, step) if plain else request
                self._taker.take(record, whole, step)
            if record is not last and (step.effects.room <= 0 or time_is_up()):
                taking.close()
                return record, record[0] + 1
        return last, batch.next_position

    def _others(self, start: int, keeping: Others) -> Others:
        """Requests that the fast path leaves to the general way; where it raises, it is blamed."""
        try:
            yield from keeping
        except FAULTS as error:
            self._culprits.blame(error, (PLAIN, start))
            raise


def _next_few(few: int | None, left: bool, room: int) -> int | None:
    """How many requests the next step looks at, None for all of a batch."""
    if left and room <= 0:
        return FEW
    return None if few is None or not left else 2 * few
