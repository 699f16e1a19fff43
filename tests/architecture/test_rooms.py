"""Rooms and names: every room is on the map, every module says what it is."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import PACKAGE, ROOT, python_files, rooms, syntax

FORBIDDEN_NAMES: Final = frozenset(
    {"core", "utils", "common", "manager", "helpers", "models", "agents"}
)
APP: Final = python_files("app")


@pytest.mark.parametrize("room", rooms())
def test_every_room_is_on_the_map(room: str) -> None:
    assert f"{room}/" in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_every_room_on_the_map_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for room in ("schedules", "wire", "store", "firing", "engine", "worker", "api", "telemetry"):
        assert f"{room}/" in text
        assert (PACKAGE / room / "__init__.py").is_file()


@pytest.mark.parametrize("path", APP, ids=str)
def test_no_name_says_nothing(path: Path) -> None:
    assert not FORBIDDEN_NAMES & {path.stem, *path.parent.parts}


@pytest.mark.parametrize("path", APP, ids=str)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(syntax(path)), f"{path}: begin with a short chapter: what and why."


@pytest.mark.parametrize("folder", sorted({path.parent for path in APP}), ids=str)
def test_every_folder_is_a_package(folder: Path) -> None:
    assert folder == Path("app") or (ROOT / folder / "__init__.py").is_file()
