"""Set aside: requests whose schema nobody knows yet wait by themselves, and hold up nobody else.

    batch ─┬─ can be read ─────────────────────────────────► taken in
           ├─ its schema is still looked up ─────────┐
           └─ its lane has something set aside ──────┴─► a row ─► taken in by its turn, later

A request that cannot be read is set aside with its *lane*: the asker, as far as it is known before
the request is read (`claims.py`).  All that comes later in the same lane is set aside behind it, so
the order of an asker's requests is kept.  A request that is refused unread changes nothing, so it
is refused at once.

The rows are in the step's transaction, which also moves the source position.  So each request has
one outcome however often the owner changes, and a new owner goes on with the rows there.  A
request that is taken in later is the record that was received: it counts from its own arrival, and
its verdict names its own place.

A request that its lane has no room for is refused (`aside_room.py`), and so is one at an offset
that another request is set aside under: it came from an input that was made anew.

A partition that only forwards has no state to set anything aside in.  A request that cannot be read
there goes on unread to where the tenant lives that its record shows, in the order of the batch, and
is set aside there if need be.

    12:00:00.000   offset 5, lane shop, schema 42 that nobody knows      set aside
    12:00:00.000   offset 6, lane shop, a known schema                   set aside, behind 5
    12:00:00.000   offset 7, lane books, a known schema                  taken in
    12:00:00.400   the registry answers: schema 42 is a request          5 and 6 are taken in

Where it does not answer within its limit, 5 is refused (`schema_unavailable`) and 6 is taken in.

Which schemas are looked up, and how long, is the shell's affair (`registry/`); here is the order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from belfry.engine.aside_room import AsideRoom, taken_place
from belfry.engine.claims import claimed, lane_of, stranger_of
from belfry.engine.undo import UndoLog
from belfry.schedules.identity import Homes
from belfry.schedules.rejections import Rejection
from belfry.store.layout.aside import (
    ASIDE_END,
    ASIDE_PREFIX,
    Waits,
    aside_key,
    decode_aside,
    encode_aside,
)
from belfry.store.schedules import ScheduleStore
from belfry.tenants.directory import Tenants
from belfry.wire.moves import is_move
from belfry.wire.readings import Reference
from belfry.wire.record import SourceRecord, size_of
from belfry.wire.requests import RequestReader

# So many of a lane are taken in before the next lane has its turn.
AT_A_TIME: Final = 50

# A lane, and the reference of the schema that it needs.
Need = tuple[bytes, Reference]


class Unread(NamedTuple):
    """A request that goes on unread, to this partition."""

    home: int


class Split(NamedTuple):
    """A batch in parts: requests to take in, requests that wait, and those decided unread.

    `decided` is by offset: a refusal, or the partition to which the request goes on unread.
    """

    taken: Sequence[SourceRecord]
    waits: Sequence[Waits]
    decided: dict[int, Rejection | Unread]


class Aside:
    """The requests that one partition has set aside, by lane, in the order in which they came.

    With `forwards_to` the partition only forwards, to these homes.
    """

    def __init__(
        self,
        store: ScheduleStore,
        reader: RequestReader,
        tenants: Tenants,
        undo: UndoLog,
        forwards_to: Homes | None = None,
    ) -> None:
        self._store = store
        self._reader = reader
        self._tenants = tenants
        self._undo = undo
        self._forwards_to = forwards_to
        self._lanes: dict[bytes, deque[Waits]] = {}
        self._room = AsideRoom()
        for name, row in store.between(ASIDE_PREFIX, ASIDE_END):
            waits = decode_aside(name, row)
            # Earlier releases had one lane for all whose tenant was not known.
            self._push(waits if waits.lane else waits._replace(lane=stranger_of(waits.record)))

    @property
    def any(self) -> bool:
        """Whether something is set aside."""
        return any(self._lanes.values())

    def all(self) -> list[Waits]:
        """All requests that are set aside."""
        return [waits for lane in self._lanes.values() for waits in lane]

    def heads(self) -> list[Waits]:
        """The first request of each lane."""
        return [lane[0] for lane in self._lanes.values() if lane]

    def split(
        self,
        records: Sequence[SourceRecord],
        refused: Mapping[Need, Rejection] | None,
        *,
        appended: bool,
    ) -> Split:
        """Part a batch, of which this is refused unread; changes nothing yet.

        With `refused` None nothing in the batch needs a schema that is not known.
        """
        if refused is None and not self.any:
            return Split(records, (), {})
        taken, waits = list[SourceRecord](), list[Waits]()
        decided: dict[int, Rejection | Unread] = {}
        held = {lane for lane, queue in self._lanes.items() if queue}
        room = self._room.copy()
        for record in records:
            if is_move(record):
                # It is in nobody's lane.
                taken.append(record)
                continue
            lane = lane_of(record, self._tenants)
            reference = self._reader.unknown_schema(record)
            unread = self._unread(record, lane, reference, refused or {})
            if unread is not None:
                decided[record[0]] = unread
            elif not isinstance(lane, Rejection) and (reference is not None or lane in held):
                size = size_of(record)
                problem = room.problem(lane, size)
                if problem is None and self._store.named(aside_key(record[0])) is not None:
                    problem = taken_place(record[0])
                if problem is None:
                    held.add(lane)
                    room.add(lane, size)
                    waits.append(Waits(lane, record, appended))
                    continue
                decided[record[0]] = problem
            taken.append(record)
        return Split(taken, waits, decided)

    def _unread(
        self,
        record: SourceRecord,
        lane: bytes | Rejection,
        reference: Reference | None,
        refused: Mapping[Need, Rejection],
    ) -> Rejection | Unread | None:
        """The outcome of a request that cannot be read, where it need not wait."""
        if reference is None:
            return None
        if isinstance(lane, Rejection):
            return lane
        if (known := refused.get((lane, reference))) is not None:
            return known
        if self._forwards_to is None:
            return None
        return Unread(self._forwards_to.of(claimed(record).decode(errors="replace")))

    def keep(self, waits: Sequence[Waits]) -> None:
        """Set these aside."""
        for each in waits:
            self._store.note(aside_key(each.record[0]), encode_aside(each))
            self._push(each)
            self._undo.note(self._unpush, each)

    def ready(
        self, refused: Mapping[Need, Rejection]
    ) -> Iterator[tuple[SourceRecord, bool, Rejection | None]]:
        """Requests that can be taken in now, or are refused, by lane; they wait no more.

        Tells of each whether its timestamp is the broker's, and why it is refused if it is.
        """
        lanes = list(self._lanes)
        while lanes:
            more: list[bytes] = []
            for lane in lanes:
                # A lane that gave some now comes behind the others, also in the next step.
                self._lanes[lane] = self._lanes.pop(lane)
                given = yield from self._some_of(lane, refused)
                if given == AT_A_TIME:
                    more.append(lane)
            lanes = more

    def _some_of(
        self, lane: bytes, refused: Mapping[Need, Rejection]
    ) -> Generator[tuple[SourceRecord, bool, Rejection | None], None, int]:
        """The requests that a lane gives before others have their turn, and their number."""
        held = self._lanes[lane]
        for given in range(AT_A_TIME):
            if not held:
                return given
            reference = self._reader.unknown_schema(held[0].record)
            why = None if reference is None else refused.get((lane, reference))
            if reference is not None and why is None:
                return given
            first = held.popleft()
            self._room.add(lane, size_of(first.record), -1)
            self._undo.note(self._put_back, first)
            self._store.note(aside_key(first.record[0]), None)
            yield first.record, first.appended, why
        return AT_A_TIME

    def forget_empty(self) -> None:
        """Forget lanes that hold nothing; between two steps."""
        for lane in [lane for lane, held in self._lanes.items() if not held]:
            del self._lanes[lane]

    def _push(self, waits: Waits) -> None:
        self._lanes.setdefault(waits.lane, deque()).append(waits)
        self._room.add(waits.lane, size_of(waits.record))

    def _unpush(self, waits: Waits) -> None:
        self._lanes[waits.lane].pop()
        self._room.add(waits.lane, size_of(waits.record), -1)

    def _put_back(self, waits: Waits) -> None:
        self._lanes[waits.lane].appendleft(waits)
        self._room.add(waits.lane, size_of(waits.record))
