"""Giving a key group away: its rows leave in slices, each of them in a transaction.

    GIVE ─► looked through ─┬─ something is in the way ─► FORGET to the target, GIVEN says why
                            └─ nothing is ─► slice ─► slice ─► … ─► END to the target, GIVEN

A slice writes rows into the input of the target and removes them here, in one transaction, so each
row lies in one changelog or on its way to the other.  From GIVE to the end nothing of the group
fires here, and requests wait at its home.  So the rest only gets less, and is found anew by a look
at the store: a new owner, or a step that is rolled back, goes on without a cursor.

    first     what waits, each in a record of its own, in the order in which it was asked for: at
              the target the offset of that record takes the place of the request's
    then      markers, answers to request ids, ended jobs
    then      fires that are awaited
    last      calendars

In the way is anything that would stop amid a move, or come apart: a request that waits for its
schema, a job under way, a row too large for a record, more rows or tenants than lateness allows.
Tenants that are spread stay at the home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from belfry.engine.aside import Aside
from belfry.engine.effects import Rerouted
from belfry.engine.group_rows import MOST_TENANTS, GroupRows
from belfry.engine.groups import Groups
from belfry.engine.kept_jobs import KeptJobs
from belfry.engine.moved_rows import MovedRows
from belfry.engine.reports import SourcePartition
from belfry.engine.step import Step
from belfry.engine.undo import UndoLog
from belfry.store.layout.groups import GIVE, LEAVING, GroupRow, pack_names
from belfry.store.layout.pending_bytes import is_pending
from belfry.store.schedules import ScheduleStore
from belfry.tenants.step_tenants import StepTenants
from belfry.wire.moves import (
    END,
    FORGET,
    GIVEN,
    ROWS,
    MoveRecord,
    encode_move,
    move_key,
    pack_rows,
)
from belfry.wire.origins import vouched
from belfry.wire.record import Origin, origin_headers, sent_by_headers

# Rows of a slice, and about its bytes.
SLICE_ROWS: Final = 1_000
SLICE_BYTES: Final = 1_000_000
# Rows that wait for nothing, in one record.
MOST_TOGETHER: Final = 100
TOGETHER_BYTES: Final = 200_000
# How a GIVEN begins.
LEFT, STAYED = b"\0", b"\1"


def move_record(
    place: SourcePartition, to: int, record: MoveRecord, now_ms: int, number: int = 0
) -> Rerouted:
    """A record of a move on its way to a partition, with the proof that a worker wrote it.

    `number` is that of the transaction in which it is sent; 0 for none.
    """
    key, value = move_key(record.group), encode_move(record)
    headers = origin_headers(Origin(place.topic, place.partition, 0, now_ms, rerouted=False))
    headers += sent_by_headers(place.partition, number)
    return Rerouted(to, key, value, vouched(place.origin_keys, key, value, headers))


class Giving:
    """Gives the groups of one partition away."""

    def __init__(
        self,
        place: SourcePartition,
        store: ScheduleStore,
        tenants: StepTenants,
        rows: MovedRows,
        groups: Groups,
        undo: UndoLog,
    ) -> None:
        self._place = place
        self._rows = rows
        self._found = GroupRows(store, tenants, rows, groups)
        self._groups = groups
        self._fresh: set[int] = set()
        undo.scratch(set.clear, self._fresh)
        self._undo = undo
        # The rest of each group, as the last look found it.
        self._left: dict[int, list[bytes]] = {}

    @property
    def under_way(self) -> bool:
        """Whether a group is to be given away."""
        lies = self._groups.lies
        return bool(lies) and any(row.phase in (GIVE, LEAVING) for row in lies.values())

    def ask(self, group: int, target: int, move: int) -> None:
        """Give a group away, from the next step on: changes of this one are not seen yet."""
        self._fresh.add(group)
        self._groups.note_lies(group, GroupRow(GIVE, self._groups.here, target, move))

    def advance(self, step: Step, aside: Aside, jobs: KeptJobs) -> None:
        """Go on with each group that leaves."""
        for group, row in list(self._groups.lies.items()):
            if row.phase not in (GIVE, LEAVING) or group in self._fresh:
                continue
            leaving = row
            if row.phase == GIVE:
                begun = self._begin(group, row, step, aside, jobs)
                if begun is None:
                    continue
                leaving = begun
            self._go_on(group, leaving, step)

    # -- looked through --------------------------------------------------------------------------

    def _begin(
        self, group: int, row: GroupRow, step: Step, aside: Aside, jobs: KeptJobs
    ) -> GroupRow | None:
        """Begin to give, or tell why not (None)."""
        too_many = self._found.too_many_tenants
        tenants = [] if too_many else self._found.tenants_of(group)
        stays = tuple(name for name in tenants if self._found.is_spread(name))
        moving = [name for name in tenants if name not in stays]
        at_home = self._groups.home(group) == self._groups.here
        why = self._found.in_the_way(moving, aside, jobs)
        if too_many:
            why = f"tenants: the partition has rows of more than {MOST_TENANTS} tenants"
        if stays and not at_home:
            why = f"spread: tenant {stays[0].decode()} is spread by now, so it stays where it is"
        if why:
            self._send(step, row.to, MoveRecord(FORGET, group, row.to, row.move))
            self._tell_home(step, group, row, STAYED + why.encode())
            self._groups.has_all(group, row.move)
            return None
        leaving = row._replace(phase=LEAVING, stays=stays)
        self._groups.note_lies(group, leaving)
        return leaving

    # -- slice by slice --------------------------------------------------------------------------

    def _go_on(self, group: int, row: GroupRow, step: Step) -> None:
        left = self._left.pop(group, None)
        if not left:
            left = self._found.all_of(group, row.stays)
        if not left:
            self._end(group, row, step)
            return
        slice_, sent = self._slice(left, step)
        number = row.number
        for rows in _in_records(slice_):
            body = self._rows.zones + pack_rows(rows)
            self._send(step, row.to, MoveRecord(ROWS, group, row.to, row.move, number, body))
            number += 1
        self._undo.note(self._left.pop, group, None)
        self._left[group] = left[sent:]
        self._groups.note_lies(group, row._replace(number=number))

    def _slice(self, left: list[bytes], step: Step) -> tuple[list[tuple[bytes, bytes]], int]:
        """Take the next rows out of the store; and how many names these were."""
        found: list[tuple[bytes, bytes]] = []
        room, sent = SLICE_BYTES, 0
        for name in left[:SLICE_ROWS]:
            if room <= 0 or (found and step.effects.room <= 0):
                break
            sent += 1
            row = self._rows.take(name, step)
            if row is not None:
                # Else it was forgotten meanwhile.
                found.append((name, row))
                room -= len(name) + len(row)
                step.effects.room -= len(name) + len(row)
        return found, sent

    def _end(self, group: int, row: GroupRow, step: Step) -> None:
        """All of it has left."""
        self._send(step, row.to, MoveRecord(END, group, row.to, row.move, row.number))
        self._tell_home(step, group, row, LEFT + pack_names(row.stays))
        self._groups.note_lies(group, None)

    def _tell_home(self, step: Step, group: int, row: GroupRow, body: bytes) -> None:
        given = MoveRecord(GIVEN, group, row.to, row.move, row.number, body)
        self._send(step, self._groups.home(group), given)

    def _send(self, step: Step, to: int, record: MoveRecord) -> None:
        step.effects.rerouted.append(move_record(self._place, to, record, step.now_ms, step.number))


def _in_records(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Rows as they share records: each that waits has one for itself."""
    together: list[tuple[bytes, bytes]] = []
    size = 0
    for row in rows:
        if is_pending(row[1]):
            yield [row]
            continue
        size += len(row[0]) + len(row[1])
        if together and (len(together) == MOST_TOGETHER or size > TOGETHER_BYTES):
            yield together
            together, size = [], len(row[0]) + len(row[1])
        together.append(row)
    if together:
        yield together
