"""Signed rows as a step's batches hold them: tombstones by their keys, and room for the fillers."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from belfry.kafka.row_signing import RowSigner
from belfry.store.signatures import FILLER, SIGNATURE, RowKeys
from belfry.transactions.batches import ProducedBatch, StepBatches, Writer
from belfry.transactions.placing import PlacedRecords

WHERE = ("changelog", 1)


def signer() -> RowSigner:
    """Signs rows that are expected from offset 100 on."""
    return RowSigner(RowKeys(bytes(32), "topic", 1), 100, lambda: 100)


def placed(
    rows: dict[bytes, bytes | None], signs: RowSigner, most: int = 1_000_000
) -> list[ProducedBatch]:
    """The batches of these rows, where a batch of the changelog holds so many bytes."""
    step = StepBatches(0, {"changelog": most}, 0)
    nobody: Any = None
    PlacedRecords(step, nobody, nobody, 1, set).add_rows(WHERE, rows, signs)
    return step.finish(Writer(7, 0), {})


def records(batches: list[ProducedBatch]) -> list[Any]:
    return [each for batch in batches for each in DefaultRecordBatch(batch.data)]


def test_a_signed_tombstone_ends_the_row_of_its_key() -> None:
    found = records(placed({b"a": b"1", b"gone": None, b"\0m": b"manifest"}, signer()))
    assert [each.key for each in found] == [b"a", b"gone", b"\0m"], "the manifest is the last"
    (ended,) = (each for each in found if each.value is None)
    assert [name for name, _ in ended.headers] == [SIGNATURE]


@pytest.mark.parametrize("most", [1_000_000, 100_000])
def test_each_part_of_rows_that_are_signed_by_content_has_room_for_its_fillers(most: int) -> None:
    """However small the batches are that the changelog takes."""
    careful = signer()
    careful.aborted()
    rows: dict[bytes, bytes | None] = {b"%03d" % n: b"v" * 500 for n in range(250)}
    rows[b"gone"] = None
    batches = placed(rows | {b"\0m": b"manifest"}, careful, most)
    assert all(len(each.data) <= most for each in batches)
    for each in batches:
        keys = [record.key for record in records([each])]
        assert keys[-careful.fillers :] == [FILLER] * careful.fillers
    told = [record.key for record in records(batches) if record.key != FILLER]
    assert told == [*rows, b"\0m"]
