"""Rows of a step as they go to the changelog, signed where workers sign (`store/signatures.py`).

An owner knows where its next transaction will lie: behind the marker that ended its last one, for
nobody else writes there.  So its rows are signed by place, and `lies_as_signed` tells before the
commit whether they came to lie there.  If not, the step is rolled back, and once more done with
rows that are signed by content: so is the first of an owner, and that after a rollback.  Who
writes into the changelog all the time thus makes signing dearer, and stops nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from belfry.store.signatures import PLACE, SIGNATURE, RowKeys, bound
from belfry.wire.record import Headers

_TOKEN: Final = 8
# After a stranger's record, so many transactions are signed by content.
CAREFUL: Final = 64

Row = dict[str, Any]


class Signed(NamedTuple):
    """Rows in the order in which they are to lie: those with values, tombstones, the manifest."""

    rows: list[Row]
    tombstones: list[tuple[bytes, Headers]]
    manifest: Row


class RowSigner:
    """Signs for one owner of one partition; used by its thread alone."""

    def __init__(self, by: RowKeys, least: int) -> None:
        """`least` is an offset before which nothing of this owner can lie."""
        self._by = by
        self._next = least
        self._exact = False
        self._careful = 0
        self._start: int | None = None
        self._count = 0

    def sign(self, rows: Mapping[bytes, bytes | None]) -> Signed:
        """The rows of a transaction; its manifest is the last of them."""
        self._count = len(rows)
        exact = self._exact and not self._careful
        self._start = self._next if exact else None
        *others, (key, manifest) = rows.items()
        ended = [name for name, row in others if row is None]
        if ended:
            others = [each for each in others if each[1] is not None]
        assert manifest is not None, "the last row of a transaction is its manifest"
        behind = [*((name, None) for name in ended), (key, manifest)]
        signed = self._by_place(others) if exact else self._by_content(others)
        proofs = self._proofs(behind, len(others))
        tombstones: list[tuple[bytes, Headers]] = [
            (name, [(SIGNATURE, proof)]) for name, proof in zip(ended, proofs, strict=False)
        ]
        return Signed(signed, tombstones, {"key": key, "value": proofs[-1] + manifest})

    def _by_place(self, rows: list[tuple[bytes, Any]]) -> list[Row]:
        """The hot path: a row costs a slice of the tokens and one more copy."""
        tokens, signed, at = self._by.tokens(self._next, len(rows)), [], 0
        for key, row in rows:
            signed.append({"key": key, "value": PLACE + tokens[at : at + _TOKEN] + row})
            at += _TOKEN
        return signed

    def _by_content(self, rows: list[tuple[bytes, Any]]) -> list[Row]:
        proofs = self._proofs(rows, 0)
        return [
            {"key": key, "value": proof + row}
            for (key, row), proof in zip(rows, proofs, strict=True)
        ]

    def _proofs(self, rows: list[tuple[bytes, bytes | None]], skipped: int) -> list[bytes]:
        """Proofs of rows that follow so many others."""
        first = self._next + skipped
        if self._start is None:
            return [bound(self._by, self._next, *row) for row in rows]
        return [PLACE + self._by.token(first + at) for at in range(len(rows))]

    @property
    def by_place(self) -> bool:
        """Whether the rows that were signed last have to lie where they were expected."""
        return self._start is not None

    def lies_as_signed(self, manifest_at: int | None) -> bool:
        """Whether the transaction may be committed, its manifest being at this offset."""
        if self._start is None:
            return True
        if manifest_at == self._start + self._count - 1:
            return True
        self._careful = CAREFUL
        return False

    def committed(self, manifest_at: int) -> None:
        """The transaction is in the log, up to its manifest; the marker of its end follows."""
        self._next, self._exact = manifest_at + 2, True
        self._careful = max(self._careful - 1, 0)

    def aborted(self) -> None:
        """It was rolled back; its records lie in the log nevertheless."""
        self._exact = False
