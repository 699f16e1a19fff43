"""Nothing grows too large to be read: files, functions, parameter lists."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import ROOT, Function, functions, python_files

MAX_FILE_LINES: Final = 400
MAX_FUNCTION_LINES: Final = 60
MAX_PARAMETERS: Final = 6

# What may be larger, and why; an entry that is no longer needed fails.
LARGE_FILES: Final[dict[str, str]] = {}
LONG_FUNCTIONS: Final[dict[str, str]] = {}
# Options of a command are its parameters: that is how Typer works.
MANY_PARAMETERS_ROOM: Final = "app/belfry/cli"

APP: Final = python_files("app")
CODE: Final = python_files("app", "tests", "benchmarks")


def lines_of(path: Path) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def length(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def parameters(function: Function) -> int:
    given = function.args
    named = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    return sum(1 for parameter in named if parameter.arg not in ("self", "cls"))


@pytest.mark.parametrize("path", CODE, ids=str)
def test_files_are_short(path: Path) -> None:
    if str(path) not in LARGE_FILES:
        assert lines_of(path) <= MAX_FILE_LINES, f"{path}: split it by what its parts know."


@pytest.mark.parametrize("path", CODE, ids=str)
def test_functions_are_short(path: Path) -> None:
    long = [
        f"{path}:{function.lineno} {function.name} has {length(function)} lines"
        for function in functions(path)
        if length(function) > MAX_FUNCTION_LINES and f"{path}:{function.name}" not in LONG_FUNCTIONS
    ]
    assert not long, long


@pytest.mark.parametrize("path", APP, ids=str)
def test_parameters_are_few(path: Path) -> None:
    many = [
        f"{path}:{function.lineno} {function.name} takes {parameters(function)}"
        for function in functions(path)
        if parameters(function) > MAX_PARAMETERS and not path.is_relative_to(MANY_PARAMETERS_ROOM)
    ]
    assert not many, many


def test_exceptions_are_needed() -> None:
    large = {str(path) for path in CODE if lines_of(path) > MAX_FILE_LINES}
    long = {
        f"{path}:{function.name}"
        for path in CODE
        for function in functions(path)
        if length(function) > MAX_FUNCTION_LINES
    }
    assert set(LARGE_FILES) <= large
    assert set(LONG_FUNCTIONS) <= long
