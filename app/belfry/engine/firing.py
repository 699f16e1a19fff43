"""Firing: due rows leave the store and become fired records, markers and outcomes.

    backlogs (held back, late)  ┐                         ┌ fired record   (tenant's topic)
    timeline (due by now)       ┴─► one chunk per step ──►│ marker, or the next occurrence
                                                          └ FIRED outcome  (if the tenant wants it)

A tenant's backlog leaves before its timeline, both in due order; while some of a backlog is left,
rows of that tenant that come due join it.  Blocked tenants' events wait in the backlog, others
fire.

Every row goes the same way, whatever its tenant wants and whether it recurs:

    decode ─► route of its tenant ─┬─ waits: the backlog
                                   ├─ its group is locked: behind the lock
                                   ├─ no rule, a plain payload: fires, and is over
                                   └─ else: decrypted, fires or is judged, and what follows is kept

One step with room for 1 000 events, where 1 500 of the timeline are due and tenant `b` has a
backlog of 300:

    backlogs first     b may have half of the room while the timeline has something due: 300 leave
    timeline           700 leave; had `b` something left in its backlog, what is due of `b` here
                       would join it, behind what waits there
    next step          the other 800, from where the scan stopped

Where thousands of tenants have something due, and there is no room for all of it, a step fires
several events of some of them (`gathering.py`).

Some events take long to fire, for their next instant is far to find.  A step whose time is up ends
behind the rows that have left, as one with less room does.

The step reads only committed rows.  So no row is met twice in a step, and a cancel of the same
step comes too late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from belfry.engine.awaited_fires import ack_timed_out
from belfry.engine.culprits import DUE, FAULTS, Culprits
from belfry.engine.emit import Route, route_to
from belfry.engine.gathering import Gathering, Routes
from belfry.engine.locks import group_lock
from belfry.engine.occurrences import Occurrences
from belfry.engine.queues import SHORT_STEP, Look, Queues, Turn
from belfry.engine.step import Step
from belfry.engine.waiting import PutBack, Waiting
from belfry.firing.due import Chunk, Most, Rows, ScanPosition, due_chunk, first_of
from belfry.store.layout.keys import SortKey, sort_key
from belfry.store.layout.pending import Pending, as_pending, decode_pending, decode_row, named
from belfry.store.layout.pending_bytes import fires_once, is_plain_one_shot
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants

# Chunks of the timeline in one step: while rows that were read are moved, to be sorted by priority,
# the scan goes on, so that it is ahead of the fires.  It stops where so many rows were moved for
# each event that the step may fire: moving costs time as well.
MOST_CHUNKS: Final = 8
MOST_MOVED: Final = 2
# Rows that leave before a step asks whether its time is up.
AT_A_TIME: Final = 32
NOBODY: Final[Mapping[bytes, bool]] = {}


class Firing:
    """Fires the due rows of one partition's store; called by the partition's thread alone."""

    def __init__(
        self,
        store: ScheduleStore,
        tenants: StepTenants,
        waiting: Waiting,
        queues: Queues,
        occurrences: Occurrences,
        culprits: Culprits,
    ) -> None:
        self._store = store
        self._culprits = culprits
        self._tenants = tenants
        self._waiting = waiting
        self._queues = queues
        self._occurrences = occurrences
        self._gathering = Gathering(store, tenants, waiting, self._leave_timeline)

    def fire_due(self, step: Step, at_most: int) -> ScanPosition:
        """Fire at most `at_most` events that are due; returns how far the timeline is emptied.

        At least one row of the timeline is looked at, so a large backlog cannot stop it for good.
        """
        self._occurrences.begin(step)
        room = at_most
        if self._waiting.backlog:
            first_ms = self._store.first_due_ms(step.scan.next)
            share = self._queues.room(at_most, first_ms, step.now_ms)
            room -= self._fire_backlogs(share, step)
            if self._waiting.hints:
                room = min(room, SHORT_STEP)
        position, moved = step.scan, 0
        for _ in range(MOST_CHUNKS):
            timeline = self._store.timeline(position.next, step.now_ms)
            most = Most(max(1, room), max(1, step.effects.room))
            chunk = due_chunk(timeline, position, step.now_ms, most)
            # More is due than these rows.
            crowded = chunk.position.watermark_ms < step.now_ms
            sorts = self._waiting.levels.used if crowded else NOBODY
            routes = Routes(self._tenants, sorts, step)
            if crowded and step.effects.room > 0 and self._gathering.pays(chunk.rows, sorts):
                return self._gathering.fire(position, most.rows, routes, step)
            before = len(step.effects.fired)
            chunk = self._leave_in_time(chunk, position, routes, step)
            position, fired = chunk.position, len(step.effects.fired) - before
            room, moved = room - fired, moved + len(chunk.rows) - fired
            if moved >= MOST_MOVED * at_most or step.time_is_up():
                break
            if room <= 0 or step.effects.room <= 0 or sorts.keys().isdisjoint(routes):
                break
        return position

    def end_waits(self, step: Step) -> None:
        """End a step of firing: end waits that are overdue, and let rows go that may leave."""
        locks = self._waiting.locks
        for key, awaited in list(locks.overdue(step.now_ms)):
            self._waiting.let_go(locks.open(key))
            ack_timed_out(key, awaited, self._tenants, step)
        let_go = locks.release()
        self._waiting.let_go(let_go)
        step.effects.moved = step.effects.moved or bool(let_go)

    def _leave_in_time(
        self, chunk: Chunk, before: ScanPosition, routes: Routes, step: Step
    ) -> Chunk:
        """Let rows leave, as many as there is time for; those, and the position behind them."""
        rows = chunk.rows
        for number in range(0, len(rows), AT_A_TIME):
            self._leave_timeline(rows[number : number + AT_A_TIME], routes, step)
            if number + AT_A_TIME < len(rows) and step.time_is_up():
                chunk = first_of(chunk, number + AT_A_TIME, before)
                break
        self._store.take(chunk.rows)
        return chunk

    def _leave_timeline(
        self, rows: Rows, routes: Routes, step: Step, *, stops: bool = False
    ) -> int:
        """Fire or judge due rows, or hold them back; how many stay where they are.

        Where it `stops`, the first row that is held back stays, with all that follow.
        """
        waiting, effects, locks = self._waiting, step.effects, self._waiting.locks
        backlog, occurrences = waiting.backlog, self._occurrences
        fire_once, leave, known = occurrences.fires.fire_once, occurrences.leave, routes.get
        following, odd, record = iter(rows), self._culprits.some, b""
        try:
            for _, record in following:
                row = decode_row(record)
                (due_ms, _, _, _, _, _, _, _, _, _,
                 tenant, _, group, _, _, _, extra, _) = row  # fmt: skip
                if odd and occurrences.hold_failed(as_pending(row), record, step):
                    continue
                route = known(tenant) or routes[tenant]
                if route.waits or tenant in backlog or effects.room <= 0:
                    if stops:
                        return 1 + len(list(following))
                    waiting.hold(as_pending(row), record)
                    effects.moved = True
                elif group and locks.holds_back(due := as_pending(row)):
                    locks.hold(group_lock(due), due, record)
                    effects.moved = True
                elif extra or not is_plain_one_shot(record):
                    leave(named(row, record), record, due_ms, route, step)
                else:
                    fire_once(row, route, step)
        except FAULTS as error:
            self._culprits.blame(error, (DUE, record))
            raise
        return 0

    def _fire_backlogs(self, at_most: int, step: Step) -> int:
        fired = 0
        for turn, turns in self._queues.turns(step):
            if fired >= at_most or step.effects.room <= 0 or (fired and step.time_is_up()):
                break
            share = Most((at_most - fired) // turns, step.effects.room // turns)
            fired += self._take_turn(turn, share, step)
        return fired

    def _take_turn(self, turn: Turn, share: Most, step: Step) -> int:
        """Fire a turn's share, level by level; how many occurrences have left."""
        waiting, seen, gone, fired = self._waiting, 0, 0, 0
        rows, size = max(1, min(share.rows, turn.most)), share.size
        for level in self._queues.levels(turn):
            look = self._queues.peek(turn, level, Most(rows - fired, size))
            left, did = self._leave_level(turn, look, step)
            taken = look.rows[:left]
            self._store.take(taken)
            self._queues.took(turn, look, left, did, step)
            seen, gone, fired = seen + len(look.rows), gone + left, fired + did
            more = look.beyond_ms <= turn.until_ms
            if more or fired >= rows or step.effects.room <= 0 or turn.name in waiting.slowed:
                break
            if fired and step.time_is_up():
                # Before, all levels are looked at: nothing in one says nothing of the others.
                break
            size = max(1, size - sum([len(record) for _, record in taken]))
        if gone or not (seen or turn.behind or turn.name in waiting.hints):
            waiting.shrink(turn.name, gone)
        return fired

    def _leave_level(self, turn: Turn, look: Look, step: Step) -> tuple[int, int]:
        """Fire a turn's rows and their successors, in due order, up to one that has to wait.

        How many of the rows have left, and how many occurrences have left in all.
        """
        waiting, effects, left, done = self._waiting, step.effects, 0, 0
        route = route_to(turn.tenant, step)
        waiting.begin_turn()
        while done < look.most and (effects.room > 0 or not done):
            following = _next_of(look, left, waiting.next_put_back)
            if following is None:
                break
            place, record, again = following
            if again and place[0] > step.now_ms:
                break
            if done and not done % AT_A_TIME and step.time_is_up():
                break
            row = decode_pending(record)
            if waiting.overtakes(place, turn.name, step):
                break
            try:
                if self._has_to_slow(row, record, turn, step):
                    break
                if again:
                    waiting.take_put_back()
                left, done = left + (not again), done + 1
                self._leave_place(row, record, place[0], route, step)
            except FAULTS as error:
                self._culprits.blame(error, (DUE, record))
                raise
        waiting.end_turn()
        return left, done

    def _leave_place(
        self, row: Pending, record: bytes, place_ms: int, route: Route, step: Step
    ) -> None:
        """Fire or judge a row of a backlog, or hold it behind its group's lock."""
        placed = row if row.due_ms == place_ms else row.at(place_ms, row.nominal_ms)
        locks = self._waiting.locks
        if self._culprits.some and self._occurrences.hold_failed(placed, record, step):
            return
        if locks.holds_back(placed):
            locks.hold(group_lock(placed), placed, record)
            step.effects.moved = True
        elif fires_once(record) and is_plain_one_shot(record):
            self._occurrences.fires.fire_once(row, route, step)
        else:
            self._occurrences.leave(row, record, place_ms, route, step)

    def _has_to_slow(self, row: Pending, record: bytes, turn: Turn, step: Step) -> bool:
        """Whether a row of a backlog waits for the rate; one that is to be held does not."""
        if self._culprits.some and self._culprits.of(DUE, record) is not None:
            return False
        return self._occurrences.has_to_slow(row, record, turn, step)


def _next_of(look: Look, left: int, again: PutBack | None) -> tuple[SortKey, bytes, bool] | None:
    """The row that leaves next, if any may: place, record, and whether it was put back before."""
    if left < len(look.rows):
        key, record = look.rows[left]
        place = sort_key(key)
        if again is None or place < again[0]:
            return place, record, False
    elif again is None or again[0][0] >= look.beyond_ms:
        return None
    return again[0], again[2], True
