"""Judging: which records of a changelog are rows that a worker has written.

    record ─┬─ signed, and true          a row; of a later release, replay stops for it
            ├─ signed, and not true      a stranger's
            ├─ not signed                a row, unless signatures are required
            └─ no release writes such    a stranger's, signed or not (`may_be_a_row`)

Records are judged in the order of their offsets: a row that is signed by content (`signatures.py`)
counts only behind the last manifest, so that nobody brings a row of an earlier transaction back.

Releases before wrote no fillers, and believed such rows up to `FAR` behind their base, though not
behind a later manifest.  Theirs are still believed so: before the offset from which on all owners
write fillers, which the partition's mark tells (`kafka/signature_marks.py`).

Attempts of a stranger who may write to the topic, and their results:

    offset 500   a worker's row, token of 500           believed
    offset 501   a stranger's copy of that row          token of 500, not of 501: a stranger's
    offset 502   a row of its own, with a made-up token one chance in 2^64
    offset 2000  a copy of a row bound to base 900      2000 > 900 + 1024: a stranger's
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from belfry.store.layout import keys
from belfry.store.layout.pending_bytes import HEAD_OF_PENDING
from belfry.store.layout.records import HEAD_OF_MARKER, UnknownFormat
from belfry.store.net import Change
from belfry.store.signatures import (
    BOUND_HEAD,
    BOUND_SIZE,
    FILLER,
    NEAR,
    PLACE,
    PLACED_SIZE,
    SIGNATURE,
    SIGNED,
    RowKeys,
    is_signed,
    row_of,
)

FAR: Final = 1_000_000
# Formats stay below the first bytes of texts, and of Avro with its zero byte.
_NO_FORMAT: Final = 32
_JSON: Final = (keys.SETTINGS_KEY, keys.IDENTITY_KEY)
# Schedules' rows that are not signed begin so.
_PLAIN: Final = frozenset((HEAD_OF_PENDING, HEAD_OF_MARKER))


class LoggedRecord(Protocol):
    """A record of the changelog, as its reader gives it; `timestamp` is epoch ms."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]] | None: ...


def may_be_a_row(key: bytes, value: bytes | None) -> bool:
    """Whether some release may have written this, signed or not.

    Keys hold a slash, or begin with a zero byte.  Values begin with a format from 1 to 31 and a
    letter; those that are JSON lie under keys of their own.
    """
    if key[:1] != b"\0" and b"/" not in key:
        return False
    if value is None:
        return True
    return (len(value) > 1 and 0 < value[0] < _NO_FORMAT) or key[:2] in _JSON


class Verifier:
    """Which signed records of one partition are a worker's, read in the order of their offsets."""

    def __init__(self, believed: Sequence[RowKeys], near_from: int = 0) -> None:
        """From offset `near_from` on, rows that are signed by content lie in front of fillers."""
        self._keys = believed
        self.near_from = near_from
        # The offset of the last manifest: rows that were bound before it have come before it.
        self.manifest_at = -1
        # Offsets behind it of rows that are signed by content.
        self.bound: set[int] = set()

    def holds(self, offset: int, key: bytes, proof: bytes, row: bytes | None) -> bool:
        """Whether a worker has written this record; `proof` may be followed by the row."""
        if proof[:1] == PLACE:
            token = proof[1:PLACED_SIZE]
            for each in self._keys:  # noqa: SIM110  # the hot path of replay
                if each.token(offset) == token:
                    return True
            return False
        if proof[:1] != SIGNED[1] or len(proof) < BOUND_SIZE:
            return False
        _, base = BOUND_HEAD.unpack_from(proof)
        most = NEAR if offset >= self.near_from else FAR
        if not (self.manifest_at < base <= offset <= base + most):
            return False
        tag = proof[BOUND_HEAD.size : BOUND_SIZE]
        if not any(tag == each.tag(base, key, row) for each in self._keys):
            return False
        self.bound.add(offset)
        return True

    def met_manifest(self, offset: int) -> None:
        """A manifest lies there, -1 for none: later records belong to a later transaction."""
        self.manifest_at = offset
        self.bound.clear()


class Judge:
    """Which records of one partition are rows, signed or not; asked in the order of offsets.

    Without keys no signature can be judged, so a signed row is an error that says so.
    """

    def __init__(
        self, believed: Sequence[RowKeys] = (), *, required: bool = False, near_from: int = 0
    ) -> None:
        self._verifier = Verifier(believed, near_from) if believed else None
        self._required = required

    def restart(self, manifest_at: int) -> None:
        """Records come from another offset on; the last manifest before it, -1 where unknown.

        Nothing that is bound before that manifest is believed behind it.
        """
        if self._verifier is not None:
            self._verifier.met_manifest(manifest_at)

    def go_on_from(self, other: Judge) -> None:
        """Records come from where another judge of the same partition has got to."""
        if self._verifier is not None and other._verifier is not None:
            self._verifier.manifest_at = other._verifier.manifest_at
            self._verifier.bound = set(other._verifier.bound)

    def may_be_copies(self, offsets: Iterable[int]) -> bool:
        """Whether rows behind the last manifest may be a stranger's copies of a transaction.

        Those of a release before can, where it was rolled back.  A row that is signed by place
        cannot be copied: without a manifest, it tells of one that is lost.
        """
        return self._verifier is not None and self._verifier.bound.issuperset(offsets)

    @property
    def near_from(self) -> int:
        """The offset from which on rows that are signed by content lie in front of fillers."""
        return 0 if self._verifier is None else self._verifier.near_from

    def believe_near(self, near_from: int) -> None:
        """That offset is known, or another one, by now."""
        if self._verifier is not None:
            self._verifier.near_from = near_from

    @property
    def manifest_at(self) -> int:
        """Offset of the last manifest that was met; -1 for none."""
        return -1 if self._verifier is None else self._verifier.manifest_at

    def believes(self, key: bytes, value: bytes | None) -> bool:
        """Whether this is the row of a schedule that needs no closer look; `row` judges others.

        Nearly all are such, where signatures are not required.
        """
        return (
            not self._required and value is not None and value[:2] in _PLAIN
            and key[:1] != b"\0" and b"/" in key
        )  # fmt: skip

    def rows(
        self, records: Iterable[LoggedRecord]
    ) -> tuple[list[Change], list[int], list[LoggedRecord]]:
        """The rows among records, their offsets, and records of no worker; fillers are left out."""
        changes: list[Change] = []
        offsets: list[int] = []
        strangers: list[LoggedRecord] = []
        plain, judged = not self._required, self.row
        for record in records:
            key, value, offset = record.key or b"", record.value, record.offset
            known = (
                # Nearly all of them are such, and `row` would believe them.
                plain and value is not None and value[:2] in _PLAIN
                and key[:1] != b"\0" and b"/" in key
            )  # fmt: skip
            if not known:
                known, value = judged(offset, key, value, partial(_proof_in, record))
            if known:
                changes.append((key, value))
                offsets.append(offset)
            elif key != FILLER or record.value is not None:
                strangers.append(record)
        return changes, offsets, strangers

    def row(
        self, offset: int, key: bytes, value: bytes | None, proof: Callable[[], bytes | None]
    ) -> tuple[bool, bytes | None]:
        """Whether a record is a row, and the row without its proof.

        `proof` tells that of a tombstone, None for one that is not signed.
        """
        if not may_be_a_row(key, value):
            return False, None
        if value is None:
            known = self._is_end(offset, key, proof)
        elif is_signed(value):
            known, value = self._is_row(offset, key, value)
        else:
            known = not self._required
        if known and self._verifier is not None and key.startswith(keys.MANIFEST_PREFIX):
            self._verifier.met_manifest(offset)
        return known, value

    def _is_end(self, offset: int, key: bytes, proof: Callable[[], bytes | None]) -> bool:
        if self._verifier is None:
            return True
        told = proof()
        if told is None:
            return not self._required
        return self._verifier.holds(offset, key, told, None)

    def _is_row(self, offset: int, key: bytes, value: bytes) -> tuple[bool, bytes]:
        if self._verifier is None:
            raise UnknownFormat(
                f"The record at offset {offset} of the changelog is signed, and there is no secret"
                " to judge it by: give the BELFRY_HTTP_WORKER_SECRET of the workers."
            )
        row = row_of(value)
        return self._verifier.holds(offset, key, value, row), row


def _proof_in(record: LoggedRecord) -> bytes | None:
    """The proof of a tombstone that it is a worker's; None if it has no proof."""
    given = record.headers or ()
    return next((value or b"" for name, value in given if name == SIGNATURE), None)
