"""Rows of a step as they go to the changelog, signed if workers sign (`store/signatures.py`).

An owner can foresee the offset of its next transaction: at first behind the records that it has
read after its fence, and then behind the marker of its last one, because no other producer should
write there. So its rows are signed by place, and `lies_as_signed` tells before the commit whether
they lie there. If not, the step is rolled back, and done once more with rows that are signed by
content. The transaction after any roll-back is signed so, too. The signer asks for the end of the
log and leaves room for others behind that:

    log end                                                      expected at the earliest
     | a stranger's … | rows | NEAR fillers | more rows, manifest | NEAR fillers | marker
       up to NEAR of them between the request and the manifest

Rows and the fillers behind them leave as one batch (a *part*), so that no copy of a row lies at an
offset where the row would be believed. So a stranger who writes into the changelog all the time
makes signing more expensive, but only stops an owner with more than `NEAR` records within each try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import structlog

from belfry.store.signatures import FILLER, NEAR, PLACE, SIGNATURE, RowKeys, bound
from belfry.wire.record import Headers

# Bytes of a signature by place.
_TOKEN: Final = 8
# The number of transactions that are signed by content after a stranger's record.
CAREFUL: Final = 64
# The largest batch that is never divided, in bytes and records: both writers' default.
BATCH_BYTES: Final = 1_000_000
BATCH_RECORDS: Final = 10_000
# The most bytes of a filler in a batch, and of a row besides its key and value.
_FILLER_BYTES: Final = 48
_ROW_BYTES: Final = 128

log = structlog.get_logger(__name__)

Row = tuple[bytes, bytes | None]
Record = tuple[bytes, bytes | None, Headers]
_FILLERS: Final[list[Record]] = [(FILLER, None, [])] * NEAR


class Signed(NamedTuple):
    """Rows in the order in which they are to lie: those with values, tombstones, the manifest.

    If there are `parts`, the rows are in these instead, and each part is to lie in one batch.
    """

    rows: list[Row]
    tombstones: list[tuple[bytes, Headers]]
    manifest: Row
    parts: list[list[Record]] = []  # noqa: RUF012  # never changed


class RowSigner:
    """Signs for one owner of one partition; only its thread uses it.

        expected next   500   rows at 500‥502, manifest at 503: signed by place, 8 bytes each
        acknowledged    503   lies as signed ─► commit; the marker lies at 504
        expected next   505
        a stranger writes at 505
        expected next   505   rows at 506‥508: not as signed ─► rolled back; the next 64
                              transactions are signed by content, with fillers behind

    Copies of rows that were rolled back lie behind fillers then, too far away to count.
    """

    def __init__(self, by: RowKeys, least: int, log_end: Callable[[], int]) -> None:
        """`least` is the end of the log after the fence: there the first transaction lies.

        `log_end` gives its present end, or raises ConnectionError.
        """
        self._by = by
        self._log_end = log_end
        self._next = least
        self._exact = True
        self._careful = 0
        self._manifest_at = -1
        self._tolerated = 0
        # The number of fillers behind the manifest that was signed last.
        self.fillers = 0

    def sign(self, rows: Mapping[bytes, bytes | None], batch_bytes: int = BATCH_BYTES) -> Signed:
        """The rows of a transaction; its manifest is the last of them.

        `batch_bytes` is the most bytes of a batch of the changelog.
        """
        if self._exact and not self._careful:
            return self._by_place(rows)
        self._look()
        parts = _parts(rows, batch_bytes - NEAR * _FILLER_BYTES)
        # A row that leaves no room for fillers has to lie at exactly its offset.
        return self._by_place(rows) if parts is None else self._by_content(parts)

    def _look(self) -> None:
        """Learn the present end of the log; without an answer the last known offset is used."""
        try:
            self._next = max(self._next, self._log_end())
        except ConnectionError as error:
            log.warning("the end of the changelog is not told", reason=str(error))

    def _by_place(self, rows: Mapping[bytes, bytes | None]) -> Signed:
        """Rows whose signatures are for the offset of each."""
        self._manifest_at, self._tolerated = self._next + len(rows) - 1, 0
        self.fillers = 0
        *others, (key, manifest) = rows.items()
        ended = [name for name, row in others if row is None]
        if ended:
            others = [each for each in others if each[1] is not None]
        assert manifest is not None, "the last row of a transaction is its manifest"
        signed = self._placed(others)
        first, token = self._next + len(others), self._by.token
        tombstones: list[tuple[bytes, Headers]] = [
            (name, [(SIGNATURE, PLACE + token(place))]) for place, name in enumerate(ended, first)
        ]
        proof = PLACE + token(self._manifest_at)
        return Signed(signed, tombstones, (key, proof + manifest))

    def _placed(self, rows: list[tuple[bytes, Any]]) -> list[Row]:
        """The hot path: a row costs a slice of the tokens and one more copy."""
        tokens, at = self._by.tokens(self._next, len(rows)), 0
        signed: list[Row] = []
        for key, row in rows:
            signed.append((key, PLACE + tokens[at : at + _TOKEN] + row))
            at += _TOKEN
        return signed

    def _by_content(self, parts: list[list[tuple[bytes, bytes | None]]]) -> Signed:
        """Rows whose signatures are for their content, and a range of offsets."""
        signed, place = list[list[Record]](), self._next
        for part in parts:
            records = [
                self._record(base, name, row) for base, (name, row) in enumerate(part, place)
            ]
            signed.append([*records, *_FILLERS])
            place += len(signed[-1])
        self.fillers = NEAR
        self._manifest_at, self._tolerated = place - NEAR - 1, NEAR
        return Signed([], [], (b"", None), signed)

    def _record(self, base: int, name: bytes, row: bytes | None) -> Record:
        """One row with its signature: before its value, or in a header if it is a tombstone."""
        proof = bound(self._by, base, name, row)
        return (name, None, [(SIGNATURE, proof)]) if row is None else (name, proof + row, [])

    def lies_as_signed(self, manifest_at: int | None) -> bool:
        """Whether the transaction may be committed, its manifest being at this offset."""
        if manifest_at is not None:
            if 0 <= manifest_at - self._manifest_at <= self._tolerated:
                return True
            self._next = max(self._next, self._behind(manifest_at))
        self._careful = CAREFUL
        return False

    def _behind(self, manifest_at: int) -> int:
        """The first offset of the next transaction at the earliest: behind fillers and a marker."""
        return manifest_at + self.fillers + 2

    def committed(self, manifest_at: int) -> None:
        """Note that the transaction is committed, with its manifest here; a marker follows."""
        self._next, self._exact = self._behind(manifest_at), True
        self._careful = max(self._careful - 1, 0)

    def aborted(self) -> None:
        """Note that it was rolled back; its records still lie in the log."""
        self._exact = False


def _parts(
    rows: Mapping[bytes, bytes | None], room: int
) -> list[list[tuple[bytes, bytes | None]]] | None:
    """Rows in parts that leave a batch room for fillers; None if a row is too large."""
    parts, left = [list[tuple[bytes, bytes | None]]()], room
    for name, row in rows.items():
        size = len(name) + len(row or b"") + _ROW_BYTES
        if size > room:
            return None
        if size > left or len(parts[-1]) + NEAR >= BATCH_RECORDS:
            parts.append([])
            left = room
        parts[-1].append((name, row))
        left -= size
    return parts
