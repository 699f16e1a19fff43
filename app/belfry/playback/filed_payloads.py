"""Payloads that a worker put into day files in a step, or back into rows, as its log has it.

    played   row a, with its payload      logged   row a, with a reference: laid in, if its digest
                                                   is that of the payload
    played   row a, with a reference      logged   row a, with a payload: laid in, if it is that of
                                                   the reference

When a worker does so is in no log but this one, and no request asks for it.  Nothing else of a row
may differ: other differences are left for the comparison to find.
"""

from __future__ import annotations

from collections.abc import Mapping

from belfry.engine.day_files import PutAside
from belfry.engine.partition import PartitionEngine
from belfry.store.layout.day_files import (
    Entry,
    of_row,
    payload_in,
    reference_to,
    with_payload,
    without_payload,
)
from belfry.store.layout.day_reference import decode_reference
from belfry.store.layout.locations import is_location
from belfry.store.layout.pending_bytes import away, is_pending
from belfry.store.schedules import ScheduleStore


def file_as_logged(
    engine: PartitionEngine, store: ScheduleStore, rows: Mapping[bytes, bytes | None], now_ms: int
) -> None:
    """Repeat the moves of payloads in the log of this step; `store` is the engine's own."""
    for name, row in rows.items():
        if row is None or not is_pending(row):
            continue
        location = store.named(name)
        if not is_location(location):
            continue
        played = store.pending_at(name, location)
        if played == row or away(played) == away(row):
            continue
        if away(row):
            _aside(engine, name, (played, row), now_ms)
        else:
            _back(engine, name, (played, row), now_ms)


def _aside(engine: PartitionEngine, name: bytes, records: tuple[bytes, bytes], now_ms: int) -> None:
    played, row = records
    stands = of_row(row)
    if stands is None or without_payload(played, stands) != row:
        return
    reference = decode_reference(stands)
    if reference_to(reference.file, reference.offset, payload_in(played)) == stands:
        engine.put_aside(now_ms, [PutAside(name, played, stands)])


def _back(engine: PartitionEngine, name: bytes, records: tuple[bytes, bytes], now_ms: int) -> None:
    played, row = records
    payload = payload_in(row)
    if with_payload(played, payload) != row:
        return
    reference = decode_reference(of_row(played) or b"")
    engine.put_back(now_ms, reference.file, [Entry(name, reference.offset, payload)])
