"""A judge believes at once what it would believe after a closer look."""

from __future__ import annotations

import pytest

from belfry.store.layout.pending_bytes import HEAD_OF_PENDING
from belfry.store.layout.records import HEAD_OF_MARKER
from belfry.store.row_judge import Judge
from belfry.store.signatures import PLACE, RowKeys

BY = RowKeys(b"k" * 32, "topic", 0)
ROWS = [
    (b"t/a", HEAD_OF_PENDING + b"row", True),
    (b"t/a", HEAD_OF_MARKER + b"row", True),
    (b"t/a", None, False),
    (b"t/a", b"", False),
    (b"no slash", HEAD_OF_PENDING + b"row", False),
    (b"\0/own", HEAD_OF_PENDING + b"row", False),
    (b"t/a", PLACE + BY.token(0) + HEAD_OF_PENDING, False),
]


@pytest.mark.parametrize(("key", "value", "known"), ROWS)
def test_only_plain_rows_of_schedules_need_no_closer_look(
    key: bytes, value: bytes | None, *, known: bool
) -> None:
    for judge in (Judge(), Judge([BY])):
        assert judge.believes(key, value) == known
        if known:
            assert judge.row(0, key, value, lambda: None) == (True, value)


@pytest.mark.parametrize(("key", "value", "known"), ROWS)
def test_where_signatures_are_required_each_row_is_looked_at(
    key: bytes, value: bytes | None, *, known: bool
) -> None:
    assert not Judge([BY], required=True).believes(key, value)
