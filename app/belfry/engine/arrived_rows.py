"""Rows of a key group in a record that came: read whole before any of them counts.

    ROWS   zones │ key, row │ key, row │ …      each of the group, and of a kind that moves
                      └─ of another group, cut off, or of no such kind: the record is refused

A row that cannot be read would stop the partition later, in the middle of a step, and each new
owner again.  So all of a record is read first, and any fault in it is a reason to refuse it.

Rows of a tenant that is spread are taken in: its policy may have come here before the source has
heard of it, and rows that have left the source must not be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from belfry.store.layout import keys
from belfry.store.layout.calendars import CALENDAR_PREFIX, CalendarRow, decode_calendar
from belfry.store.layout.dependence import dependence_of
from belfry.store.layout.jobs import HEAD_OF_JOB, JOB_PREFIX, decode_job
from belfry.store.layout.pending import Pending, decode_pending
from belfry.store.layout.pending_bytes import depends, is_pending, with_seq
from belfry.store.layout.records import (
    Awaited,
    UnknownFormat,
    check_format,
    decode_awaited,
    decode_marker,
    is_marker,
    text_of,
    whole_records,
)
from belfry.store.layout.verdicts import decode_verdict, is_answer
from belfry.wire.moves import unpack_rows

_PREFIXES: Final = (keys.REQUEST_PREFIX, JOB_PREFIX, keys.AWAITED_PREFIX, CALENDAR_PREFIX)
# Errors of decoders for bytes that no release has written.
_ODD: Final = (UnknownFormat, ValueError, KeyError, TypeError, AttributeError)
_SHOWN: Final = 80
# Instants of the years 1 to 9999: no others can be written in the headers of an event.
_WRITABLE_MS: Final = range(-62_135_596_800_000, 253_402_300_800_000)

T = TypeVar("T")
Decoded = Pending | Awaited | CalendarRow | None


class ArrivedRow(NamedTuple):
    """A row under its key.  One that waits is ordered by the record that brought it.

    `decoded` is its content, None if it is kept as it is.
    """

    name: bytes
    row: bytes
    decoded: Decoded


class ArrivedRows(NamedTuple):
    """Rows of one record, and the row of the time zone data by which they were found."""

    zones: bytes
    rows: list[ArrivedRow]


def read_rows(body: bytes, offset: int, group: int, group_of: Callable[[str], int]) -> ArrivedRows:
    """The rows in the body of a record at this offset.

    Raises ValueError, with the reason, where one of them is cut, unknown, or of another group.
    """
    size = body[0] if body else 0
    zones = body[1 : 1 + size]
    if zones:
        _read(keys.ZONES_KEY, zones, lambda: text_of(zones))
    found: list[ArrivedRow] = []
    for name, row in unpack_rows(body[1 + size :]):
        tenant = _tenant_of(name)
        if group_of(tenant) != group:
            raise ValueError(f"{_shown(name)} is of group {group_of(tenant)}")
        kept = with_seq(row, offset) if is_pending(row) else row
        decoded = _decoded(name, kept)
        if isinstance(decoded, Pending) and any(isinstance(each[2], Pending) for each in found):
            # Two of one instant would lie in one place, and one of them would be lost.
            raise ValueError(f"{_shown(name)} shares its record, and with it its sequence")
        found.append(ArrivedRow(name, kept, decoded))
    return ArrivedRows(zones, found)


def _tenant_of(name: bytes) -> str:
    prefix = next((each for each in _PREFIXES if name.startswith(each)), b"")
    try:
        # All of it is text: the code that forgets rows parts names by a byte that no text has.
        found, slash, _ = name[len(prefix) :].decode().partition("/")
    except UnicodeDecodeError:
        found = slash = ""
    if not slash or not found or found.startswith("\0"):
        raise ValueError(f"{_shown(name)} is no row that moves")
    return found


def _decoded(name: bytes, row: bytes) -> Decoded:
    if name.startswith(keys.AWAITED_PREFIX):
        return _read(name, row, lambda: decode_awaited(row))
    if name.startswith(CALENDAR_PREFIX):
        return _read(name, row, lambda: decode_calendar(row))
    if name.startswith(JOB_PREFIX):
        job = _read(name, row, lambda: decode_job(row))
        if row[: len(HEAD_OF_JOB)] == HEAD_OF_JOB and job.ended_ms is not None:
            return None
    elif name.startswith(keys.REQUEST_PREFIX):
        _read(name, row, lambda: decode_verdict(row))
        if is_answer(row):
            return None
    elif is_pending(row):
        pending = _read(name, row, lambda: decode_pending(row))
        named = b"%b/%b" % (pending.tenant, pending.schedule_id) == name
        waits = not depends(row) or dependence_of(row) != b""
        instants = 0 <= pending.due_ms in _WRITABLE_MS and pending.nominal_ms in _WRITABLE_MS
        if named and waits and instants:
            return pending
    else:
        _read(name, row, lambda: decode_marker(row))
        if is_marker(row):
            return None
    raise ValueError(f"{_shown(name)} has a row of another kind")


def _read(name: bytes, row: bytes, decode: Callable[[], T]) -> T:
    try:
        with whole_records():
            check_format(row)
            return decode()
    except _ODD as error:
        raise ValueError(f"{_shown(name)} cannot be read ({error})") from error


def _shown(name: bytes) -> str:
    return name[:_SHOWN].decode(errors="backslashreplace")
