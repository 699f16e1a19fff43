"""Records of a move, to the byte: workers of two releases speak them to one another."""

from __future__ import annotations

import pytest

from belfry.wire.moves import (
    END,
    FORGET,
    GIVEN,
    MAGIC,
    MOVE,
    ROWS,
    MoveRecord,
    decode_move,
    encode_move,
    is_move,
    move_key,
    move_named,
    pack_rows,
    unpack_rows,
)

WHOLE = MoveRecord(ROWS, 7, 3, 900, 41, b"body")
BYTES = bytes.fromhex("02626d01 05 00000007 00000003 0000000000000384 0000000000000029") + b"body"
PAIRS = [(b"key", b"row 1"), (b"", b""), (b"k2", b"x" * 300)]


def test_a_record_is_these_bytes() -> None:
    assert encode_move(WHOLE) == BYTES
    assert decode_move(BYTES) == WHOLE
    assert encode_move(MoveRecord(END, 1, 2)) == MAGIC + bytes(
        [END, 0, 0, 0, 1, 0, 0, 0, 2]
    ) + bytes(16)


@pytest.mark.parametrize(("kind", "known"), [(0, False), (MOVE, True), (FORGET, True), (9, False)])
def test_a_kind_of_a_later_release_is_none(kind: int, known: bool) -> None:
    found = decode_move(encode_move(MoveRecord(kind, 7, 3)))
    assert (found is not None) == known


def test_a_head_that_was_cut_is_none_and_a_body_of_nothing_is_one() -> None:
    assert decode_move(BYTES[:28]) is None
    assert decode_move(BYTES[:29]) == WHOLE._replace(body=b"")


@pytest.mark.parametrize(
    ("value", "headers", "found"),
    [
        (BYTES, None, True),
        (BYTES, [], True),
        (BYTES, [("belfry-origin-topic", b"t"), ("belfry-origin-signature", b"s")], True),
        (BYTES, [("belfry-origin-topic", b"t"), ("belfry-id", b"a")], False),
        (BYTES, [("__value_schema_id", b"\1")], False),
        (MAGIC, None, True),
        (MAGIC[:3], None, False),
        (b"\x02bm\x02" + BYTES[4:], None, False),
        (None, None, False),
    ],
)
def test_a_record_of_a_move_begins_so_and_has_headers_of_workers_alone(
    value: bytes | None, headers: list[tuple[str, bytes | None]] | None, found: bool
) -> None:
    assert is_move((5, 0, move_key(7), value, headers)) == found


def test_the_key_names_the_group_and_holds_a_blank_which_no_tenant_does() -> None:
    assert move_key(7) == b"key group 7"


def test_rows_come_back_as_they_were_packed() -> None:
    packed = pack_rows(PAIRS)
    assert packed[:16] == b"\0\0\0\3\0\0\0\5keyrow 1"
    assert unpack_rows(packed) == PAIRS
    assert unpack_rows(b"") == []


@pytest.mark.parametrize("gone", [1, 2, 299, 300, 302, 303, 309])
def test_rows_that_were_cut_are_an_error_wherever_they_end(gone: int) -> None:
    with pytest.raises(ValueError, match=r"^the rows end too soon$"):
        unpack_rows(pack_rows(PAIRS)[:-gone])


def test_rows_that_end_between_two_of_them_are_whole() -> None:
    assert unpack_rows(pack_rows(PAIRS)[:-310]) == PAIRS[:2]


@pytest.mark.parametrize(
    ("offset", "last", "named"), [(0, 0, 0), (12, 0, 12), (12, 11, 12), (12, 12, 13), (3, 900, 901)]
)
def test_a_move_is_named_by_its_offset_or_behind_the_last_one(
    offset: int, last: int, named: int
) -> None:
    assert move_named(offset, last) == named


def test_kinds_have_the_numbers_that_other_releases_know() -> None:
    assert (MOVE, ROWS, END, GIVEN, FORGET) == (1, 5, 6, 7, 8)
