"""Pure rooms and pure modules reach for nothing: what they compute depends on arguments alone.

import-linter says the same of imports; these tests also see what needs no import.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.purity import imports, impure, inside, outside, reaches
from tests.architecture.tree import PURE_MODULES, PURE_ROOMS, ROOT, pure_files, syntax


@pytest.mark.parametrize("path", pure_files(), ids=str)
def test_a_pure_file_imports_nothing_of_the_shell(path: Path) -> None:
    assert not outside(syntax(path))
    assert not impure(inside(syntax(path)))


@pytest.mark.parametrize("path", pure_files(), ids=str)
def test_a_pure_file_neither_waits_nor_looks_around(path: Path) -> None:
    assert not list(reaches(syntax(path)))


def test_the_check_sees_what_it_should() -> None:
    bad = ast.parse("from os import path\nopen('x')\nasync def f(): await g()\ndatetime.now()")
    assert list(imports(bad)) == ["os.path"]
    assert outside(bad) == ["os.path"]
    assert len(list(reaches(bad))) == 4


def test_the_check_tells_the_shell_from_the_pure() -> None:
    shell = ast.parse("from belfry.host.clock import now_ms\nfrom belfry.kafka import topics")
    assert sorted(impure(inside(shell))) == ["belfry.host.clock", "belfry.kafka.topics"]
    pure = ast.parse("from belfry.kafka.rights import TopicRight\nfrom belfry.store import keys")
    assert not impure(inside(pure))


def test_a_value_of_a_library_is_no_way_out() -> None:
    assert not outside(ast.parse("from http import HTTPStatus"))
    assert outside(ast.parse("import http.client")) == ["http.client"]


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_the_pure_rooms_exist(room: str) -> None:
    assert any(path.parts[2] == room for path in pure_files())


@pytest.mark.parametrize("name", PURE_MODULES)
def test_the_pure_modules_are_files_of_other_rooms(name: str) -> None:
    assert (ROOT / "app" / "belfry" / f"{name.replace('.', '/')}.py").is_file()
    assert name.partition(".")[0] not in PURE_ROOMS
