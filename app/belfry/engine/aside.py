"""Set aside: requests whose schema nobody knows yet wait by themselves, and hold up nobody else.

    batch ─┬─ can be read ─────────────────────────────────► taken in
           ├─ its schema is still looked up ─────────┐
           └─ its asker has something set aside ─────┴─► a row ─► taken in by its turn, later

A request that cannot be read is set aside with its *lane*: who asks for it, as far as that is known
before it is read (`claims.py`).  All that comes later in the same lane is set aside behind it, so
the order of an asker's requests is kept.  What is refused without being read changes nothing, and
is refused at once.

The rows are in the step's transaction, which also moves the source position.  So each request has
one outcome however often the owner changes, and a new owner goes on with what lies there.  A
request that is taken in later is the record that was received: it counts from its own arrival, and
its verdict names its own place.

A lane holds so many requests and bytes; what comes on top of that is refused.  So is a request at
an offset that something is set aside under already: it came from an input that was made anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from belfry.engine.claims import lane_of
from belfry.engine.step import UndoLog
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
from belfry.wire.record import SourceRecord, size_of
from belfry.wire.requests import Reference, RequestReader

MOST_RECORDS: Final = 10_000
MOST_BYTES: Final = 16_000_000
MOST_RECORD_BYTES: Final = 1_000_000


class Split(NamedTuple):
    """What of a batch is taken in, what waits, and what of the former is refused unread."""

    taken: Sequence[SourceRecord]
    waits: Sequence[Waits]
    refused: dict[int, Rejection]


class Aside:
    """What one partition has set aside, by lane, in the order in which it came."""

    def __init__(
        self, store: ScheduleStore, reader: RequestReader, tenants: Tenants, undo: UndoLog
    ) -> None:
        self._store = store
        self._reader = reader
        self._tenants = tenants
        self._undo = undo
        self._lanes: dict[bytes, deque[Waits]] = {}
        self._bytes: dict[bytes, int] = {}
        for name, row in store.between(ASIDE_PREFIX, ASIDE_END):
            self._push(decode_aside(name, row))

    @property
    def any(self) -> bool:
        """Whether something is set aside."""
        return any(self._lanes.values())

    def heads(self) -> list[SourceRecord]:
        """The first request of each lane."""
        return [lane[0].record for lane in self._lanes.values() if lane]

    def split(
        self, records: Sequence[SourceRecord], deferred: Collection[Reference], *, appended: bool
    ) -> Split:
        """Part a batch where `deferred` schemas are still looked up; changes nothing yet."""
        if not deferred and not self.any:
            return Split(records, (), {})
        taken, waits, refused = list[SourceRecord](), list[Waits](), dict[int, Rejection]()
        counts = {lane: len(held) for lane, held in self._lanes.items() if held}
        sizes = dict(self._bytes)
        for record in records:
            lane = lane_of(record, self._tenants)
            reference = self._reader.needed(record)
            asked = reference in deferred
            if isinstance(lane, Rejection):
                if asked:
                    refused[record[0]] = lane
            elif (
                lane is not None
                and (asked or lane in counts)
                and not self._reader.is_refused(reference)
            ):
                size = size_of(record)
                problem = _too_much(size, counts.get(lane, 0), sizes.get(lane, 0))
                if problem := problem or self._taken_place(record[0]):
                    refused[record[0]] = problem
                else:
                    counts[lane] = counts.get(lane, 0) + 1
                    sizes[lane] = sizes.get(lane, 0) + size
                    waits.append(Waits(lane, record, appended))
                    continue
            taken.append(record)
        return Split(taken, waits, refused)

    def keep(self, waits: Sequence[Waits]) -> None:
        """Set these aside."""
        for each in waits:
            self._store.note(aside_key(each.record[0]), encode_aside(each))
            self._push(each)
            self._undo.note(self._unpush, each)

    def ready(self) -> Iterator[Waits]:
        """What can be taken in now, each lane in its order; what was given is set aside no more."""
        for lane in list(self._lanes):
            held = self._lanes[lane]
            while held and self._reader.unknown_schema(held[0].record) is None:
                first = held.popleft()
                self._bytes[lane] -= size_of(first.record)
                self._undo.note(self._put_back, first)
                self._store.note(aside_key(first.record[0]), None)
                yield first

    def forget_empty(self) -> None:
        """Forget lanes that hold nothing; between two steps."""
        for lane in [lane for lane, held in self._lanes.items() if not held]:
            del self._lanes[lane], self._bytes[lane]

    def _taken_place(self, offset: int) -> Rejection | None:
        """Why nothing can be set aside under an offset; one row must not replace another."""
        if self._store.named(aside_key(offset)) is None:
            return None
        reason = (
            f"A request of a former input topic waits under offset {offset}, and this one would"
            " have to wait as well: send it again later."
        )
        return Rejection("schema_unavailable", reason)

    def _push(self, waits: Waits) -> None:
        lane = waits.lane
        self._lanes.setdefault(lane, deque()).append(waits)
        self._bytes[lane] = self._bytes.get(lane, 0) + size_of(waits.record)

    def _unpush(self, waits: Waits) -> None:
        self._lanes[waits.lane].pop()
        self._bytes[waits.lane] -= size_of(waits.record)

    def _put_back(self, waits: Waits) -> None:
        self._lanes[waits.lane].appendleft(waits)
        self._bytes[waits.lane] += size_of(waits.record)


def _too_much(size: int, count: int, before: int) -> Rejection | None:
    if size > MOST_RECORD_BYTES:
        what = f"The request takes {size} bytes, and {MOST_RECORD_BYTES} can be set aside"
    elif count >= MOST_RECORDS or before + size > MOST_BYTES:
        what = f"{count} requests of {before} bytes of the same tenant are set aside already"
    else:
        return None
    reason = f"{what} until the registry has told of a schema: send the request again later."
    return Rejection("schema_unavailable", reason)
