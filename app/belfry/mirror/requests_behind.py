"""The requests that nobody had judged by the marks, sorted: lost, or judged on the other side.

not sent on by a partition   carried: judged there         not carried: lost
sent on                      as the request at its first place is: its sender does it again
of a move, sent on           its sender does it again; rows that were carried are on their way
that a group be moved        not carried: lost, and the group stays where it lies
"""

from __future__ import annotations

from collections.abc import Mapping

from belfry.mirror.losses import JudgedAnew, LostRequest, Place, lost_request
from belfry.verification import rows
from belfry.verification.memory import Remembered
from belfry.verification.row_fires import remembered
from belfry.verification.rows import Logged
from belfry.wire.moves import MOVE, ROWS, decode_move, is_move, unpack_rows
from belfry.wire.record import SentBy, SourceRecord


class RequestsBehind:
    """Sorts the requests of all partitions.

    `lost` are those that nobody carried, by partition. `moved` are schedules whose rows were sent
    from one partition to another, and `under_way` those of them that were on their way at the
    marks, as they stood.
    """

    def __init__(self, numbers: Mapping[int, int]) -> None:
        """`numbers` are the transactions up to which each partition was carried."""
        self._numbers = numbers
        self.lost: dict[int, list[LostRequest]] = {}
        self.moved: set[bytes] = set()
        self.under_way: dict[bytes, Remembered] = {}
        self._carried: list[tuple[int, LostRequest, Place]] = []
        self._sent_on: list[tuple[int, LostRequest, Place]] = []
        self._lost_at: set[Place] = set()

    def take(
        self, partition: int, record: SourceRecord, carried: bool, by: SentBy | None, first: Place
    ) -> None:
        """A further request, which came in `first` at a place, and was sent on `by` a partition."""
        if is_move(record):
            self._take_move(partition, record, carried, by)
        elif by is not None:
            self._sent_on.append((partition, lost_request(record), first))
        elif carried:
            self._carried.append((partition, lost_request(record), first))
        else:
            self._lose(partition, record)
            self._lost_at.add(first)

    def anew(self) -> JudgedAnew:
        """What the other side judges; asked when all were taken."""
        found = JudgedAnew()
        for each in self._carried:
            found.take(*each)
        for each in self._sent_on:
            if each[2] not in self._lost_at:
                found.take(*each)
        return found

    def _lose(self, partition: int, record: SourceRecord) -> None:
        self.lost.setdefault(partition, []).append(lost_request(record))

    def _take_move(
        self, partition: int, record: SourceRecord, carried: bool, by: SentBy | None
    ) -> None:
        said = decode_move(record[3] or b"")
        if said is None or said.kind not in (MOVE, ROWS):
            return
        if said.kind == MOVE:
            if not carried:
                self._lose(partition, record)
            return
        early = by is not None and by.number > self._numbers.get(by.partition, 0)
        under_way: dict[bytes, Remembered] = {}
        try:
            moved = unpack_rows(said.body[1 + said.body[0] :])
            for name, row in moved:
                says = rows.schedule(row) if carried and not early and name[:1] != b"\0" else None
                known = remembered(Logged(record[0], record[1], name, row), says, None)
                if known is not None:
                    under_way[name] = known
        except (ValueError, IndexError):
            # One that is cut, or has a row that cannot be read: the partition refuses all of it.
            return
        self.moved.update(name for name, _ in moved)
        self.under_way |= under_way
