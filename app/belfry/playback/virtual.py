"""A partition on a virtual clock: requests at the instants at which they came, fires when due.

    clock 12:00:00.000   3 requests, appended then               accept
          12:00:04.500   the first of them is due                fire_due
          12:00:05.000   a policy changes                        the tenant is treated otherwise
          12:00:05.100   its rate lets one more go               fire_due

No worker is slow here, and none is away: an event that comes later than its instant does so by
policy.  So two such partitions that are given the same requests differ by their policies alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from belfry.engine.effects import Effects
from belfry.engine.job_counts import Budget
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.playback.attempts import CHUNK
from belfry.playback.logged import Unplayable
from belfry.playback.treatment import Treatment
from belfry.store.ordered_map import OrderedMap
from belfry.store.schedules import ScheduleStore
from belfry.wire.batch import SourceBatch
from belfry.wire.headers import TENANT
from belfry.wire.moves import is_move
from belfry.wire.requests import RequestReader

# A batch of so many bytes leaves room for all that its requests set off.
ROOM: Final = 1 << 40
# How often jobs go on and ended rows are forgotten, and how much of it at once.
JOBS_EVERY_MS: Final = 50
JOBS_BUDGET: Final = Budget(2_000, 200)
SWEEP_EVERY_MS: Final = 1_000
SWEEP_ROWS: Final = 500


class VirtualEvent(NamedTuple):
    """An event that fired on a virtual clock; `scheduled_at` and `occurrence` as in its headers."""

    identity: bytes
    tenant: str
    schedule_id: str
    scheduled_at: str
    occurrence: int
    fired_ms: int


class VirtualPartition:
    """Plays one partition; `told` hears of each event that fires, and of nothing else.

    `rows` is an empty map for the state.  `refused` counts refused requests by tenant.
    """

    def __init__(
        self,
        place: SourcePartition,
        rows: OrderedMap,
        reader: RequestReader,
        treatment: Treatment,
        told: Callable[[VirtualEvent], None],
    ) -> None:
        self.refused: Counter[str] = Counter()
        self._treatment = treatment
        self._told = told
        self._engine = PartitionEngine(place, ScheduleStore(rows), reader, treatment.tenants)
        self._now_ms = self._swept_ms = 0
        # Before it nothing is looked at: the last look found nothing that could be done.
        self._not_before_ms = 0

    def begin_at(self, position: int) -> None:
        """The first request lies at this offset, or behind it."""
        self._engine.begin_at(position)

    def to(self, until_ms: int) -> None:
        """Let time pass up to an instant, and fire due rows on the way."""
        while (next_ms := self._next_ms()) is not None and next_ms <= until_ms:
            self._at(next_ms)
            self._end(self._engine.fire_due(self._now_ms, CHUNK))
        self._at(until_ms)

    def take(self, batch: SourceBatch, at_ms: int) -> None:
        """Take requests in that came at an instant; rows due by then fire before.

        Raises `Unplayable` where a key group moves among them: here is one partition of those two.
        """
        if any(is_move(each) for each in batch.records):
            raise Unplayable(
                "A key group was on its way to or from the partition among these requests, and what"
                " it holds comes from another one: choose a range before or behind the move."
            )
        self.to(at_ms)
        self._engine.fire_due(self._now_ms, CHUNK)
        self._end(self._engine.accept(batch._replace(size=ROOM), self._now_ms))

    def _at(self, now_ms: int) -> None:
        self._now_ms = max(self._now_ms, now_ms)
        self._treatment.reach(self._treatment.due(self._now_ms))

    def _next_ms(self) -> int | None:
        """When something is to be done next; None for never."""
        engine = self._engine
        again_ms = self._now_ms + JOBS_EVERY_MS if engine.jobs.under_way else None
        instants = (engine.next_due_ms(), self._treatment.next_ms(), again_ms)
        known = [each for each in instants if each is not None]
        return max(min(known), self._not_before_ms) if known else None

    def _end(self, effects: Effects) -> None:
        """Commit the step, with the other work that is due."""
        engine, now_ms = self._engine, self._now_ms
        if engine.jobs.under_way:
            effects = engine.advance_jobs(now_ms, JOBS_BUDGET)
        if now_ms - self._swept_ms >= SWEEP_EVERY_MS:
            self._swept_ms = now_ms
            effects = engine.sweep(now_ms, SWEEP_ROWS)
        if effects.empty:
            self._not_before_ms = now_ms + 1
            return
        self._not_before_ms = 0
        manifest = engine.seal(1)
        engine.committed(manifest.txn_seq, now_ms)
        self.refused.update(effects.refused)
        for identity, (_, _, _, _, headers) in zip(effects.fire_ids, effects.fired, strict=True):
            self._told(_event(identity, dict(headers), now_ms))


def _event(identity: bytes, headers: Mapping[str, Any], now_ms: int) -> VirtualEvent:
    return VirtualEvent(
        identity,
        headers[TENANT].decode(),
        headers["belfry-schedule-id"].decode(),
        headers["belfry-scheduled-at"].decode(),
        int(headers["belfry-occurrence"]),
        now_ms,
    )
