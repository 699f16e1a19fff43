"""Rows of a step as they go to the changelog, signed where workers sign (`store/signatures.py`).

An owner knows where its next transaction will lie: at first behind what it has read after its
fence, and then behind the marker that ended its last one, for nobody else writes there.  So its
rows are signed by place, and `lies_as_signed` tells before the commit whether they came to lie
there.  If not, the step is rolled back, and done once more with rows that are signed by content:
so is what follows a rollback.  It asks where the log ends and leaves room for others behind that:

    log end                                                      expected at the earliest
     | a stranger's … | rows | NEAR fillers | more rows, manifest | NEAR fillers | marker
       up to NEAR of them between the question and the manifest

Rows and the fillers behind them leave as one batch (a *part*), so that no copy of a row lies where
the row would be believed.  Who writes into the changelog all the time thus makes signing dearer,
and stops nobody but with more than `NEAR` records within each try.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import structlog

from belfry.store.signatures import FILLER, NEAR, PLACE, SIGNATURE, RowKeys, bound
from belfry.wire.record import Headers

# Bytes of a signature by place.
_TOKEN: Final = 8
# After a stranger's record, so many transactions are signed by content.
CAREFUL: Final = 64
# A batch of so many bytes and records is never divided: what both writers fill unless told less.
BATCH_BYTES: Final = 1_000_000
BATCH_RECORDS: Final = 10_000
# What a filler takes of a batch at most, and what a row takes beside its key and value.
_FILLER_BYTES: Final = 48
_ROW_BYTES: Final = 128

log = structlog.get_logger(__name__)

Row = tuple[bytes, bytes | None]
Record = tuple[bytes, bytes | None, Headers]
_FILLERS: Final[list[Record]] = [(FILLER, None, [])] * NEAR


class Signed(NamedTuple):
    """Rows in the order in which they are to lie: those with values, tombstones, the manifest.

    Where there are `parts`, they are in these instead, and each part is to lie in one batch.
    """

    rows: list[Row]
    tombstones: list[tuple[bytes, Headers]]
    manifest: Row
    parts: list[list[Record]] = []  # noqa: RUF012  # never changed


class RowSigner:
    """Signs for one owner of one partition; used by its thread alone.

        expected next   500   rows at 500‥502, manifest at 503: signed by place, 8 bytes each
        acknowledged    503   lies as signed ─► commit; the marker lies at 504
        expected next   505
        a stranger writes at 505
        expected next   505   rows at 506‥508: not as signed ─► rolled back; the next 64
                              transactions are signed by content, with fillers behind

    Copies of what was rolled back lie behind fillers then, too far away to count.
    """

    def __init__(self, by: RowKeys, least: int, log_end: Callable[[], int]) -> None:
        """`least` is where the log ended after the fence: there the first transaction lies.

        `log_end` tells where it ends now, or raises ConnectionError.
        """
        self._by = by
        self._log_end = log_end
        self._next = least
        self._exact = True
        self._careful = 0
        self._manifest_at = -1
        self._tolerated = 0
        # How many records lie behind the manifest that was signed last.
        self.fillers = 0

    def sign(self, rows: Mapping[bytes, bytes | None], batch_bytes: int = BATCH_BYTES) -> Signed:
        """The rows of a transaction; its manifest is the last of them.

        `batch_bytes` is what a batch of the changelog may hold.
        """
        if self._exact and not self._careful:
            return self._by_place(rows)
        self._look()
        parts = _parts(rows, batch_bytes - NEAR * _FILLER_BYTES)
        # A row that leaves no room for fillers has to come to lie in the very place.
        return self._by_place(rows) if parts is None else self._by_content(parts)

    def _look(self) -> None:
        """Learn where the log ends now; where nobody tells, the last known place has to do."""
        try:
            self._next = max(self._next, self._log_end())
        except ConnectionError as error:
            log.warning("the end of the changelog is not told", reason=str(error))

    def _by_place(self, rows: Mapping[bytes, bytes | None]) -> Signed:
        """Rows whose signatures say at which offset each of them lies."""
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
        """Rows whose signatures say what is in them, and in which range of offsets they may lie."""
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
        """One row with its signature: before its value, or in a header where it is a tombstone."""
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
        """Where the next transaction lies at the earliest: behind fillers and a marker."""
        return manifest_at + self.fillers + 2

    def committed(self, manifest_at: int) -> None:
        """The transaction is in the log, up to its manifest; the marker of its end follows."""
        self._next, self._exact = self._behind(manifest_at), True
        self._careful = max(self._careful - 1, 0)

    def aborted(self) -> None:
        """It was rolled back; its records lie in the log nevertheless."""
        self._exact = False


def _parts(
    rows: Mapping[bytes, bytes | None], room: int
) -> list[list[tuple[bytes, bytes | None]]] | None:
    """Rows in parts that leave a batch room for fillers; None where there is one too large."""
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
