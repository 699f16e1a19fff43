"""Rows are signed for the offsets at which they will lie; where nobody knows, fillers follow them.

No copy of a row counts, wherever the transaction came to lie, and whatever became of it.
"""

from __future__ import annotations

from functools import partial

import pytest

from belfry.kafka.row_signing import BATCH_BYTES, BATCH_RECORDS, CAREFUL, Record, RowSigner, Signed
from belfry.store.layout import keys
from belfry.store.row_judge import Judge
from belfry.store.signatures import FILLER, NEAR, NOWHERE, PLACE, SIGNATURE, RowKeys

BY = RowKeys(b"k" * 32, "log", 0)
ROWS: dict[bytes, bytes | None] = {
    b"t/a": b"\1\1a", b"t/b": None, b"t/c": b"\1\1c", keys.manifest_key(3): b"\1\4m",
}  # fmt: skip


class Log:
    """Where a changelog ends; None: nobody tells."""

    def __init__(self, end: int | None = 0) -> None:
        self.end = end

    def __call__(self) -> int:
        if self.end is None:
            raise ConnectionError("away")
        return self.end


def lying(signed: Signed) -> list[Record]:
    """Records in the order in which they are sent."""
    if signed.parts:
        return [record for part in signed.parts for record in part]
    return [
        *((*row, []) for row in signed.rows),
        *((key, None, headers) for key, headers in signed.tombstones),
        (*signed.manifest, []),
    ]


def believed(
    records: list[Record], start: int, near_from: int = 0, manifest_at: int = -1
) -> dict[bytes, bytes | None]:
    """What a replay makes of them where they lie from an offset on."""
    judge = Judge([BY], required=True, near_from=near_from)
    judge.restart(manifest_at)
    found: dict[bytes, bytes | None] = {}
    for offset, (key, value, headers) in enumerate(records, start):
        known, row = judge.row(offset, key, value, partial(dict(headers).get, SIGNATURE))
        if known:
            found[key] = row
    return found


def careful(end: int = 0) -> RowSigner:
    """A signer whose last transaction was rolled back."""
    signer = RowSigner(BY, 0, Log(end))
    signer.sign(ROWS)
    signer.aborted()
    return signer


def test_the_first_of_an_owner_lies_where_the_log_ended_after_its_fence() -> None:
    signer = RowSigner(BY, 10, Log())
    signed = signer.sign(ROWS)
    assert all(value is not None and value.startswith(PLACE) for _, value in signed.rows)
    assert believed(lying(signed), 10) == ROWS
    assert believed(lying(signed), 11) == {}
    assert signer.lies_as_signed(13)
    assert not signer.lies_as_signed(14)


def test_what_follows_lies_behind_the_marker_of_the_last_transaction() -> None:
    signer = RowSigner(BY, 10, Log())
    signer.sign(ROWS)
    signer.committed(13)
    assert believed(lying(signer.sign(ROWS)), 15) == ROWS
    assert signer.lies_as_signed(18)


def test_after_a_rollback_rows_count_near_the_end_of_the_log() -> None:
    signer = careful(40)
    records = lying(signer.sign(ROWS))
    assert [key for key, _, _ in records].count(FILLER) == signer.fillers == NEAR
    for start in (40, 41, 40 + NEAR):
        assert believed(records, start) == ROWS
        assert signer.lies_as_signed(start + len(ROWS) - 1)
    assert believed(records, 39) != ROWS
    assert believed(records, 41 + NEAR) != ROWS
    assert not signer.lies_as_signed(41 + NEAR + len(ROWS) - 1)


def test_a_release_before_believes_it_too() -> None:
    """It knows no fillers, and lets nothing count whose base does not lie behind a manifest."""
    signer = RowSigner(BY, 0, Log())
    signer.sign(ROWS)
    signer.committed(38)
    signer.aborted()
    for start in (40, 40 + NEAR):
        assert believed(lying(signer.sign(ROWS)), start, NOWHERE, 38) == ROWS


@pytest.mark.parametrize("start", [40, 41, 45, 40 + NEAR])
@pytest.mark.parametrize("rows", [1, 2, 500], ids=["a manifest alone", "two", "many"])
def test_no_copy_of_a_row_counts_wherever_the_transaction_lies(start: int, rows: int) -> None:
    """Behind its batch nothing of it is believed any more, and before that there is no room."""
    signed = careful(40).sign(dict([*((b"t/%d" % n, b"\1\1") for n in range(rows)), *ROWS.items()]))
    behind = start
    for part in signed.parts:
        behind += len(part)
        for record in part:
            assert believed([record], behind) == {}
    assert len(signed.parts) == 1


def test_a_large_step_lies_in_parts_that_are_batches_each() -> None:
    many = {b"t/%d" % n: b"\1\1" + bytes(300) for n in range(9_000)} | ROWS
    signed = careful(40).sign(many)
    assert len(signed.parts) > 1
    assert believed(lying(signed), 40) == many
    behind = 40
    for part in signed.parts:
        assert len(part) <= BATCH_RECORDS
        assert sum(len(key) + len(value or b"") for key, value, _ in part) < BATCH_BYTES
        assert [key for key, _, _ in part[-NEAR:]] == [FILLER] * NEAR
        behind += len(part)
        assert not any(believed([record], behind) for record in part)


def test_a_row_that_leaves_no_room_for_fillers_is_signed_by_place() -> None:
    """Where a try came to lie tells where the next one does: without strangers it comes right."""
    signer, large = careful(40), ROWS | {b"t/a": b"\1\1" + bytes(BATCH_BYTES)}
    large[keys.manifest_key(3)] = large.pop(keys.manifest_key(3))
    assert not signer.sign(large).parts
    assert signer.fillers == 0
    assert not signer.lies_as_signed(44), "the marker of the rollback came in between"
    signer.aborted()
    assert believed(lying(signer.sign(large)), 46) == large
    assert signer.lies_as_signed(49)


def test_batches_that_a_topic_wants_smaller_are_kept_to() -> None:
    many = {b"t/%d" % n: b"\1\1" + bytes(300) for n in range(900)} | ROWS
    assert len(careful().sign(many).parts) == 1
    smaller = careful().sign(many, 200_000)
    assert len(smaller.parts) > 1
    assert not careful().sign(many, 1_000).parts


def test_after_a_strangers_record_there_are_fillers_for_a_while() -> None:
    log = Log(0)
    signer = RowSigner(BY, 0, log)
    signer.sign(ROWS)
    assert not signer.lies_as_signed(9)
    signer.aborted()
    for _ in range(CAREFUL):
        log.end = (log.end or 0) + 20
        signed = signer.sign(ROWS)
        assert believed(lying(signed), log.end) == ROWS
        assert signer.lies_as_signed(log.end + 3)
        log.end += 3 + NEAR
        signer.committed(log.end - NEAR)
    assert not signer.sign(ROWS).parts


def test_what_lies_too_far_away_is_tried_again_from_there() -> None:
    """Also where nobody tells the end of the log."""
    signer = careful(40)
    signer._log_end = Log(None)
    signer.sign(ROWS)
    assert not signer.lies_as_signed(90_000)
    signer.aborted()
    assert believed(lying(signer.sign(ROWS)), 90_000 + NEAR + 2) == ROWS


def test_a_manifest_that_was_not_told_of_lies_nowhere() -> None:
    signer = RowSigner(BY, 0, Log())
    signer.sign(ROWS)
    assert not signer.lies_as_signed(None)
