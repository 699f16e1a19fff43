"""Rows are signed for the offsets at which they will lie, and by content where nobody knows."""

from __future__ import annotations

from functools import partial

from belfry.kafka.row_signing import CAREFUL, RowSigner, Signed
from belfry.store.layout import keys
from belfry.store.signatures import PLACE, SIGNATURE, Judge, RowKeys

BY = RowKeys(b"k" * 32, "log", 0)
ROWS: dict[bytes, bytes | None] = {
    b"t/a": b"\1\1a", b"t/b": None, b"t/c": b"\1\1c", keys.manifest_key(3): b"\1\4m",
}  # fmt: skip


def lying(signed: Signed) -> list[tuple[bytes, bytes | None, bytes | None]]:
    """Records (key, value, proof of a tombstone) in the order in which they are sent."""
    return [
        *((row["key"], row["value"], None) for row in signed.rows),
        *((key, None, dict(headers)[SIGNATURE]) for key, headers in signed.tombstones),
        (signed.manifest["key"], signed.manifest["value"], None),
    ]


def _given(proof: bytes | None) -> bytes | None:
    return proof


def counted(signed: Signed, start: int) -> dict[bytes, bytes | None]:
    """What a replay makes of them where they lie from an offset on."""
    judge = Judge([BY], required=True)
    found: dict[bytes, bytes | None] = {}
    for offset, (key, value, proof) in enumerate(lying(signed), start):
        known, row = judge.row(offset, key, value, partial(_given, proof))
        if known:
            found[key] = row
    return found


def test_the_first_of_an_owner_counts_wherever_it_comes_to_lie() -> None:
    signer = RowSigner(BY, 10)
    signed = signer.sign(ROWS)
    assert not signer.by_place
    for start in (10, 11, 500):
        assert counted(signed, start) == ROWS
    assert counted(signed, 9) != ROWS, "nothing of this owner can lie there"


def test_what_follows_is_signed_by_place() -> None:
    signer = RowSigner(BY, 10)
    signer.sign(ROWS)
    assert signer.lies_as_signed(None)
    signer.committed(13)
    signed = signer.sign(ROWS)
    assert signer.by_place
    assert all(row["value"].startswith(PLACE) for row in signed.rows)
    assert counted(signed, 15) == ROWS, "behind the marker of the last transaction"
    assert counted(signed, 16) == {}
    assert signer.lies_as_signed(18)


def test_after_a_strangers_record_content_is_signed_for_a_while() -> None:
    signer = RowSigner(BY, 0)
    signer.sign(ROWS)
    signer.committed(3)
    signer.sign(ROWS)
    assert not signer.lies_as_signed(9)
    signer.aborted()
    for turn in range(CAREFUL):
        signed = signer.sign(ROWS)
        assert not signer.by_place
        assert counted(signed, 10 + 20 * turn) == ROWS
        signer.committed(13 + 20 * turn)
    signer.sign(ROWS)
    assert signer.by_place


def test_a_manifest_that_was_not_told_of_lies_nowhere() -> None:
    signer = RowSigner(BY, 0)
    signer.sign(ROWS)
    signer.committed(3)
    signer.sign(ROWS)
    assert not signer.lies_as_signed(None)


def test_after_a_rollback_nobody_knows_the_place_of_the_next() -> None:
    signer = RowSigner(BY, 0)
    signer.sign(ROWS)
    signer.committed(3)
    signer.sign(ROWS)
    signer.aborted()
    signed = signer.sign(ROWS)
    assert not signer.by_place
    assert counted(signed, 12) == ROWS
