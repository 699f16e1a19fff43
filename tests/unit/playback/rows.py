"""Rows of a changelog, made by hand, for what a playback reads out of them."""

from __future__ import annotations

from typing import Final

from belfry.playback.logged import LoggedStep
from belfry.store.layout.kept_fires import packed_fire
from belfry.store.layout.manifests import Manifest
from belfry.store.layout.pending import KIND_CODES, Pending, encode_pending
from belfry.store.layout.pending_bytes import next_record
from belfry.store.layout.records import ENDED_FIRED, Marker, encode_marker

KEY: Final = b"shop/a"
ACCEPTED: Final = 1_000
WRITTEN: Final = 20_000


def schedule(
    due_ms: int,
    occurrence: int = 0,
    kind: str = "CRON",
    *,
    flags: int = 0,
    jitter_ms: int = 0,
    extra: bytes = b"",
) -> bytes:
    """A schedule that waits for an instant."""
    row = Pending(
        due_ms, due_ms, ACCEPTED, 5, 1, 1, occurrence, KIND_CODES[kind], 0, jitter_ms,
        b"shop", b"a", b"", b"", None, b"", extra, b"payload",
    )  # fmt: skip
    return encode_pending(row, flags)


def fired(due_ms: int, late_ms: int, next_ms: int, *, jitter_ms: int = 0) -> bytes:
    """What recurs, behind its first fire, which its row keeps."""
    before = schedule(due_ms, jitter_ms=jitter_ms)
    return next_record(before, next_ms, next_ms, 1, packed_fire(due_ms, 1, late_ms, 0))


def over(ended_ms: int, how: int = ENDED_FIRED) -> bytes:
    """The marker of a schedule that is over."""
    return encode_marker(Marker(how, ended_ms, 9_000, 1, 1, 1))


def step(rows: dict[bytes, bytes | None], fired: int = 1, *, whole: bool = True) -> LoggedStep:
    """A step of the log with these rows, at offsets from 20 on, written at `WRITTEN`."""
    manifest = Manifest(7, 3, 90, 15_000, 2, fired, bytes(16))
    offsets = {key: 20 + at for at, key in enumerate(rows)}
    return LoggedStep(20, 30, WRITTEN, rows, offsets, manifest, whole)
