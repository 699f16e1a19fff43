"""Gathering: a step fires several events of some tenants each, instead of one of each tenant.

A transaction pays for every output partition that it touches, whatever goes there: about as much as
for ten events.  Where thousands of tenants have more due than a step fires, a step in due order has
one event of each.  So it looks at more rows of the timeline, and takes those of the same tenants:

    room for 6    a  b  c  d  e  f │ a  b  c  d  e  f │ a  b  c  d  e  f        6 topics a step
    gathered      1  1  1  2  2  2   1  1  1  2  2  2   3  3  …                 fires in step n
                                                                                2 topics a step

- **Order.** The rows of a tenant leave in their order.  Tenants leave in that of their first rows.
- **Nobody waits for long.** The first due row always leaves first, and a step has no more than
  `MOST_EACH` of one tenant.  What a step fires lies among the next `WIDE` steps' rows.
- **The scan position** stays before the first row that has not left, so the next step meets it, and
  so does a new owner.  Rows behind it that have left are gone from the timeline.
- **No clock and no chance decides,** but rows, backlogs, topics of tenants and the room of a step.
  So a playback of the log comes to the same.  A step that has no time left ends sooner, as if it
  had less room.

Rows of tenants that do not fire, as their topic is missing, join their backlogs as far as the scan
position has passed them, as ever.  Backlogs leave in turns of their own (`queues.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final, Protocol

from belfry.engine.emit import Route, route_to
from belfry.engine.step import Step
from belfry.engine.waiting import Waiting
from belfry.firing.due import Most, Rows, ScanPosition, due_chunk
from belfry.store.layout.buckets import TENANT_AT, TENANT_SIZE_AT
from belfry.store.layout.keys import timeline_sort_key
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants

# A step in due order with so many events for each of its topics is not gathered.
ENOUGH_EACH: Final = 4
# So many rows tell that a step has few tenants; only where they do not, all of them are looked at.
FIRST_FEW: Final = 512
# Rows that are looked at, in steps of due order; and their bytes.
WIDE: Final = 8
WIDE_BYTES: Final = 32_000_000
# Events of one tenant in a gathered step.
MOST_EACH: Final = 16


class Routes(dict[bytes, Route]):
    """The routes of tenants in one step, each made when it is first asked for.

    A tenant that `sorts` waits, and so does one whose topic is not there.
    """

    def __init__(self, tenants: StepTenants, sorts: Mapping[bytes, bool], step: Step) -> None:
        super().__init__()
        self._tenants = tenants
        self._sorts = sorts
        self._step = step

    def __missing__(self, name: bytes) -> Route:
        """The route of a tenant that was not asked for yet."""
        tenant = self._tenants.of_bytes(name)
        waits = tenant.aside or name in self._sorts
        route = self[name] = route_to(tenant, self._step, waits=waits)
        return route


class Leave(Protocol):
    """Fires rows of the timeline or holds them back; how many it leaves where they are.

    Where it `stops`, it leaves rows there that would be held back since they come too late for the
    step.
    """

    def __call__(self, rows: Rows, routes: Routes, step: Step, *, stops: bool = False) -> int: ...


class Gathering:
    """Fires what is due in one partition's timeline tenant by tenant; `leave` does it."""

    def __init__(
        self, store: ScheduleStore, tenants: StepTenants, waiting: Waiting, leave: Leave
    ) -> None:
        self._store = store
        self._tenants = tenants
        self._waiting = waiting
        self._leave = leave

    def pays(self, rows: Rows, sorts: Mapping[bytes, bool]) -> bool:
        """Whether a step that fires these rows would have few events for each of its topics.

        Tenants that have priorities (`sorts`) are sorted while the scan goes ahead, so it must not
        wait for others.
        """
        first = rows[:FIRST_FEW]
        if len(set(_tenants_of(first))) * ENOUGH_EACH <= len(first):
            return False
        tenants, topic_of = set(_tenants_of(rows)), self._tenants.of_bytes
        topics = {topic_of(name).topic for name in tenants}
        return 1 < len(topics) > len(rows) / ENOUGH_EACH and sorts.keys().isdisjoint(tenants)

    def fire(self, before: ScanPosition, room: int, routes: Routes, step: Step) -> ScanPosition:
        """Let at most so many rows leave, and hold at most as many back besides.

        Returns how far the timeline is emptied.
        """
        timeline = self._store.timeline(before.next, step.now_ms)
        window = due_chunk(timeline, before, step.now_ms, Most(WIDE * room, WIDE_BYTES))
        tenants = _tenants_of(window.rows)
        gone = bytearray(len(tenants))
        begun, taken, effects = len(step.effects.fired), 0, step.effects
        for tenant, run in runs_of(tenants).items():
            # A row may fire several times, or not at all: it is locked, or too late.
            left = room - max(taken, len(effects.fired) - begun)
            if left <= 0 or effects.room <= 0 or (taken and step.time_is_up()):
                break
            if not self._waits(tenant, routes):
                rows = [window.rows[number] for number in run[:left]]
                went = len(rows) - self._leave(rows, routes, step, stops=True)
                taken += went
                for number in run[:went]:
                    gone[number] = 1
        first = self._hold_back(window.rows, gone, room, routes, step)
        self._store.take_apart(list(compress(window.rows, gone)))
        if first is None:
            return window.position
        due_ms, seq = timeline_sort_key(first)
        return ScanPosition(max(due_ms - 1, before.watermark_ms), (due_ms, seq))

    def _hold_back(
        self, rows: Rows, gone: bytearray, room: int, routes: Routes, step: Step
    ) -> bytes | None:
        """Hold back rows that wait before the first row that stays; the key of that, or None.

        Rows that lie behind it come to their turn later.
        """
        number = gone.find(0)
        while number >= 0:
            row = rows[number]
            if not room or not self._waits(_tenants_of([row])[0], routes):
                return row[0]
            self._leave([row], routes, step)
            gone[number], room = 1, room - 1
            number = gone.find(0, number)
        return None

    def _waits(self, tenant: bytes, routes: Routes) -> bool:
        return tenant in self._waiting.backlog or routes[tenant].waits


def runs_of(tenants: Sequence[bytes]) -> dict[bytes, list[int]]:
    """The numbers of the first few rows of each tenant, in the order of their first rows.

    >>> runs_of([b"a", b"b", b"a"])
    {b'a': [0, 2], b'b': [1]}
    """
    runs: dict[bytes, list[int]] = {}
    for number, tenant in enumerate(tenants):
        run = runs.get(tenant)
        if run is None:
            runs[tenant] = [number]
        elif len(run) < MOST_EACH:
            run.append(number)
    return runs


def _tenants_of(rows: Rows) -> list[bytes]:
    return [record[TENANT_AT : TENANT_AT + record[TENANT_SIZE_AT]] for _, record in rows]
