"""The threat model claims nothing that no test backs."""

from __future__ import annotations

import re
from typing import Final

from tests.architecture.tree import ROOT

PAGE: Final = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
NAMED: Final = re.compile(r"`(tests/[a-z_/]+\.py)(?:::(test_\w+))?`")


def test_every_test_that_is_named_is_there() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 30
    for path, function in named:
        text = (ROOT / path).read_text("utf-8")
        assert f"def {function or 'test_'}" in text, (path, function)


def test_every_defence_names_its_test() -> None:
    table = PAGE.split("## What is defended")[1].split("##")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 25
    assert all(NAMED.search(row) for row in rows)
