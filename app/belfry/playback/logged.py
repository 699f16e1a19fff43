"""Transactions of a changelog as a playback takes them: rows and a manifest, in order and whole.

    offset   10     11     12           13      14     15
    record   row a  row b  manifest 7   marker  row c  manifest 8
             └── step 7 ──────────────┘         └── step 8 ──────┘

A playback begins with a partition's birth, or with a later take-over (`beginning.py`): the memory
of an engine is not in the changelog, and follows from all steps since.  So the manifests have to
begin there and have no gap.  Where compaction has removed some of them, or a recovery has rewritten
rows, `Unplayable` says what is missing.

Compaction may have removed rows of a transaction whose manifest is there.  Each record and each
end of a transaction takes one offset, so a step whose offsets follow those of the one before is
`whole`: nothing of it is missing.
"""

from __future__ import annotations

from typing import NamedTuple

from belfry.schedules.triggers import zones
from belfry.store.identity import decode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, decode_manifest
from belfry.store.layout.records import text_of


class Unplayable(Exception):
    """Records that a playback needs are not there; the message says which, and what can be done."""


class LoggedRow(NamedTuple):
    """A record of a changelog: offset, timestamp (epoch ms), key, and row or None (tombstone)."""

    offset: int
    written_ms: int
    key: bytes
    row: bytes | None


class LoggedStep(NamedTuple):
    """One transaction of the changelog.

    `first` is the offset of its first record and `last` that of its manifest.  `written_ms` is the
    timestamp of the manifest's record.  `rows` and their `offsets` are by changelog key, without
    the manifest.  `twice` is a key that has more than one row in it, which no worker writes.
    """

    first: int
    last: int
    written_ms: int
    rows: dict[bytes, bytes | None]
    offsets: dict[bytes, int]
    manifest: Manifest
    whole: bool
    twice: bytes | None = None


class StepCutter:
    """Cuts the records of one changelog partition into steps, from the one behind `number` on.

    `ended_at` is the offset of that one's manifest; -2 for none.
    """

    def __init__(self, number: int = 0, ended_at: int = -2) -> None:
        self._rows: dict[bytes, bytes | None] = {}
        self._offsets: dict[bytes, int] = {}
        self._first: int | None = None
        self._twice: bytes | None = None
        self._number = number
        self._ended_at = ended_at

    def feed(self, record: LoggedRow) -> LoggedStep | None:
        """Take the next row; the step that it ends, or None.  Raises `Unplayable`."""
        offset, written_ms, key, value = record
        self._first = offset if self._first is None else self._first
        if not key.startswith(keys.MANIFEST_PREFIX) or value is None:
            self._twice = key if key in self._rows else self._twice
            self._rows[key] = value
            self._offsets[key] = offset
            return None
        manifest = decode_manifest(value)
        self._check(manifest.txn_seq)
        step = LoggedStep(
            self._first, offset, written_ms, self._rows, self._offsets, manifest,
            whole=self._is_whole(offset), twice=self._twice,
        )  # fmt: skip
        _check_rows(step)
        self._rows, self._offsets, self._first, self._twice = {}, {}, None, None
        self._number, self._ended_at = manifest.txn_seq, offset
        return step

    def _is_whole(self, offset: int) -> bool:
        """Whether no offset is missing since the last step but that of its end."""
        assert self._first is not None
        return self._first == self._ended_at + 2 and offset - self._first == len(self._rows)

    def _check(self, number: int) -> None:
        if number == self._number + 1:
            return
        gone = f"transaction {self._number + 1}"
        if number > self._number + 2:
            gone = f"transactions {self._number + 1} to {number - 1}"
        raise Unplayable(
            f"The changelog holds transaction {number}, and not {gone} before it: compaction has"
            " removed them, or the partition was recovered. What an engine keeps in memory follows"
            " from all steps since a take-over, so none may be missing: --from a later instant"
            " begins with the first take-over from there on."
        )


def _check_rows(step: LoggedStep) -> None:
    """Raise `Unplayable` where the rows say that the step needs data that is not here."""
    identity, version = step.rows.get(keys.IDENTITY_KEY), step.rows.get(keys.ZONES_KEY)
    if identity is not None and decode_identity(identity).generation:
        raise Unplayable(
            f"Transaction {step.manifest.txn_seq} is a recovery (belfry recover): it wrote rows"
            " that no request asked for, so what lies behind it cannot be played."
        )
    if version is not None and text_of(version) != zones.VERSION:
        raise Unplayable(
            f"Transaction {step.manifest.txn_seq} found instants by the time zone data"
            f" {text_of(version)}, and this program has {zones.VERSION}: run it with tzdata"
            f" {text_of(version)} installed."
        )
