"""Ends: which rows are to be forgotten, in the order in which their time is over.

A marker is kept for a day, or as long as its tenant's policy says; a verdict for an hour, an ended
job for a week.  The names of such rows lie a second time in the local store, by when they are over
(`layout/ends.py`), so a sweep that forgets them reads those, and no pending row:

    step         ends a, b, c                            one row e │ over 12:00 tomorrow │ a b c
    …
    sweep        takes the first rows whose time is over, looks up a, b, c, forgets what is over yet
    commit       the row is gone with the rows that it led to
    abort        nothing was written: the next sweep takes the same

It costs one row a step, and no fire one of its own.  A name that began anew meanwhile is met as
such, and left alone: nothing is forgotten that was not looked at.

A replay lays no such rows: it does not know the policies, and a standby would have to drop them
again.  So a store tells up to which changelog offset they are complete (`mends`), and only an owner
for whom they are says so.  Where that is not the offset of the state, the owner walks through all
names once (`engine/retention.py`), and then they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from struct import error as struct_error
from typing import Final

from belfry.store.layout import keys
from belfry.store.layout.ends import (
    BY_CLOCK,
    BY_REQUESTS,
    MOST_NAMES,
    EndsRow,
    decode_ends,
    encode_ends,
    ends_key,
    time_of,
)
from belfry.store.layout.records import encode_size
from belfry.store.ordered_map import Damaged, OrderedMap, Range

# Rows that were kept for longer than their step could know are put together by hours.
HOUR_MS: Final = 3_600_000


class EndsOfStep:
    """The ends that a step adds to a store, and those that it takes from it."""

    def __init__(self, rows: OrderedMap) -> None:
        self._rows = rows
        self.kept: defaultdict[int, list[bytes]] = defaultdict(list)
        """Names that the step has written, by how long their rows are kept (ms)."""
        self.whole = False
        """Whether each row that is kept for a time is led to, once this step is committed."""
        # Names that were written before, by when they are over: when they were, names.
        self._again: dict[tuple[bytes, int], EndsRow] = {}
        # Keys that the step has taken, and the rest of the last one.
        self._taken: dict[bytes, bytes | None] = {}
        # By each time: nothing lies before it, and the key behind which the step goes on.
        self._fronts = {by: by for by in (BY_REQUESTS, BY_CLOCK)}
        self._on: dict[bytes, bytes] = {}
        self.cleared: list[Range] = []
        """Ranges of the store that are empty after the step, but for what it puts there."""

    def are_whole(self, offset: int | None) -> bool:
        """Whether the committed ends are complete, for a state at this offset (None: for none)."""
        return offset is None or self._rows.get(keys.META_ENDS) == encode_size(offset)

    def begin_anew(self) -> None:
        """Lead to nothing: all that is kept for a time will be written down anew."""
        self.cleared.append((BY_REQUESTS[:1], keys.following(BY_REQUESTS[:1])))

    def take(self, by: bytes, until_ms: int, at_most: int) -> Iterator[EndsRow]:
        """Take the first names, at most so many, whose time is over by an instant."""
        start = self._on.get(by, self._fronts[by])
        for key, row in self._rows.scan(start, ends_key(by, until_ms + 1, 0, 0)):
            newest_ms, names = _told(key, row)
            rest = names[at_most:]
            self._taken[key] = encode_ends(newest_ms, rest) if rest else None
            self._on[by] = key + b"\0"
            yield EndsRow(newest_ms, names[:at_most])
            at_most -= len(names)
            if at_most <= 0:
                return

    def keep_on(self, name: bytes, since_ms: int, kept_ms: int) -> None:
        """A row that was written at an instant before the step is to be forgotten after so long."""
        over = time_of(kept_ms), -(-(since_ms + kept_ms) // HOUR_MS) * HOUR_MS
        newest_ms, names = self._again.get(over) or EndsRow(since_ms, [])
        names.append(name)
        self._again[over] = EndsRow(max(newest_ms, since_ms), names)

    def rows_after(self, offset: int, now_ms: int) -> dict[bytes, bytes | None]:
        """The changes of the store with the step, which is committed at this instant."""
        writes = self._taken.copy()
        # The rest of a row lies at its beginning.
        self._fronts |= {by: key[:-1] for by, key in self._on.items()}
        written = [(kept_ms, EndsRow(now_ms, names)) for kept_ms, names in self.kept.items()]
        led = [((time_of(kept_ms), now_ms + kept_ms), ends) for kept_ms, ends in written]
        number = 0
        for (by, over_ms), (newest_ms, names) in (*led, *self._again.items()):
            for first in range(0, len(names), MOST_NAMES):
                key = ends_key(by, over_ms, offset, number)
                writes[key] = encode_ends(newest_ms, names[first : first + MOST_NAMES])
                self._fronts[by] = min(self._fronts[by], key)
                number += 1
        if self.whole:
            writes[keys.META_ENDS] = encode_size(offset)
        return writes

    def clear(self) -> None:
        """The step has ended."""
        if self.kept:
            self.kept.clear()
        self._again, self._taken, self._on = {}, {}, {}
        self.cleared = []


def _told(key: bytes, row: bytes) -> EndsRow:
    """The content of a row; Damaged if it is not such a row."""
    try:
        return decode_ends(row)
    except struct_error as error:
        raise Damaged(f"the names at {key!r} cannot be read: {error}") from None
