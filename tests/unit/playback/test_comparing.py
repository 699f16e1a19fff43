"""What a playback says of a step that differs: which row, which field, where, and what is owed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from belfry.playback.comparing import (
    OwedRows,
    StepDifference,
    difference_at,
    distance,
    manifests_differ,
    row_in_words,
    rows_differ,
)
from belfry.playback.logged import LoggedStep
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest
from belfry.store.layout.usage import USAGE_PREFIX

MANIFEST: Final = Manifest(7, 3, 90, 1_000, 2, 1, b"\xaa" * 16)
A, B, C = b"shop/a", b"shop/b", b"shop/c"
ONE, OTHER, THIRD = b"\1\1row one", b"\1\1row two", b"\1\2a marker"
Rows = Mapping[bytes, bytes | None]


def logged(rows: Rows, *, whole: bool = True, twice: bytes | None = None) -> LoggedStep:
    """A step whose rows lie at offsets from 20 on, and whose manifest lies at 30."""
    offsets = {key: 20 + at for at, key in enumerate(rows)}
    return LoggedStep(20, 30, 5_000, dict(rows), offsets, MANIFEST, whole, twice)


def differs(
    rows: Rows, played: Rows, standing: Rows | None = None, *, whole: bool = True
) -> StepDifference | None:
    return rows_differ(logged(rows, whole=whole), played, (standing or {}).get)


def test_the_first_row_that_is_another_one_is_told_with_its_place() -> None:
    found = differs({A: ONE, B: OTHER}, {A: ONE, B: THIRD})
    assert found == StepDifference(
        "row",
        7,
        21,
        "shop/b",
        f"a pending schedule of 9 bytes, at byte 1 …{OTHER.hex()}…",
        f"the marker of a schedule that is over of 10 bytes, at byte 1 …{THIRD.hex()}…",
    )


def test_rows_that_are_alike_do_not_differ() -> None:
    assert differs({A: ONE, B: None}, {A: ONE, B: None}) is None
    assert differs({}, {}) is None


def test_a_row_that_stands_there_already_may_be_written_once_more() -> None:
    assert differs({A: ONE}, {}, {A: ONE}) is None
    found = differs({A: ONE}, {}, {A: OTHER})
    assert found is not None
    assert found.played == "no row: no request asks for it"
    # What is played counts, whatever stands there.
    assert differs({A: ONE}, {A: OTHER}, {A: ONE}) is not None


def test_a_tombstone_is_no_row_that_was_never_there() -> None:
    assert differs({A: None}, {}) is None
    found = differs({A: None}, {A: ONE})
    assert found is not None
    assert (found.logged, found.offset) == ("a tombstone", 20)


def test_a_played_row_that_the_log_lacks_is_told_where_nothing_is_missing_of_the_step() -> None:
    played = {keys.manifest_key(7): b"m", A: ONE, B: OTHER}
    found = differs({A: ONE}, played)
    assert found == StepDifference("row", 7, 30, "shop/b", "no row", row_in_words(OTHER, b""))
    assert differs({A: ONE}, played, whole=False) is None


def test_usage_is_not_compared() -> None:
    assert differs({USAGE_PREFIX + b"shop": ONE}, {USAGE_PREFIX + b"shop": OTHER}) is None


def test_a_row_that_is_there_twice_is_told_first() -> None:
    found = rows_differ(logged({A: ONE}, twice=A), {A: OTHER}, lambda _: None)
    assert found == StepDifference("row", 7, 20, "shop/a", "more than one row", "one row at most")


def test_a_difference_that_is_known_is_told_alike() -> None:
    step = logged({A: ONE})
    assert difference_at(step, A, OTHER) == StepDifference(
        "row", 7, 20, "shop/a", row_in_words(ONE, OTHER), row_in_words(OTHER, ONE)
    )
    assert difference_at(step, B, OTHER) == StepDifference(
        "row", 7, 30, "shop/b", "no row", row_in_words(OTHER, b"")
    )


def test_a_key_that_is_no_text_is_told_by_its_bytes() -> None:
    key = b"shop/\xff"
    assert difference_at(logged({key: ONE}), key, OTHER).name == "shop/\\xff"
    owed = OwedRows()
    owed.note(logged({}, whole=False), {key: ONE})
    assert first_of(owed) == "shop/\\xff"


@pytest.mark.parametrize(
    ("row", "other", "said"),
    [
        (None, ONE, "a tombstone"),
        (b"\1\1abc", b"\1\1abd", "a pending schedule of 5 bytes, at byte 4 …616263…"),
        (b"\1\x0etext", None, "a bulk job of 6 bytes, at byte 0 …010e74657874…"),
        (b"\1\x0etext", b"\1\x0etext", "a bulk job of 6 bytes, at byte 6 …7874…"),
        (b"\1\x63", b"", "a row of 2 bytes, at byte 0 …0163…"),
        (b"\1", b"", "a row of 1 bytes, at byte 0 …01…"),
        (b"\1\1" + bytes(range(40)), b"\1\1" + bytes(range(20)),
         "a pending schedule of 42 bytes, at byte 22 …" + bytes(range(18, 32)).hex() + "…"),
    ],
)  # fmt: skip
def test_a_row_in_words(row: bytes | None, other: bytes | None, said: str) -> None:
    assert row_in_words(row, other) == said


def test_how_near_an_attempt_came_is_how_many_rows_are_otherwise() -> None:
    step = logged({A: ONE, B: OTHER, USAGE_PREFIX + b"shop": ONE})
    assert distance(step, {A: ONE, B: OTHER, keys.manifest_key(7): b"m"}) == 0
    assert distance(step, {A: ONE}) == 1
    assert distance(step, {A: OTHER, C: None}) == 3


def test_fields_of_a_manifest_are_told_by_name() -> None:
    step = logged({})
    assert manifests_differ(step, MANIFEST) is None
    # An older release did not say whether it sent something on.
    assert manifests_differ(step, MANIFEST._replace(sent_on=True)) is None
    sent = step._replace(manifest=MANIFEST._replace(sent_on=True))
    assert manifests_differ(sent, MANIFEST) == StepDifference(
        "manifest", 7, 30, "sent_on", "sent_on True", "sent_on False"
    )
    other = MANIFEST._replace(position=91, digest=b"\xbb" * 16)
    assert manifests_differ(step, other) == StepDifference(
        "manifest", 7, 30, "position, digest",
        "position 90, digest " + "aa" * 16, "position 91, digest " + "bb" * 16,
    )  # fmt: skip


def first_of(owed: OwedRows) -> str:
    """The name of a row that is missing; empty for none."""
    return owed.first.name if owed.first else ""


def test_rows_that_compaction_has_removed_are_owed_until_a_later_one_comes() -> None:
    owed = OwedRows()
    part = logged({A: ONE}, whole=False)
    played: dict[bytes, bytes | None] = {
        keys.manifest_key(7): b"m", A: ONE, B: OTHER, C: None, b"shop/d": ONE,
    }  # fmt: skip
    assert owed.note(part, played) == 3
    assert owed.first == StepDifference(
        "row", 7, 30, "shop/b", "no row, here or later", row_in_words(OTHER, b"")
    )
    before = owed.copy()
    assert owed.note(logged({B: THIRD}), {B: THIRD}) == 0
    assert first_of(owed) == "shop/d"
    owed.note(logged({b"shop/d": None}), {})
    assert first_of(owed) == ""
    assert first_of(before) == "shop/b"


def test_of_a_step_of_which_nothing_is_missing_nothing_is_owed() -> None:
    owed = OwedRows()
    assert owed.note(logged({A: ONE}), {A: ONE, B: OTHER}) == 0
    assert owed.first is None
