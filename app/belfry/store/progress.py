"""How far a replay has come: written with what it has folded, in the same batch.

Unlike the state of a partition, progress is not yet checked: compaction may have taken rows out of
the middle of a changelog, so the fold up to one manifest is not what that manifest says before the
end has been read.  So the schedules that wait are counted as they are folded.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belfry.store import keys
from belfry.store.records import Manifest, decode_manifest, encode_manifest
from belfry.store.schedules import ScheduleStore

NO_GAP: Final = (-1, -1)

# offset, written, pending, gap from and to, rows since the last manifest
_PROGRESS: Final = Struct(">qqqqqq")


class Progress(NamedTuple):
    """The next changelog offset, when, and what was met so far."""

    offset: int
    written_ms: int
    pending: int
    newest_gap: tuple[int, int] = NO_GAP
    loose: int = 0
    manifest: Manifest | None = None


NOTHING: Final = Progress(0, 0, 0)


def load(store: ScheduleStore) -> Progress:
    """Where a replay into this store begins: amid another one, at its state, or at nothing."""
    kept = store.rows.get(keys.META_REPLAY)
    if kept is not None:
        offset, written_ms, pending, before, after, loose = _PROGRESS.unpack_from(kept)
        told = kept[_PROGRESS.size :]
        manifest = decode_manifest(told) if told else None
        return Progress(offset, written_ms, pending, (before, after), loose, manifest)
    state = store.state()
    if state is None:
        return NOTHING
    manifest = state.manifest
    return Progress(state.changelog_offset, state.written_ms, manifest.pending, manifest=manifest)


def save(store: ScheduleStore, progress: Progress) -> None:
    """Write the overlay and how far it leads, in one batch, and forget the state before it."""
    head = _PROGRESS.pack(*progress[:3], *progress.newest_gap, progress.loose)
    told = b"" if progress.manifest is None else encode_manifest(progress.manifest)
    store.writes[keys.META_STATE] = None
    store.writes[keys.META_REPLAY] = head + told
    store.write()
