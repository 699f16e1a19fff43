"""Schedules of one partition as its step sees them: as it has changed them, else as committed.

    by name, by location     through the overlay: a cancel finds what the same step has put down
    by time, by queue        what is committed alone (`Committed`): the due scan meets nothing twice

The overlay is two dictionaries above the ordered map, and a few counts:

    changelog key  → row, None: gone          `named`
    local key      → record, None: gone       `pending_at`
                     │ else
    ordered map      the row under it

Parts that only read are given this; the verbs that change it are those of `ScheduleStore`.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Final

from belfry.store.buckets import LeftBuckets
from belfry.store.committed import Committed
from belfry.store.ends import EndsOfStep
from belfry.store.layout import keys
from belfry.store.layout.buckets import Bucket
from belfry.store.layout.keys import named_key
from belfry.store.layout.locations import record_key
from belfry.store.ordered_map import Damaged, OrderedMap, Range

_MISSING: Final = b"?"


class Overlaid(Committed):
    """The schedules of a partition as the step under way sees them.

    `changes` are the records of the changelog that the step has to write, by key (None: tombstone).
    """

    def __init__(self, rows: OrderedMap) -> None:
        super().__init__(rows)
        # Rows under changelog keys, and records under local keys; None: gone.
        self._named: dict[bytes, bytes | None] = {}
        self._records: dict[bytes, bytes | None] = {}
        self._cleared: list[Range] = []
        self.changes: dict[bytes, bytes | None] = {}
        self._pending_change = 0
        self._grown: dict[bytes, int] = {}
        self._left = LeftBuckets(rows)
        self.ends = EndsOfStep(rows)
        """Rows that are kept for a time, by when that is over."""
        self._fetched: dict[bytes, bytes | None] = {}
        # When the first committed wait for an acknowledgement ends, once it was looked up.
        self._first_until: tuple[int | None] | None = None
        self._untils_change = False

    @property
    def pending_change(self) -> int:
        """How many schedules more wait than before the step."""
        return self._pending_change

    @property
    def changed(self) -> KeysView[bytes]:
        """Changelog keys whose rows the step has changed so far; it follows the step."""
        return self._named.keys()

    @property
    def unsaid(self) -> tuple[object, ...]:
        """Where the step has put rows and records, to compare: the changelog is not told that."""
        return self._named.copy(), self._records.copy(), self._cleared.copy()

    def prefetch(self, names: Sequence[bytes]) -> Mapping[bytes, bytes | None]:
        """Committed rows under changelog keys in one go, also for the `named` that follow."""
        rows = self._rows.get_many([b"k" + name for name in names])
        self._fetched = dict(zip(names, rows, strict=True))
        return self._fetched

    def committed(self, names: Sequence[bytes]) -> Sequence[bytes | None]:
        """Committed rows under changelog keys, in the order of the names."""
        return self._rows.get_many([b"k" + name for name in names])

    def named(self, name: bytes) -> bytes | None:
        """Location, marker, verdict or another row under a changelog key."""
        if name in self._named:
            return self._named[name]
        if name in self._fetched:
            return self._fetched[name]
        return self._rows.get(named_key(name))

    def pending_at(self, name: bytes, row: bytes) -> bytes:
        """The pending record of the schedule whose row this location is."""
        key = record_key(name, row)
        found = self._records.get(key, _MISSING)
        record = self._rows.get(key) if found is _MISSING else found
        if record is None:
            raise Damaged(f"the place of {name!r} is empty: the store has a hole")
        return record

    def locked(self, tenant: bytes, lock: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Committed rows that a lock holds back, by sort key, without those taken in this step."""
        start, end = keys.locked_prefix(tenant, lock), keys.behind_lock(tenant, lock)
        for key, record in self._rows.scan(start, end):
            if key not in self._records:
                yield key, record

    def grown_bytes(self) -> Mapping[bytes, int]:
        """By how many bytes the waiting records of each tenant have grown in the step."""
        return self._left.grown_bytes(self._records)

    @property
    def emptied(self) -> Sequence[Bucket]:
        """Buckets that the last step has emptied, and not by removals alone."""
        return self._left.emptied

    @property
    def waiting_changed(self) -> Mapping[bytes, int]:
        """How many wait of each tenant of which the last step has changed that."""
        return self._left.waiting

    def first_until_ms(self) -> int | None:
        """When the first committed wait for an acknowledgement ends; None for no wait."""
        if self._first_until is None:
            self._first_until = (next((until_ms for until_ms, _ in self.untils()), None),)
        return self._first_until[0]

    def discard(self) -> None:
        """Forget the overlay."""
        self._named, self._records = {}, {}
        self._cleared = []
        self.changes = {}
        self._pending_change = 0
        self._grown = {}
        self._left.clear()
        self.ends.clear()
        self._fetched = {}
        self._untils_change = False
