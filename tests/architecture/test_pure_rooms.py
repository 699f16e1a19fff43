"""Pure rooms and pure modules reach for nothing: what they compute depends on arguments alone.

import-linter says the same of imports; these tests also see what needs no import.
"""

from __future__ import annotations

import ast

import pytest

from tests.architecture.purity import imports, impure, inside, outside, reaches
from tests.architecture.tree import PURE_MODULES, PURE_ROOMS, ROOT, pure_files, syntax


def test_a_pure_file_imports_nothing_of_the_shell() -> None:
    trees = {str(path): syntax(path) for path in pure_files()}
    found = {name: [*outside(tree), *impure(inside(tree))] for name, tree in trees.items()}
    assert {name: each for name, each in found.items() if each} == {}


def test_a_pure_file_neither_waits_nor_looks_around() -> None:
    found = {str(path): list(reaches(syntax(path))) for path in pure_files()}
    assert {name: each for name, each in found.items() if each} == {}


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


def test_the_pure_modules_are_files_of_other_rooms() -> None:
    files = {
        name: ROOT / "app" / "belfry" / f"{name.replace('.', '/')}.py" for name in PURE_MODULES
    }
    assert [name for name, file in files.items() if not file.is_file()] == []
    assert [name for name in PURE_MODULES if name.partition(".")[0] in PURE_ROOMS] == []
