"""Rows that left one partition with their key group, and whether all came to another one.

    source   GIVE │ LEAVING, a gone │ LEAVING, b gone │ nothing     a and b left
    target   ARRIVING 0 │ ARRIVING 1, a waits │ HERE                a came: `not_arrived`, b

Rows of both sides carry the number of the move, so one move is compared in two partitions.  Here
both sides are noted, and `move_check.py` judges them.

Only schedules that wait are compared.  A marker may leave with its group or be swept in the same
step, and no row tells which: it makes up for a row on the other side, and is no finding.  A row
that is written anew on the way (other time zone data, another signature) keeps its sequence.

Tenants that are spread stay where they are, and have rows in several partitions: they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belfry.verification.coverage import tenant_of
from belfry.verification.key_groups import (
    ARRIVING,
    GIVE,
    HELD,
    HOME_KEY,
    LEAVING,
    LIES_KEY,
    GroupSays,
    group_in,
    group_of,
    group_says,
    groups_among,
)
from belfry.verification.memory import Memory, Remembered, Stands, short
from belfry.verification.move_memory import (
    LARGEST,
    NOT_SEEN,
    NOT_WAITING,
    Given,
    MovedRow,
    MoveId,
    MoveSide,
)
from belfry.verification.rows import ONE_SHOTS, OWN_KEY, Logged, WaitingRow, schedule

_SIDES: Final = frozenset({GIVE, LEAVING, ARRIVING})


class MoveLedger:
    """Notes rows that leave and come in one partition, transaction by transaction."""

    def __init__(self, memory: Memory, partition: int, homes: int) -> None:
        """`homes` is how many there are: groups are counted by that."""
        self._memory = memory
        self._moves = memory.moves
        self._partition, self._homes = partition, homes
        self._groups = groups_among(homes)
        # Sides that are not over, by their groups; read when they are first asked for.
        self._open: dict[int, MoveSide] | None = None

    def thin(self) -> None:
        """Something of the partition may be missing here: no move that is under way is judged."""
        for side in [each for each in self._sides().values() if each.sound]:
            self._put(side._replace(sound=False))

    def take(self, rows: Sequence[Logged], *, whole: bool) -> None:
        """Note a transaction, before its rows are folded; `whole`: no row is missing."""
        if not whole:
            self.thin()
        lies = [record for record in rows if record.key.startswith(LIES_KEY)]
        for record in lies:
            says = None if record.value is None else group_says(record.value)
            self._step(group_in(record.key), says, rows, whole=whole)
        for record in rows:
            if record.key.startswith(HOME_KEY):
                self._settle(record)

    def _sides(self) -> dict[int, MoveSide]:
        if self._open is None:
            found = self._moves.open_sides(self._partition)
            self._open = {each.id.group: each for each in found}
        return self._open

    def _put(self, side: MoveSide) -> None:
        self._moves.put_side(side)
        if side.over:
            self._sides().pop(side.id.group, None)
        else:
            self._sides()[side.id.group] = side

    # -- sides -------------------------------------------------------------------------------------

    def _step(
        self, group: int, says: GroupSays | None, rows: Sequence[Logged], *, whole: bool
    ) -> None:
        """Go on with a group by its last row in a transaction."""
        side = self._sides().get(group)
        phase = 0 if says is None else says.phase
        # Where it stays after all, what goes in that step was cancelled: by the very bulk job that
        # was in the way of the move.
        if side is not None and side.sound and (side.takes or phase == LEAVING):
            self._note_rows(side, rows)
        now = None
        if says is not None and phase in _SIDES:
            move = MoveId(group, min(says.move, LARGEST))
            begins = phase == GIVE or (phase == ARRIVING and not says.records)
            now = MoveSide(move, self._partition, phase == ARRIVING, whole and begins)
        if side is not None and (now is None or now[:3] != side[:3]):
            self._close(side, says)
            side = None
        if says is not None:
            # It comes, or has come: where it leaves again as well, for the rows before may be gone.
            self._moves.take_back(self._partition, group)
        if now is not None and side is None:
            self._put(now)

    def _close(self, side: MoveSide, says: GroupSays | None) -> None:
        self._put(side._replace(over=True))
        if not side.takes and side.sound and says is None:
            # At its home no row tells yet whether it left or stayed.
            is_away = side.id.group % self._homes != self._partition
            self._moves.give(Given(self._partition, side.id, is_away))

    def _settle(self, record: Logged) -> None:
        """The home says where a group lies: the rows it has given away have left, or stayed."""
        group = group_in(record.key)
        given = self._moves.given(self._partition, group)
        if given is None:
            return
        says = None if record.value is None else group_says(record.value)
        if says is not None and says.at != self._partition:
            stays = tuple(sorted(each.decode(errors="replace") for each in says.stays))
            self._moves.give(given._replace(settled=True, stays=stays))
        elif says is None or says.phase != HELD or says.move != given.id.move:
            self._moves.take_back(self._partition, group)

    # -- rows --------------------------------------------------------------------------------------

    def _note_rows(self, side: MoveSide, rows: Sequence[Logged]) -> None:
        for record in rows:
            if record.key.startswith(OWN_KEY):
                continue
            tenant = record.key.partition(b"/")[0]
            if group_of(tenant, self._groups) != side.id.group:
                continue
            name = short(record.key)
            known = self._moves.row(side.id, name) or MovedRow(name, tenant_of(record.key))
            noted = self._came(known, record) if side.takes else self._left(known, record)
            if noted != known:
                self._moves.put_row(side.id, noted)

    def _left(self, known: MovedRow, record: Logged) -> MovedRow:
        if record.value is not None:
            return known
        before = self._memory.schedule(self._partition, known.name)
        waits = before is not None and before.stands in (Stands.WAITS, Stands.PAUSED)
        left_as = _digest(before) if before is not None and waits else NOT_WAITING
        if known.left != NOT_SEEN and left_as == NOT_WAITING:
            # A new owner may write a tombstone once more; the row before it had left.
            return known
        return known._replace(left=record.offset, left_as=left_as)

    def _came(self, known: MovedRow, record: Logged) -> MovedRow:
        row = None if record.value is None else schedule(record.value)
        if not isinstance(row, WaitingRow):
            return known if known.came != NOT_SEEN else known._replace(came=record.offset)
        seq = min(row.seq, LARGEST)
        if known.came_as != NOT_WAITING:
            return known if known.seq == seq else known._replace(twice=record.offset)
        return known._replace(came=record.offset, came_as=_digest(row), seq=seq)


def _digest(row: Remembered | WaitingRow) -> int:
    """The digest of a pending schedule that may not change on the way; never `NOT_WAITING`."""
    nominal_ms = row.nominal_ms if row.kind in ONE_SHOTS else 0
    said = row.kind, row.life, row.version, row.occurrence, nominal_ms
    return short(b"%d %d %d %d %d" % said) | 1
