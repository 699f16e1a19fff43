"""Folding: records of a changelog laid into a store, one after the other.

    record                                        what becomes of the store
    pending, nothing under its name               it waits in the timeline; aside if it is paused;
                                                  behind a lock if it waits for an acknowledgement
    pending, something under its name             the old row goes, and it waits by the new one
    marker, or a tombstone                        the old row goes; the marker stands for it
    awaited fire, its tombstone                   awaited until then; awaited no more
    verdict, settings, zones, …                   the row under its key
    manifest                                      nothing: it is given back, for the replay to check

The first case, verdicts, and the ends of what waits in the timeline are nearly all of a changelog,
so they are told by the first bytes of the rows, without a decoder.  What is overdue goes into the
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
from belfry.store.schedules import ScheduleStore

# Settings are JSON, and the identity has a format of its own, so that later releases read it.
_OF_OTHER_FORMATS: Final = frozenset((keys.SETTINGS_KEY, keys.IDENTITY_KEY))


def fold(store: ScheduleStore, changes: Sequence[tuple[bytes, bytes | None]]) -> list[Manifest]:
    """Lay changelog records into the store's overlay; returns the manifests among them.

    Raises `UnknownFormat` for a record of a later release.
    """
    manifests: list[Manifest] = []
    found = store.prefetch([name for name, _ in changes if name[:1] != b"\0"])
    # As locals, for each row asks for some of them.
    changed, lay, lay_over = store.changed, store.lay, store.lay_over
    move_to_timeline = store.move_to_timeline
    for name, value in changes:
        if name[:1] == b"\0":
            if name[:2] == REQUEST_PREFIX and value is not None and value[:2] == HEAD_OF_ANSWERED:
                # It is looked into when its id comes again.
                lay(name, value)
            else:
                _fold_other(store, name, value, manifests)
            continue
        before = store.named(name) if name in changed else found[name]
        waits = value is not None and value[:2] == HEAD_OF_PENDING
        if before is None and waits and value is not None and not lies_aside(value):
            move_to_timeline(name, value, *due_and_seq(value))
        elif (
            before is not None
            and before[:3] == HEAD_IN_TIMELINE
            and (value is None or value[:2] == HEAD_OF_MARKER)
        ):
            lay_over(name, before, value)
        else:
            _fold_schedule(store, name, value)
    return manifests


def _fold_other(
    store: ScheduleStore, key: bytes, value: bytes | None, manifests: list[Manifest]
) -> None:
    if key.startswith(REQUEST_PREFIX):
        # Too late to notice that it is of a later release, once its id comes again.
        if value is not None:
            check_format(value)
        store.lay(key, value)
    elif key.startswith(keys.MANIFEST_PREFIX):
        if value is not None:
            manifests.append(decode_manifest(value))
    elif key.startswith(keys.AWAITED_PREFIX):
        _fold_awaited(store, key, value)
    else:
        if value is not None and key not in _OF_OTHER_FORMATS:
            check_format(value)
        store.note(key, value)


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


def _fold_schedule(store: ScheduleStore, name: bytes, value: bytes | None) -> None:
    before = store.named(name)
    if before is not None and check_format(before) == LOCATION:
        store.remove(name, before)
    row = None if value is None else check_format(value)
    if value is not None and is_pending(value):
        store.move(name, value, _location_of(value))
    elif row is None or row == MARKER:
        store.note(name, value)
    else:
        raise AssertionError(f"row {row} under the schedule's key {name!r}")
