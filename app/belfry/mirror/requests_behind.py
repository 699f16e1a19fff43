"""The requests that were not judged by the marks, sorted: lost, or judged on the other side.

not sent on by a partition   carried: judged there         not carried: lost
sent on                      as the request at its first place is: its sender does it again
that waits in a row          the row was carried: judged there, as soon as its wait is over
of a move, sent on           its sender does it again; rows that were carried are on their way
that a group be moved        not carried: lost, and the group stays where it lies
a job that moves schedules   its row was carried: it goes on there from where it had come to

A partition reads on behind a request that waits for its key group or its schema (`WaitingRows`). So
such a one lies before the position at which requests are judged once more, and counts all the same:

    requests   40  41 │ 42  43         read up to 42 by the mark
    row of 40         waits            judged behind the mark by the source, and there once more
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from belfry.mirror.judged_anew import (
    At,
    JudgedAnew,
    LostRequest,
    MovingJob,
    Place,
    job_under_way,
    lost_request,
)
from belfry.store.layout.aside import ASIDE_PREFIX, decode_aside
from belfry.store.layout.groups import HELD_PREFIX, decode_held
from belfry.store.layout.jobs import JOB_PREFIX, decode_job
from belfry.verification import rows
from belfry.verification.memory import Remembered
from belfry.verification.row_fires import remembered
from belfry.verification.rows import Logged
from belfry.wire.moves import MOVE, ROWS, decode_move, is_move, unpack_rows
from belfry.wire.record import Origin, SentBy, SourceRecord

# Errors of reading JSON of another form, nested very deeply, or with an infinity.
ODD_JSON: Final = (
    AttributeError, ValueError, LookupError, TypeError, RecursionError, OverflowError
)  # fmt: skip


class WaitingRows:
    """What waited in rows of one partition at its mark, and changed behind it: requests that waited
    for their key group, or for their schema, and jobs that move schedules. A request that waits on
    has changed nothing in the source, and a job that did something has a row behind the mark.

    Keys of such rows tell no partition. Of a request that may be large only what it asks for is
    kept.
    """

    def __init__(self, origin_of: Callable[[SourceRecord], Origin]) -> None:
        """`origin_of` tells where a request of the partition came in first."""
        self._origin_of = origin_of
        self._changed: set[bytes] = set()
        self.requests: dict[bytes, tuple[LostRequest, Place]] = {}
        self.jobs: dict[bytes, tuple[int, MovingJob]] = {}

    @property
    def any(self) -> bool:
        """Whether there may be some."""
        return bool(self._changed)

    def changes(self, key: bytes) -> bool:
        """Whether a row behind the mark is one of these; it is noted. Ask it of all rows first."""
        found = key.startswith((HELD_PREFIX, ASIDE_PREFIX, JOB_PREFIX))
        if found:
            self._changed.add(key)
        return found

    def seen(self, records: Iterable[Logged]) -> Iterator[Logged]:
        """The same records, which lie before the mark; what waits in them is noted."""
        for record in records:
            if record.key in self._changed:
                self._note(record.key, record.value)
            yield record

    def _note(self, key: bytes, row: bytes | None) -> None:
        self.requests.pop(key, None)
        self.jobs.pop(key, None)
        if row is None:
            return
        if not key.startswith(JOB_PREFIX):
            self.requests[key] = self._request(key, row)
            return
        try:
            said = decode_job(row)
            job = job_under_way(key, said)
        except ODD_JSON:
            # Where rows are not signed, anybody may have written it; a worker would stop at it.
            return
        if job is not None:
            self.jobs[key] = said.offset, job

    def _request(self, key: bytes, row: bytes) -> tuple[LostRequest, Place]:
        decode = decode_held if key.startswith(HELD_PREFIX) else decode_aside
        record = decode(key, row).record
        return lost_request(record), self._origin_of(record)[:3]


class RequestsBehind:
    """Sorts the requests of all partitions.

    `lost` are those that were not carried, by partition. `moved` are schedules whose rows were sent
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
        self._jobs: list[tuple[At, MovingJob]] = []
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

    def wait(self, partition: int, waiting: WaitingRows) -> None:
        """Requests and jobs that waited in rows of a partition at its mark."""
        self._carried += ((partition, *each) for each in waiting.requests.values())
        self._jobs += (((partition, offset), job) for offset, job in waiting.jobs.values())

    def anew(self) -> JudgedAnew:
        """What the other side judges; asked when all were taken."""
        found = JudgedAnew()
        for each in self._carried:
            found.take(*each)
        for each in self._sent_on:
            if each[2] not in self._lost_at:
                found.take(*each)
        for at, job in self._jobs:
            found.take_job(at, job)
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
