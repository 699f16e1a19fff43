"""A mark is read as it was written; what is none is told, and nobody goes on from it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from belfry.mirror.beginnings import CannotMirror, mark_in
from belfry.mirror.marks import Activated, MirrorMark, UnknownMark, decode_mark, encode_mark

MARK = MirrorMark("one", "log", "mine", 2, {"changelog": 120}, carried=((5, 1 << 62),))


@pytest.mark.parametrize("mark", [MARK, MARK._replace(activated=Activated(7, True, {"log": 3}))])
def test_what_is_written_is_read(mark: MirrorMark) -> None:
    assert decode_mark(encode_mark(mark)) == mark
    later = orjson.dumps({**orjson.loads(encode_mark(mark)), "of a later release": 1})
    assert decode_mark(later) == mark


@pytest.mark.parametrize(
    "said",
    [
        {"epoch": "2"},
        {"epoch": True},
        {"source": 7},
        {"whole": 1},
        {"positions": None},
        {"positions": {"changelog": "120"}},
        {"carried": [[1]]},
        {"carried": [["a", "b"]]},
        {"carried": 7},
        {"activated": {"at_ms": 7}},
        {"activated": [1, 2, 3]},
        {"activated": {"at_ms": 7.5, "planned": True, "begins": {}}},
        {"activated": {"at_ms": 7, "planned": True, "begins": {"log": None}}},
    ],
)
def test_a_field_of_another_type_is_told(said: dict[str, Any]) -> None:
    with pytest.raises(UnknownMark, match="none of a mirror"):
        decode_mark(orjson.dumps({**orjson.loads(encode_mark(MARK)), **said}))


@pytest.mark.parametrize("value", [b"", b"x", b"[]", b"7", b"{}", b'"mark"', b"\xff"])
def test_what_is_no_mark_stops_the_mirror_with_the_reason(value: bytes) -> None:
    with pytest.raises(CannotMirror, match="side one, partition 3: the last mark in the topic"):
        mark_in(value, "side one, partition 3")


def test_where_there_is_no_record_there_is_no_mark() -> None:
    assert mark_in(None, "side one") is None
    assert mark_in(encode_mark(MARK), "side one") == MARK
