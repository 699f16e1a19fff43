"""Pure rooms reach for nothing: what they compute depends on their arguments alone.

import-linter says the same of imports; this test also sees what needs no import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import PACKAGE, PURE_ROOMS, pure_files, syntax

BANNED_MODULES: Final = frozenset(
    {
        "aiokafka",
        "asyncio",
        "confluent_kafka",
        "faust",
        "logging",
        "mode",
        "multiprocessing",
        "os",
        "prometheus_client",
        "random",
        "rocksdict",
        "secrets",
        "signal",
        "socket",
        "structlog",
        "subprocess",
        "threading",
        "time",
    }
)
SHELL_ROOMS: Final = frozenset(
    path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name not in PURE_ROOMS
) | {"assembly", "settings"}
BANNED_CALLS: Final = frozenset({"breakpoint", "exec", "eval", "input", "open", "print"})
CLOCKS: Final = frozenset({"now", "utcnow", "today"})


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "Imports are absolute."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def reaches(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield f"line {node.lineno} waits"
        elif isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) if name in BANNED_CALLS:
                    yield f"line {node.lineno} calls {name}"
                case ast.Attribute(attr=name) if name in CLOCKS:
                    yield f"line {node.lineno} reads a clock by {name}"


@pytest.mark.parametrize("path", pure_files(), ids=str)
def test_a_pure_file_imports_nothing_of_the_shell(path: Path) -> None:
    for name in imports(syntax(path)):
        first, _, rest = name.partition(".")
        assert first not in BANNED_MODULES, name
        assert first != "belfry" or rest.partition(".")[0] not in SHELL_ROOMS, name


@pytest.mark.parametrize("path", pure_files(), ids=str)
def test_a_pure_file_neither_waits_nor_looks_around(path: Path) -> None:
    assert not list(reaches(syntax(path)))


def test_the_check_sees_what_it_should() -> None:
    bad = ast.parse("from os import path\nopen('x')\nasync def f(): await g()\ndatetime.now()")
    assert list(imports(bad)) == ["os.path"]
    assert len(list(reaches(bad))) == 4


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_the_pure_rooms_exist(room: str) -> None:
    assert any(path.parts[2] == room for path in pure_files())
