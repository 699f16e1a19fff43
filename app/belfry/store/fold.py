"""Folding: the net of a changelog's records (`net.py`) laid into a store.

    record                                        what becomes of the store
    pending, nothing under its name               it waits in the timeline; aside if it is paused;
                                                  behind a lock if it waits for an acknowledgement
    pending, something under its name             the old row goes, and it waits by the new one
    marker, or a tombstone                        the old row goes; the marker stands for it
    awaited fire, its tombstone                   awaited until then; awaited no more
    verdict, settings, zones, …                   the row under its key
    manifest                                      nothing: it is given back, for the replay to check

Rows that come into the timeline, move within it or leave it, and verdicts, are nearly all of a
changelog.  They are told by the first bytes of the rows, without a decoder, and laid many at once.
Each name comes once, so the former row under it is the committed one.  Overdue rows go into the
timeline as well; `Replay.finish` moves it to the backlog once the watermark is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belfry.store.layout import keys
from belfry.store.layout.dependence import dependence_of
from belfry.store.layout.keys import REQUEST_PREFIX
from belfry.store.layout.locations import (
    BEHIND_LOCK,
    HEAD_IN_TIMELINE,
    IN_PAUSED,
    IN_TIMELINE,
    Location,
)
from belfry.store.layout.manifests import Manifest, decode_manifest
from belfry.store.layout.pending_bytes import (
    HEAD_OF_PENDING,
    depends,
    due_and_seq,
    is_pending,
    lies_aside,
    paused,
)
from belfry.store.layout.records import HEAD_OF_MARKER, LOCATION, MARKER, check_format
from belfry.store.layout.verdicts import HEAD_OF_ANSWERED
from belfry.store.net import Change, NetChanges
from belfry.store.schedules import ScheduleStore

# Settings are JSON, and the identity has a format of its own, so that later releases read it.
_OF_OTHER_FORMATS: Final = frozenset((keys.SETTINGS_KEY, keys.IDENTITY_KEY))


def fold(store: ScheduleStore, net: NetChanges) -> list[Manifest]:
    """Lay the net of changelog records into the store's overlay, which holds nothing else yet.

    Returns the manifests among them.  Raises `UnknownFormat` for a record of a later release.
    """
    named: dict[bytes, bytes | None] = {}
    for name, value in net.others:
        _fold_other(store, name, value, named)
    store.lay_rows(named)
    _fold_schedules(store, net.schedules)
    return [decode_manifest(row) for row in net.manifests]


def _fold_schedules(store: ScheduleStore, schedules: Sequence[Change]) -> None:
    """Fold rows of schedules; those that need a closer look are folded one by one."""
    committed = store.committed([name for name, _ in schedules])
    # Rows under names; locations that leave the timeline; and records that wait there.
    named = dict(schedules)
    gone: list[bytes] = []
    gone_from: list[bytes] = []
    waiting: list[bytes] = []
    records: list[bytes] = []
    looked_at: list[tuple[bytes, bytes | None, bytes | None]] = []
    for (name, value), before in zip(schedules, committed, strict=True):
        in_timeline = False
        if before is not None:
            in_timeline = before[:3] == HEAD_IN_TIMELINE
            if not in_timeline and before[:2] != HEAD_OF_MARKER:
                looked_at.append((name, value, before))
                continue
        if value is None:
            if before is None:
                # Nothing is left of rows that came meanwhile.
                del named[name]
        elif (head := value[:2]) != HEAD_OF_MARKER:
            if head != HEAD_OF_PENDING or lies_aside(value):
                looked_at.append((name, value, before))
                continue
            waiting.append(name)
            records.append(value)
        if in_timeline and before is not None:
            gone.append(name)
            gone_from.append(before)
    store.lay_rows(named)
    for name, value, before in looked_at:
        _fold_schedule(store, name, value, before)
    # A record may come to lie where another one lay.
    store.lay_gone(gone, gone_from)
    store.lay_waiting(waiting, records)


def _fold_other(
    store: ScheduleStore, key: bytes, value: bytes | None, named: dict[bytes, bytes | None]
) -> None:
    """Fold a row that is no schedule's; one that only has to be there is put into `named`."""
    if key[:2] == REQUEST_PREFIX:
        # It is looked into when its id comes again: too late to notice that it is of a later
        # release.
        if value is not None and value[:2] != HEAD_OF_ANSWERED:
            check_format(value)
        named[key] = value
    elif key.startswith(keys.AWAITED_PREFIX):
        _fold_awaited(store, key, value)
    else:
        if value is not None and key not in _OF_OTHER_FORMATS:
            check_format(value)
        named[key] = value


def _fold_awaited(store: ScheduleStore, key: bytes, value: bytes | None) -> None:
    before = store.named(key)
    if before is not None:
        store.acked(key, before)
    if value is not None:
        check_format(value)
        store.await_ack(key, value)


def _location_of(record: bytes) -> Location:
    """Where a schedule lies that waits: one of a later release in the timeline, until it is due."""
    if paused(record):
        return Location(IN_PAUSED, *due_and_seq(record))
    lock = dependence_of(record) if depends(record) else b""
    if lock:
        return Location(BEHIND_LOCK, *due_and_seq(record), lock)
    return Location(IN_TIMELINE, *due_and_seq(record))


def _fold_schedule(
    store: ScheduleStore, name: bytes, value: bytes | None, before: bytes | None
) -> None:
    """Fold a schedule's row; `before` is the committed row under its name."""
    if before is not None and check_format(before) == LOCATION:
        store.remove(name, before)
    row = None if value is None else check_format(value)
    if value is not None and is_pending(value):
        store.move(name, value, _location_of(value))
    elif row is None or row == MARKER:
        store.lay_rows({name: value})
    else:
        raise AssertionError(f"row {row} under the schedule's key {name!r}")
