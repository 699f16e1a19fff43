"""What lies in changelogs and stores is read, and written, as it always was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from belfry.store.layout import records
from belfry.store.layout.pending_bytes import fires_once, has_rule
from tests.compatibility.rows import FILE, rows, said

GOLDEN: dict[str, dict[str, Any]] = json.loads(FILE.read_bytes())


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_row_says_what_it_always_said(name: str) -> None:
    assert said(bytes.fromhex(GOLDEN[name]["hex"])) == GOLDEN[name]["says"]


def test_the_same_rows_are_written_byte_for_byte() -> None:
    assert {name: row.hex() for name, row in rows().items()} == {
        name: golden["hex"] for name, golden in GOLDEN.items()
    }


def test_every_letter_has_a_golden_row() -> None:
    letters = {bytes.fromhex(golden["hex"])[1] for golden in GOLDEN.values()}
    assert letters == {
        *range(records.PENDING, records.ASIDE + 1),
        records.USAGE,
        records.GROUP,
        records.GROUPED,
    }


def test_each_pending_row_is_known_to_have_a_rule_or_none() -> None:
    """What has none fires and is over; of a later release would be what is neither."""
    rows = {n: bytes.fromhex(g["hex"]) for n, g in GOLDEN.items() if n.startswith("pending")}
    without = [name for name, row in rows.items() if fires_once(row)]
    assert without == ["pending: plain", "pending: one-shot", "pending: paused"]
    assert [name for name, row in rows.items() if has_rule(row)] == [
        name for name in rows if name not in without
    ]
