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
    for room in (
        "schedules",
        "tenants",
        "wire",
        "store",
        "engine",
        "partitions",
        "api",
        "telemetry",
    ):
        assert f"{room}/" in text
        assert (PACKAGE / room / "__init__.py").is_file()


def test_no_name_says_nothing() -> None:
    assert [str(path) for path in APP if FORBIDDEN_NAMES & {path.stem, *path.parent.parts}] == []


def test_every_module_says_what_it_is() -> None:
    silent = [str(path) for path in APP if not ast.get_docstring(syntax(path))]
    assert silent == [], "Begin each with a short chapter: what and why."


def test_every_folder_is_a_package() -> None:
    folders = {path.parent for path in APP} - {Path("app")}
    assert [str(each) for each in folders if not (ROOT / each / "__init__.py").is_file()] == []


def imported(path: Path, modules: frozenset[str]) -> set[str]:
    """Modules of the package that one imports, wherever in it, for types alone too."""
    found: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            # A name out of a package runs the package first, also where it is a module.
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules


def module_of(path: Path) -> str:
    return ".".join(path.relative_to("app").with_suffix("").parts).removesuffix(".__init__")


def test_no_module_imports_itself_by_way_of_others() -> None:
    by_module = {module_of(path): path for path in APP}
    modules = frozenset(by_module)
    left = {module: imported(path, modules) for module, path in by_module.items()}
    # Whoever imports nothing that is left is in no circle, so what stays to the end is.
    while free := {module for module, needs in left.items() if not needs & left.keys() - {module}}:
        for module in free:
            del left[module]
    assert not left, f"a circle lies among {sorted(left)}: move what both need to a third module"
