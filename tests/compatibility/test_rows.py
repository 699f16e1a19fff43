"""What lies in changelogs and stores is read, and written, as it always was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from belfry.store.layout import records
from belfry.store.plain import decode_plain
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
    assert letters == set(range(records.PENDING, records.ANSWERED + 1))


def test_only_the_plain_one_is_fired_as_a_plain_one() -> None:
    """Whatever has a rule, headers, a pause or a past goes the general way."""
    pending = {n: bytes.fromhex(g["hex"]) for n, g in GOLDEN.items() if n.startswith("pending")}
    plain = [name for name, row in pending.items() if decode_plain(row) is not None]
    assert plain == ["pending: plain"]
