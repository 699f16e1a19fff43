"""Changes of rows by a day file, part by part: rows that refer to it, or payloads that come back.

parts    500 rows   500 rows   200 rows         each is a step, or less where rows are large
         done       at         …
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from belfry.engine.day_files import FILE_BYTES, Gathered, PutAside
from belfry.store.layout.day_files import encode_file, payload_in, reference_to
from belfry.store.layout.day_reference import DayFile

STEP_ROWS: Final = 500
STEP_BYTES: Final = FILE_BYTES // 4


class RowChange:
    """A change under way: with `back`, entries of a file come back, else rows refer to it.

    `at` is the part that is done next.  `changed` is the number of rows that the last step has
    changed, which counts once it is committed.  `damaged` is the number of payloads that differ
    from what was put into the file.
    """

    def __init__(self, file: DayFile, parts: Sequence[Sequence[Any]], *, back: bool) -> None:
        self.file = file
        self.back = back
        self.parts = parts
        self.at = 0
        self.changed = 0
        self.damaged = 0


def parts_of(rows: Sequence[Any]) -> Sequence[Sequence[Any]]:
    """The rows in parts, each as large as one step may change: bounded by number, and by bytes."""
    found, size = list[list[Any]]([[]]), 0
    for row in rows:
        held = len(row.record if isinstance(row, PutAside) else row.payload)
        if found[-1] and (len(found[-1]) >= STEP_ROWS or size + held > STEP_BYTES):
            found.append([])
            size = 0
        found[-1].append(row)
        size += held
    return found


def filed(gathered: Gathered, file: DayFile) -> tuple[bytes, list[PutAside]]:
    """The bytes of a file of the gathered rows, and these rows as references to the file."""
    payloads = [payload_in(record) for _, record in gathered.rows]
    data, offsets = encode_file(zip([name for name, _ in gathered.rows], payloads, strict=True))
    rows = zip(gathered.rows, offsets, payloads, strict=True)
    return data, [
        PutAside(name, record, reference_to(file, offset, payload))
        for (name, record), offset, payload in rows
    ]
