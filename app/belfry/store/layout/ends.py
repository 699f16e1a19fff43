r"""Ends at rest: names whose rows are to be forgotten from an instant on; in a local store alone.

    e | by u8 | over i64 | offset u64 | number u16   format row 0 0 │ newest i64 │ name ff name ff …

A row of the changelog that is kept for a time (a marker, a verdict, an ended job) says when that
time began.  Names are put together by the instant at which it is over, so rows that have to be
forgotten lie at the beginning.  One row holds names that one step has written: `over` is when the
time of all of them is over, `newest` when that of the last one began, `offset` that of the step in
the changelog. `by` is 0 for the time of requests that were read, and 1 for that of the clock, which
jobs go by.

No byte of a UTF-8 text is ff, so it parts the names.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from belfry.store.layout.jobs import HEAD_OF_JOB, decode_job
from belfry.store.layout.jobs import KEPT_MS as JOB_KEPT_MS
from belfry.store.layout.records import ENDS, FORMAT, is_marker
from belfry.store.layout.verdicts import REQUEST_ID_MS, is_answer

BY_REQUESTS: Final = b"e\0"
BY_CLOCK: Final = b"e\1"
# Names in one row, at most: a sweep reads whole rows.
MOST_NAMES: Final = 500

_KEY: Final = Struct(">2sqQH")
_ENDS: Final = Struct(">BBBBq")
_INSTANT: Final = Struct(">q")
_BETWEEN: Final = b"\xff"
# Of markers and verdicts alike.
_INSTANT_AT: Final = 4


class EndsRow(NamedTuple):
    """Names whose rows are to be forgotten; `newest_ms` is when the last of them was written."""

    newest_ms: int
    names: list[bytes]


def ends_key(by: bytes, over_ms: int, offset: int, number: int) -> bytes:
    """Where names lie whose time is over at an instant, of the step that ends at this offset."""
    return _KEY.pack(by, over_ms, offset, number)


def encode_ends(newest_ms: int, names: Sequence[bytes]) -> bytes:
    """The row of some names."""
    return _ENDS.pack(FORMAT, ENDS, 0, 0, newest_ms) + _BETWEEN.join(names)


def decode_ends(row: bytes) -> EndsRow:
    """The names in a row."""
    return EndsRow(_ENDS.unpack_from(row)[4], row[_ENDS.size :].split(_BETWEEN))


def kept_since_ms(row: bytes) -> int | None:
    """When the time began for which a row of the changelog is kept; None for no such row."""
    if is_marker(row) or is_answer(row):
        return int(_INSTANT.unpack_from(row, _INSTANT_AT)[0])
    return decode_job(row).ended_ms if row[:2] == HEAD_OF_JOB else None


def time_of(kept_ms: int) -> bytes:
    """The kind of time by which a row kept for so long ends; policies keep a day at most."""
    return BY_CLOCK if kept_ms == JOB_KEPT_MS else BY_REQUESTS


def kept_ms_of(row: bytes) -> int:
    """For how long a row is kept that no policy is about: a verdict or an ended job."""
    return JOB_KEPT_MS if row[:2] == HEAD_OF_JOB else REQUEST_ID_MS
