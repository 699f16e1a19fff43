"""Every schema has golden bytes, which tell when old records can no longer be read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import ROOT, project_files

SCHEMAS: Final = [path for path in project_files() if path.match("schemas/*.avsc")]
GOLDEN: Final = [
    path for path in project_files() if path.is_relative_to("tests/compatibility/golden")
]


def test_there_are_schemas() -> None:
    assert SCHEMAS


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_every_schema_has_golden_bytes(path: Path) -> None:
    short = path.stem.removeprefix("io.belfry.")
    assert any(short in golden.name for golden in GOLDEN), f"No golden file names {short}."
    assert (ROOT / path).stat().st_size > 0
