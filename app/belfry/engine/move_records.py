"""Records of moves, taken in: the effect of each on a group (`wire/moves.py`).

    at the home      MOVE ─► asked ─ READY ─► requests wait ─ GIVEN ─► what waits goes on, there
    at the source    GIVE ─► given away slice by slice (`giving.py`)
    at the target    INVITE ─► comes ─ ROWS … ─ END ─► all of it is here

The three may be one partition: its records to itself go through its input as well, so there is one
way.  A record that does not fit where a group stands is refused and kept, never guessed about: rows
that nobody expects lie in the topic of refused records then, and not in nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.arrived_rows import read_rows
from belfry.engine.effects import MoveEnd
from belfry.engine.giving import LEFT, STAYED, Giving, move_record
from belfry.engine.groups import Groups
from belfry.engine.moved_rows import MovedRows
from belfry.engine.reports import Reports, SourcePartition
from belfry.engine.step import Step
from belfry.schedules.rejections import Rejection
from belfry.store.layout.groups import (
    ARRIVING,
    ASKED,
    HELD,
    NOWHERE,
    RESTS,
    GroupRow,
    unpack_names,
)
from belfry.wire import moves
from belfry.wire.moves import MoveRecord, decode_move
from belfry.wire.record import SourceRecord, stamp_of

CODE: Final = "bad_move"


class MoveParts(NamedTuple):
    """The parts that records of moves are handed on to."""

    groups: Groups
    giving: Giving
    rows: MovedRows


class MoveRecords:
    """Takes records of moves in for one partition.

    They are only where workers share a secret, so that nobody else can sign a record of one.  Where
    moves are not allowed none begins: MOVE and INVITE are refused, a group of which nothing has
    left yet stays, and where no group has moved before all of them are refused.
    """

    def __init__(
        self, place: SourcePartition, reports: Reports, parts: MoveParts, *, allowed: bool
    ) -> None:
        self._place = place
        self._reports = reports
        self._groups, self._giving, self._rows = parts
        self._allowed = allowed

    def take(self, record: SourceRecord, step: Step) -> Rejection | None:
        """Take a record of a move in; why it is refused instead."""
        said = decode_move(record[3] or b"")
        if said is None:
            return Rejection(CODE, "A record of a move that this release cannot read.")
        problem = self._problem(said, record)
        if problem is not None:
            return problem
        if said.kind in (moves.MOVE, moves.READY, moves.GIVEN):
            if self._groups.home(said.group) != self._groups.here:
                return self._odd(said, "this is not its home")
            return self._at_home(said, record[0], step)
        if said.kind == moves.GIVE:
            return self._give(said, step)
        return self._at_target(said, record[0], step)

    def _problem(self, said: MoveRecord, record: SourceRecord) -> Rejection | None:
        """Why a record counts for nothing, wherever its group stands."""
        if stamp_of(record[4]) is not None:
            return Rejection(CODE, "A record of a move came in on a tenant's own topic.")
        if self._place.origin_keys and not self._reports.origin(record).rerouted:
            return Rejection(CODE, "A record of a move that no worker has signed.")
        if not (self._allowed or self._groups.some):
            return Rejection(CODE, "No group moves here: the workers do not allow it.")
        # The home judges the target once, as it is asked.  A later owner may not know yet of a
        # partition that was added, and a move that is under way would stand still for that.
        asked = said.kind == moves.MOVE
        if not self._groups.is_one(said.group) or (
            asked and not self._groups.has_place(said.target)
        ):
            reason = f"There is no group {said.group}, or no partition {said.target} for it."
            return Rejection(CODE, reason)
        return None

    # -- at the home -----------------------------------------------------------------------------

    def _at_home(self, said: MoveRecord, offset: int, step: Step) -> Rejection | None:
        here = self._groups.here
        row = self._groups.homes.get(said.group) or GroupRow(RESTS, here, NOWHERE, 0)
        if said.kind == moves.MOVE:
            return self._move(said, row, offset, step)
        if said.kind == moves.READY:
            if row.phase == ASKED and (row.move, row.to) == (said.move, said.target):
                self._groups.note_home(said.group, row._replace(phase=HELD))
                self._send(step, row.at, said._replace(kind=moves.GIVE, body=b""))
            elif row.phase == HELD and row.move == said.move:
                return self._odd(said, "it was told before")
            elif not self._groups.has_place(said.target):
                return self._odd(said, "there is no such partition")
            else:
                self._send(step, said.target, said._replace(kind=moves.FORGET, body=b""))
            return None
        if row.phase != HELD or row.move != said.move:
            return self._odd(said, "no such move is under way")
        if said.body[:1] not in (LEFT, STAYED):
            return self._odd(said, "it does not say whether the group has left")
        resting = row._replace(phase=RESTS, to=NOWHERE)
        has_left = said.body[:1] == LEFT
        why = "" if has_left else said.body[1:].decode(errors="replace")
        step.effects.move_ends.append(MoveEnd(said.group, row.at, row.to, why, row.move))
        if has_left:
            stays = unpack_names(said.body[1:]) if row.at == here else row.stays
            resting = resting._replace(at=row.to, stays=() if row.to == here else stays)
            # Rows that came home lie behind the requests that wait here (`held_requests.py`).
            resting = resting._replace(number=said.number if row.to == here else 0)
        self._groups.rests(said.group, resting)
        return None

    def _move(self, said: MoveRecord, row: GroupRow, offset: int, step: Step) -> Rejection | None:
        if not self._allowed:
            return Rejection(CODE, "No group moves here: the workers do not allow it.")
        if row.phase == HELD or said.group in self._groups.held:
            return self._odd(said, "it is on its way")
        if row.phase == ASKED:
            # Another target, or none: the one that was asked first does not get it.
            forget = MoveRecord(moves.FORGET, said.group, row.to, row.move)
            self._send(step, row.to, forget)
        if said.target == row.at:
            self._groups.rests(said.group, row._replace(phase=RESTS, to=NOWHERE))
            return None
        named = moves.move_named(offset, row.move)
        asked = row._replace(phase=ASKED, to=said.target, move=named, number=0)
        self._groups.note_home(said.group, asked)
        invite = MoveRecord(moves.INVITE, said.group, said.target, named)
        self._send(step, said.target, invite)
        return None

    # -- where it lies, and where it comes to ----------------------------------------------------

    def _give(self, said: MoveRecord, step: Step) -> Rejection | None:
        groups, row = self._groups, self._groups.lies.get(said.group)
        if groups.home(said.group) == groups.here:
            # The home has told itself: nobody else's word takes anything away.
            at_home = groups.homes.get(said.group)
            asked = GroupRow(HELD, groups.here, said.target, said.move)
            if at_home is None or at_home._replace(stays=()) != asked:
                return self._odd(said, "no such move is under way")
        elif row is None:
            return self._odd(said, "it does not lie here")
        elif said.move <= row.move:
            # Written once more; or the home's input was made anew, and it waits for an answer.
            self._stays(said, b"older: it came by the move %d" % row.move, step)
            return None
        elif not groups.has_place(said.target):
            self._stays(said, b"unknown: partition %d is not known here" % said.target, step)
            return None
        if row is not None and row.to != NOWHERE:
            return self._odd(said, "it is on its way")
        if not self._allowed:
            # Not any more: where workers share no secret now, anybody may have written this.
            self._stays(said, b"off: the workers allow no moves", step)
            return None
        self._giving.ask(said.group, said.target, said.move)
        return None

    def _stays(self, said: MoveRecord, why: bytes, step: Step) -> None:
        """Tell the home that the group stays, and the target where there is one."""
        if self._groups.has_place(said.target):
            self._send(step, said.target, said._replace(kind=moves.FORGET, body=b""))
        given = said._replace(kind=moves.GIVEN, body=STAYED + why)
        self._send(step, self._groups.home(said.group), given)

    def _at_target(self, said: MoveRecord, offset: int, step: Step) -> Rejection | None:
        groups, row = self._groups, self._groups.lies.get(said.group)
        if said.target != groups.here:
            return self._odd(said, "it is meant for another partition")
        comes = row is not None and row.phase == ARRIVING
        if said.kind == moves.INVITE:
            if row is not None and not (comes and not row.number and said.move > row.move):
                return self._odd(said, "it is here, or on its way")
            if not self._allowed:
                return Rejection(CODE, "No group moves here: the workers do not allow it.")
            arriving = GroupRow(ARRIVING, groups.home(said.group), groups.here, said.move)
            groups.note_lies(said.group, arriving)
            self._send(step, groups.home(said.group), said._replace(kind=moves.READY))
            return None
        if row is None or not comes or row.move != said.move:
            if said.kind == moves.FORGET:
                return None
            return self._odd(said, "it is not on its way here")
        return self._arrives(said, row, offset, step)

    def _arrives(
        self, said: MoveRecord, row: GroupRow, offset: int, step: Step
    ) -> Rejection | None:
        if said.kind == moves.FORGET:
            if row.number:
                return self._odd(said, "some of it has come")
            self._groups.note_lies(said.group, None)
            return None
        if said.number != row.number:
            return self._odd(said, f"{row.number} of its records have come")
        if said.kind == moves.END:
            self._groups.has_all(said.group, said.move)
            # Requests that come right behind it are judged by the next step, which sees the tenants
            # of the group as they are treated now.
            step.effects.room = min(step.effects.room, 0)
            return None
        try:
            rows = read_rows(said.body, offset, said.group, self._groups.of)
        except ValueError as error:
            return self._odd(said, str(error))
        self._rows.put(rows, step)
        self._groups.note_lies(said.group, row._replace(number=row.number + 1))
        return None

    def _send(self, step: Step, to: int, said: MoveRecord) -> None:
        sent = move_record(self._place, to, said, step.now_ms, step.number)
        step.effects.rerouted.append(sent)

    def _odd(self, said: MoveRecord, why: str) -> Rejection:
        reason = (
            f"Record {said.kind} of the move {said.move} of group {said.group} to partition"
            f" {said.target} does not fit: {why}."
        )
        return Rejection(CODE, reason)
