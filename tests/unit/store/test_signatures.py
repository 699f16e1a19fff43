"""Which records of a changelog a worker wrote, and which only look so."""

from __future__ import annotations

from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.store.layout import keys
from belfry.store.layout.records import FORMAT, UnknownFormat
from belfry.store.row_judge import FAR, Judge, Verifier, may_be_a_row
from belfry.store.signatures import (
    FILLER,
    NEAR,
    NOWHERE,
    PLACE,
    SIGNATURE,
    RowKeys,
    bound,
    fingerprint,
    is_signed,
    row_of,
)

KEY, OTHER = b"k" * 32, b"o" * 32
NAME, ROW = b"demo/a", bytes((FORMAT, 2)) + b"row"
MANIFEST = keys.manifest_key(7)
BY = RowKeys(KEY, "log-1", 3)


def placed(offset: int, by: RowKeys = BY) -> bytes:
    return PLACE + by.token(offset)


def judged(
    offset: int, key: bytes, value: bytes | None, judge: Judge, proof: bytes | None = None
) -> bytes | str | None:
    """The row that a judge makes of a record; a word where it is a stranger's."""
    known, row = judge.row(offset, key, value, lambda: proof)
    return row if known else "a stranger's"


def test_tokens_of_many_are_those_of_each() -> None:
    for start, count in ((0, 1), (63, 2), (100, 300), (64, 64), (5, 0)):
        each = b"".join(RowKeys(KEY, "log-1", 3).token(start + at) for at in range(count))
        assert BY.tokens(start, count) == each


def test_a_token_belongs_to_one_offset_of_one_partition_of_one_topic_of_one_secret() -> None:
    others = RowKeys(OTHER, "log-1", 3), RowKeys(KEY, "log-2", 3), RowKeys(KEY, "log-1", 4)
    tokens = {BY.token(at) for at in range(1_000)} | {each.token(9) for each in others}
    assert len(tokens) == 1_000 + len(others)


def test_a_row_counts_where_its_token_belongs_and_nowhere_else() -> None:
    judge = Judge([BY])
    assert judged(9, NAME, placed(9) + ROW, judge) == ROW
    assert judged(10, NAME, placed(9) + ROW, judge) == "a stranger's"
    assert judged(9, NAME, placed(9, RowKeys(OTHER, "log-1", 3)) + ROW, judge) == "a stranger's"


def test_what_proves_a_row_has_frozen_bytes() -> None:
    """Rows of all releases are judged by the same keys."""
    row, gone = "6c04288593e19add", "21270a3200a2e8ee"  # pragma: allowlist secret
    assert BY.token(9).hex() == "fdf8e7f5a30aee5b"  # pragma: allowlist secret
    assert bound(BY, 9, NAME, ROW).hex() == "03" + f"{9:016x}" + row
    assert bound(BY, 9, NAME, None).hex() == "03" + f"{9:016x}" + gone
    assert fingerprint(KEY) == "2e34b16e395d1206"  # pragma: allowlist secret


def test_two_secrets_are_believed_at_once() -> None:
    judge = Judge([RowKeys(OTHER, "log-1", 3), BY])
    assert judged(9, NAME, placed(9) + ROW, judge) == ROW
    assert judged(4, NAME, bound(BY, 4, NAME, ROW) + ROW, judge) == ROW


@pytest.mark.parametrize(
    ("offset", "key", "row"),
    [(9, b"demo/b", ROW), (9, NAME, ROW + b"!"), (9, NAME + ROW[:1], ROW[1:]), (8, NAME, ROW)],
    ids=["another name", "another row", "another boundary", "too early"],
)
def test_a_row_bound_by_content_is_what_was_signed(offset: int, key: bytes, row: bytes) -> None:
    proof = bound(BY, 9, NAME, ROW)
    assert Verifier([BY]).holds(9, NAME, proof, ROW)
    assert not Verifier([BY]).holds(offset, key, proof, row)


def test_a_row_bound_by_content_counts_near_its_base_alone() -> None:
    judge, value = Judge([BY]), bound(BY, 9, NAME, ROW) + ROW
    assert judged(8, NAME, value, judge) == "a stranger's"
    assert judged(9, NAME, value, judge) == ROW
    assert judged(9 + NEAR, NAME, value, judge) == ROW
    assert judged(10 + NEAR, NAME, value, judge) == "a stranger's"


def test_it_counts_further_away_where_a_release_before_may_have_written_it() -> None:
    """That wrote no fillers.  From a certain offset on nobody does without."""
    value, from_ = bound(BY, 9, NAME, ROW) + ROW, 20 + NEAR
    judge = Judge([BY], near_from=from_)
    assert judged(from_ - 1, NAME, value, judge) == ROW
    assert judged(from_, NAME, value, judge) == "a stranger's"
    old = Judge([BY], near_from=NOWHERE)
    assert judged(9 + FAR, NAME, value, old) == ROW
    assert judged(10 + FAR, NAME, value, old) == "a stranger's"


def test_a_copy_of_a_bound_row_does_not_count_behind_a_manifest() -> None:
    judge = Judge([BY])
    value = bound(BY, 9, NAME, ROW) + ROW
    assert judged(10, NAME, value, judge) == ROW
    assert judged(11, MANIFEST, placed(11) + ROW, judge) == ROW
    assert judged(12, NAME, value, judge) == "a stranger's"
    judge.restart(-1)
    assert judged(10, NAME, value, judge) == ROW


def test_a_copy_does_not_count_where_reading_goes_on_behind_a_manifest() -> None:
    """A reader that begins anew has met none; what it read before tells where the last one is."""
    judge = Judge([BY])
    judge.restart(11)
    assert judge.manifest_at == 11
    assert judged(12, NAME, bound(BY, 9, NAME, ROW) + ROW, judge) == "a stranger's"
    assert judged(13, NAME, bound(BY, 12, NAME, ROW) + ROW, judge) == ROW


def test_rows_behind_the_last_manifest_may_be_copies_where_all_are_signed_by_content() -> None:
    judge = Judge([BY])
    copied = bound(BY, 12, NAME, ROW) + ROW
    judged(11, MANIFEST, placed(11) + ROW, judge)
    judged(13, NAME, copied, judge)
    judged(14, NAME, copied, judge)
    judged(15, NAME, placed(15) + ROW, judge)
    assert judge.may_be_copies([13, 14])
    assert not judge.may_be_copies([13, 14, 15]), "a row that lies in its place is no copy"
    judged(16, MANIFEST, placed(16) + ROW, judge)
    assert not judge.may_be_copies([13])
    assert not Judge().may_be_copies([13]), "nothing is signed here"


def test_a_judge_goes_on_from_where_another_one_has_got_to() -> None:
    first, second = Judge([BY]), Judge([BY])
    assert first.manifest_at == -1
    judged(11, MANIFEST, placed(11) + ROW, first)
    judged(13, NAME, bound(BY, 12, NAME, ROW) + ROW, first)
    second.go_on_from(first)
    assert second.manifest_at == 11
    assert second.may_be_copies([13])
    assert judged(14, NAME, bound(BY, 9, NAME, ROW) + ROW, second) == "a stranger's"
    # From there on each of them goes its own way.
    judged(15, NAME, bound(BY, 12, NAME, ROW) + ROW, second)
    assert not first.may_be_copies([15])
    without = Judge()
    without.go_on_from(first)
    second.go_on_from(without)
    assert (without.manifest_at, second.manifest_at) == (-1, 11)


def test_from_where_on_fillers_are_written_may_be_told_later() -> None:
    assert (Verifier([BY]).near_from, Judge([BY]).near_from) == (0, 0)
    judge, without = Judge([BY], near_from=7), Judge()
    assert (judge.near_from, without.near_from) == (7, 0)
    for each in (judge, without):
        each.believe_near(9)
    assert (judge.near_from, without.near_from) == (9, 0)


def test_a_proof_that_was_cut_short_is_a_strangers() -> None:
    proof = bound(BY, 9, NAME, ROW)
    for end in range(1, len(proof)):
        assert not Verifier([BY]).holds(9, NAME, proof[:end], ROW)
        assert judged(9, NAME, proof[:end], Judge([BY])) == "a stranger's"
    assert not Verifier([BY]).holds(9, NAME, b"\4" + proof[1:], ROW)
    assert not Verifier([BY]).holds(9, NAME, b"", ROW)


def test_fillers_are_left_out_and_what_only_looks_like_one_is_not() -> None:
    def at(offset: int, key: bytes | None, value: bytes | None, *headers: Any) -> Any:
        return SimpleNamespace(offset=offset, key=key, value=value, headers=headers or None)

    records = [at(1, FILLER, None), at(2, FILLER, b"x"), at(3, None, None), at(4, NAME, ROW),
               at(5, NAME, None, ("other", b"1"), (SIGNATURE, placed(5))),
               at(6, NAME, None, (SIGNATURE, None)), at(7, NAME, None)]  # fmt: skip
    changes, offsets, strangers = Judge([BY]).rows(records)
    assert (changes, offsets) == ([(NAME, ROW), (NAME, None), (NAME, None)], [4, 5, 7])
    assert [each.offset for each in strangers] == [2, 3, 6]


def test_a_strangers_manifest_bars_nothing() -> None:
    judge = Judge([BY])
    assert judged(11, MANIFEST, placed(99) + ROW, judge) == "a stranger's"
    assert judged(12, NAME, bound(BY, 9, NAME, ROW) + ROW, judge) == ROW


def test_a_tombstone_is_proven_by_its_header() -> None:
    for judge in (Judge([BY]), Judge([BY], required=True)):
        assert judged(9, NAME, None, judge, placed(9)) is None
        assert judged(9, NAME, None, judge, bound(BY, 9, NAME, None)) is None
        assert judged(10, NAME, None, judge, placed(9)) == "a stranger's"
        assert judged(9, NAME, None, judge, bound(BY, 9, NAME, b"")) == "a stranger's"
        assert judged(9, NAME, None, judge, b"") == "a stranger's"


def test_what_is_not_signed_counts_until_signatures_are_required() -> None:
    assert judged(9, NAME, ROW, Judge([BY])) == ROW
    assert judged(9, NAME, None, Judge([BY])) is None
    strict = Judge([BY], required=True)
    assert judged(9, NAME, ROW, strict) == "a stranger's"
    assert judged(9, NAME, None, strict) == "a stranger's"


def test_without_a_secret_a_signed_row_is_neither_believed_nor_skipped() -> None:
    with pytest.raises(UnknownFormat) as told:
        judged(9, NAME, placed(9) + ROW, Judge())
    assert str(told.value) == (
        "The record at offset 9 of the changelog is signed, and there is no secret to judge it by:"
        " give the BELFRY_HTTP_WORKER_SECRET of the workers."
    )
    assert judged(9, NAME, ROW, Judge()) == ROW
    assert judged(9, NAME, None, Judge(), placed(9)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", b"\1\1x"), (b"order-1", b"\1\1x"), (b"order-1", None), (b"order/1", b"\0\0\0\0\7x"),
        (b"order/1", b'{"paid":true}'), (b"order/1", b""), (b"order/1", b"\1"), (b"a/b", b"hello"),
        (FILLER, None),
    ],
)  # fmt: skip
def test_what_no_release_writes_is_a_strangers(key: bytes, value: bytes | None) -> None:
    assert not may_be_a_row(key, value)
    assert judged(9, key, value, Judge()) == "a stranger's"


@pytest.mark.parametrize(
    ("key", "value"),
    [(NAME, b"\4\1x"), (NAME, b"\1\x63x"), (b"\0x", b"\1\1"), (b"\0m\0\0", b"\5\4"),
     (keys.SETTINGS_KEY, b"{}"), (NAME, None)],
)  # fmt: skip
def test_what_a_later_release_may_have_written_is_never_skipped(
    key: bytes, value: bytes | None
) -> None:
    assert judged(9, key, value, Judge()) == value


def test_a_later_releases_row_that_is_signed_is_passed_on_to_whoever_stops_for_it() -> None:
    later = b"\x09\x63row"
    assert judged(9, NAME, placed(9) + later, Judge([BY], required=True)) == later


def test_a_fingerprint_tells_keys_apart_and_not_what_they_are() -> None:
    assert fingerprint(KEY) != fingerprint(OTHER)
    assert KEY.hex() not in fingerprint(KEY)


def test_the_proof_is_taken_off_a_row() -> None:
    for value in (placed(9) + ROW, bound(BY, 9, NAME, ROW) + ROW):
        assert is_signed(value)
        assert row_of(value) == ROW
    assert not is_signed(ROW)


@pytest.mark.parametrize("required", [False, True], ids=["trusted", "required"])
@pytest.mark.parametrize("keys_", [(), (BY,)], ids=["no secret", "a secret"])
def test_many_records_are_judged_as_each_of_them_is(
    keys_: tuple[RowKeys, ...], required: bool
) -> None:
    """What is told by its first bytes is told as it would be by a closer look."""
    random = Random(5)
    names = [b"demo/a", b"demo/b", b"a/", b"no slash", b"", b"\0a/b", b"\0r" + b"demo/1", MANIFEST]
    heads = [b"\1\1", b"\1\2", b"\1\3", b"\1\4", b"\1", b"", b"{", b"\x1f\1", b"\x20\1", b"\0\1"]
    records: list[Any] = []
    for offset in range(2_000):
        value = random.choice([None, *[each + b"more" for each in heads], *heads])
        if keys_ and random.random() < 0.3:
            value = placed(offset) + (value or b"")
        proof = [(SIGNATURE, placed(offset))] if random.random() < 0.3 else None
        key = random.choice(names)
        records.append(SimpleNamespace(offset=offset, key=key, value=value, headers=proof))
    one, many = (Judge(keys_, required=required) for _ in range(2))
    changes, offsets, strangers = many.rows(records)
    for each in records:
        proof = (each.headers or [(None, None)])[0][1]
        known, row = one.row(each.offset, each.key, each.value, partial(next, iter([proof])))
        if known:
            assert (changes.pop(0), offsets.pop(0)) == ((each.key, row), each.offset)
        else:
            assert strangers.pop(0) is each
    assert many.manifest_at == one.manifest_at
    assert (changes, offsets, strangers) == ([], [], [])
    assert one.manifest_at == many.manifest_at
