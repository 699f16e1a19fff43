"""Nothing grows too large to be read: files, functions, parameter lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.architecture.tree import ROOT, Function, python_files

MAX_FILE_LINES: Final = 400
MAX_FUNCTION_LINES: Final = 60
MAX_PARAMETERS: Final = 6

# What may be larger, and why; an entry that is no longer needed fails.
LARGE_FILES: Final[dict[str, str]] = {}
LONG_FUNCTIONS: Final[dict[str, str]] = {}
# Options of a command are its parameters: that is how Typer works.
MANY_PARAMETERS_ROOM: Final = "app/belfry/cli"

CODE: Final = python_files("app", "tests", "benchmarks")
# What a function may lie in.
HOLDERS: Final = (ast.stmt, ast.excepthandler, ast.match_case)


class Size(NamedTuple):
    """A function, and how large it is."""

    path: Path
    line: int
    name: str
    lines: int
    parameters: int

    def __str__(self) -> str:
        """What a reader of a failed test looks for."""
        size = f"{self.lines} lines, {self.parameters} parameters"
        return f"{self.path}:{self.line} {self.name}: {size}"


def lines_of(path: Path) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def size(path: Path, function: Function) -> Size:
    assert function.end_lineno is not None
    given = function.args
    named = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    taken = sum(1 for parameter in named if parameter.arg not in ("self", "cls"))
    lines = function.end_lineno - function.lineno + 1
    return Size(path, function.lineno, function.name, lines, taken)


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions of a file: statements alone are looked into, for no expression holds one."""
    left: list[ast.AST] = [tree]
    while left:
        for node in ast.iter_child_nodes(left.pop()):
            if isinstance(node, HOLDERS):
                left.append(node)
            if isinstance(node, Function):
                yield node


def sizes() -> list[Size]:
    """Of all functions: the tree of each file is read once, and none is kept."""
    return [
        size(path, function)
        for path in CODE
        for function in functions(ast.parse((ROOT / path).read_text("utf-8"), str(path)))
    ]


def test_files_are_short() -> None:
    long = [str(path) for path in CODE if lines_of(path) > MAX_FILE_LINES]
    assert sorted(set(long) - set(LARGE_FILES)) == [], "Split each by what its parts know."


def test_functions_are_short_and_take_few_parameters_and_exceptions_are_needed() -> None:
    """One test, since reading all files takes seconds, and each process of the suite would."""
    found = sizes()
    long = [each for each in found if each.lines > MAX_FUNCTION_LINES]
    assert [str(each) for each in long if f"{each.path}:{each.name}" not in LONG_FUNCTIONS] == []
    assert set(LONG_FUNCTIONS) <= {f"{each.path}:{each.name}" for each in long}
    many = [each for each in found if each.parameters > MAX_PARAMETERS]
    app = [each for each in many if each.path.is_relative_to("app")]
    room = MANY_PARAMETERS_ROOM
    assert [str(each) for each in app if not each.path.is_relative_to(room)] == []


def test_the_sizes_see_what_they_should() -> None:
    """A method, which a class and a function enclose, is a function of its own."""
    source = "def f(a):\n  class C:\n    async def g(self, /, b, *c, d):\n      pass\n"
    found = [size(Path("x"), function) for function in functions(ast.parse(source))]
    assert [(each.name, each.lines, each.parameters) for each in found] == [
        ("f", 4, 1),
        ("g", 2, 2),
    ]


@pytest.mark.parametrize(
    "head",
    [
        *("if x:", "if x: pass\nelse:", "for x in y:", "for x in y: pass\nelse:", "while x:"),
        *("with x:", "try:", "try: pass\nexcept X:", "try: pass\nexcept X: pass\nelse:"),
        *("try: pass\nfinally:", "try: pass\nexcept* X:", "async def g():", "class C:"),
    ],
)
def test_the_sizes_see_into_every_statement(head: str) -> None:
    rest = "\nfinally: pass" if head == "try:" else ""
    tree = ast.parse(f"{head}\n  def f(): pass{rest}\nmatch x:\n  case 1:\n    def h(): pass")
    assert {each.name for each in functions(tree)} - {"g"} == {"f", "h"}


def test_exceptions_for_files_are_needed() -> None:
    large = {str(path) for path in CODE if lines_of(path) > MAX_FILE_LINES}
    assert set(LARGE_FILES) <= large
