"""A changelog, cut into the steps that wrote it, and what of it cannot be played."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.playback.logged import LoggedRow, LoggedStep, StepCutter, Unplayable
from belfry.schedules.triggers import zones
from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.records import encode_text

A, B = b"shop/a", b"shop/b"
AT: Final = 5_000


def row(offset: int, key: bytes, value: bytes | None = b"\1\1row") -> LoggedRow:
    return LoggedRow(offset, AT + offset, key, value)


def manifest(number: int) -> Manifest:
    return Manifest(number, 3, 90, 1_000, 2, 1, bytes(16))


def end(offset: int, number: int) -> LoggedRow:
    return row(offset, keys.manifest_key(number), encode_manifest(manifest(number)))


def cut(*rows: LoggedRow, cutter: StepCutter | None = None) -> list[LoggedStep]:
    cutter = cutter or StepCutter()
    return [step for each in rows if (step := cutter.feed(each)) is not None]


def test_the_example_of_the_page() -> None:
    rows = (row(10, A), row(11, B, None), end(12, 7), row(14, A), end(15, 8))
    first, second = cut(*rows, cutter=StepCutter(6, 8))
    assert first == LoggedStep(
        10, 12, AT + 12, {A: b"\1\1row", B: None}, {A: 10, B: 11}, manifest(7), True
    )
    assert second == LoggedStep(14, 15, AT + 15, {A: b"\1\1row"}, {A: 14}, manifest(8), True)


def test_a_step_without_rows_begins_with_its_manifest() -> None:
    (only,) = cut(end(0, 1))
    assert (only.first, only.last, only.rows, only.whole) == (0, 0, {}, True)


@pytest.mark.parametrize(
    ("rows", "whole"),
    [
        ((row(0, A), end(1, 1)), True),
        # Gone: the first row of the birth, one amid the step, the row before its manifest.
        ((row(1, A), end(2, 1)), False),
        ((row(0, A), row(2, B), end(3, 1)), False),
        ((row(0, A), end(2, 1)), False),
    ],
)
def test_a_step_is_whole_where_no_offset_is_missing(
    rows: tuple[LoggedRow, ...], whole: bool
) -> None:
    (found,) = cut(*rows)
    assert found.whole is whole


def test_the_end_of_a_transaction_takes_one_offset_and_no_more() -> None:
    born = (row(0, A), end(1, 1))
    assert [each.whole for each in cut(*born, row(3, A), end(4, 2))] == [True, True]
    assert [each.whole for each in cut(*born, row(4, A), end(5, 2))] == [True, False]
    # A step that is not whole says nothing of the next one.
    later = (row(4, A), end(5, 2), row(7, A), end(8, 3))
    assert [each.whole for each in cut(*born, *later)] == [True, False, True]


def test_a_key_with_two_rows_in_a_step_is_told_and_forgotten_with_it() -> None:
    found = cut(row(0, A), row(1, A, b"2"), row(2, B), end(3, 1), row(5, A), end(6, 2))
    assert [each.twice for each in found] == [A, None]
    assert found[0].rows[A] == b"2"


def test_a_tombstone_of_a_manifest_ends_nothing() -> None:
    found = cut(row(0, keys.manifest_key(1), None), row(1, A), end(2, 1))
    assert len(found) == 1
    assert list(found[0].rows) == [keys.manifest_key(1), A]


@pytest.mark.parametrize(
    ("number", "gone"),
    [(4, "transaction 3"), (5, "transactions 3 to 4"), (9, "transactions 3 to 8"),
     (2, "transaction 3"), (1, "transaction 3")],
)  # fmt: skip
def test_manifests_have_no_gap_and_do_not_go_back(number: int, gone: str) -> None:
    with pytest.raises(Unplayable) as caught:
        cut(end(20, number), cutter=StepCutter(2, 18))
    assert str(caught.value) == (
        f"The changelog holds transaction {number}, and not {gone} before it: compaction has"
        " removed them, or the partition was recovered. What an engine keeps in memory follows from"
        " all steps since a take-over, so none may be missing: --from a later instant begins with"
        " the first take-over from there on."
    )


def test_a_birth_has_the_number_one() -> None:
    assert [each.manifest.txn_seq for each in cut(end(0, 1), end(2, 2))] == [1, 2]
    with pytest.raises(Unplayable, match="holds transaction 2, and not transaction 1 before it"):
        cut(end(0, 2))


def test_a_recovery_cannot_be_played_and_the_identity_of_a_birth_can() -> None:
    born = row(0, keys.IDENTITY_KEY, encode_identity(Identity("c", "l", "s")))
    assert len(cut(born, end(1, 1))) == 1
    recovered = row(0, keys.IDENTITY_KEY, encode_identity(Identity("c", "l", "s", 1)))
    with pytest.raises(Unplayable, match=r"^Transaction 1 is a recovery \(belfry recover\): "):
        cut(recovered, end(1, 1))


def test_other_time_zone_data_is_named() -> None:
    assert len(cut(row(0, keys.ZONES_KEY, encode_text(zones.VERSION)), end(1, 1))) == 1
    with pytest.raises(Unplayable) as caught:
        cut(row(0, keys.ZONES_KEY, encode_text("1999a")), end(1, 1))
    assert str(caught.value) == (
        "Transaction 1 found instants by the time zone data 1999a, and this program has"
        f" {zones.VERSION}: run it with tzdata 1999a installed."
    )
