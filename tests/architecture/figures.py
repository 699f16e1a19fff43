"""Figures of the code that no test fails on; ``python -m tests.architecture.figures`` tells them.

A limit on such a figure would be met by cutting and by padding.  As a report it shows where to
look: a short module with a single importer may be a part of that importer, and a class name that
two modules use is a word with two meanings.

- *Single importers*: modules under 80 lines that exactly one other module of the package imports,
  but for the one that the installed command calls.
- *Class names used twice*: names of classes that more than one module defines.
- *Prose*: the lines of docstrings and of comments among all lines that are not blank.
- *Pure share*: lines of the pure rooms, and of the pure modules of other rooms, among those of the
  server, which is what a worker runs: the package without the rooms for people and for development
  (`NOT_SERVER`).  What counts is on the list that `test_pure_rooms.py` checks.
- *Calls across files*: how often a general request is handed on from one file to another
  (`request_way.py` tells the way).
- *Long files*: those of more lines than `LONG`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

from tests.architecture.purity import unlisted
from tests.architecture.request_way import GENERAL, on_the_way, way
from tests.architecture.tree import (
    PURE_ROOMS,
    ROOT,
    module,
    pure_module_files,
    python_files,
    syntax,
)

SHORT: Final = 80
LONG: Final = 240
COMMAND: Final = "belfry.cli.entry"
NOT_SERVER: Final = ("bench", "cli", "client", "console", "devstack", "testing")
DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def text(path: Path) -> str:
    """What a file says."""
    return (ROOT / path).read_text(encoding="utf-8")


def imported(path: Path, names: set[str]) -> set[str]:
    """Modules of the package that a file imports."""
    found = set[str]()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found & names


def single_importers() -> list[tuple[str, str, int]]:
    """Short modules with one importer: their name, that of the importer, their lines."""
    names = {module(path): path for path in python_files("app")}
    importers: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for other in imported(path, set(names)) - {name}:
            importers[other].add(name)
    sizes = {name: len(text(path).splitlines()) for name, path in names.items()}
    return [
        (name, min(importers[name]), sizes[name])
        for name, path in sorted(names.items())
        if len(importers[name]) == 1 and sizes[name] < SHORT
        if path.name != "__init__.py" and name != COMMAND
    ]


def classes_named_twice() -> dict[str, int]:
    """Names of classes that several modules define, and how many."""
    counted = Counter(
        node.name
        for path in python_files("app")
        for node in syntax(path).body
        if isinstance(node, ast.ClassDef)
    )
    return {name: times for name, times in sorted(counted.items()) if times > 1}


def docstring_lines(path: Path) -> set[int]:
    """Numbers of the lines of a file's docstrings."""
    found = set[int]()
    for node in ast.walk(syntax(path)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            said = node.body[0]
            assert said.end_lineno is not None
            found |= set(range(said.lineno, said.end_lineno + 1))
    return found


def prose(path: Path) -> tuple[int, int]:
    """Lines of prose and all lines of a file, without the blank ones."""
    lines = text(path).splitlines()
    said = docstring_lines(path)
    for token in tokenize.generate_tokens(io.StringIO(text(path)).readline):
        if token.type == tokenize.COMMENT:
            said.add(token.start[0])
    told = [number for number, line in enumerate(lines, 1) if line.strip()]
    return sum(1 for number in told if number in said), len(told)


def prose_share() -> dict[str, float]:
    """Share of prose in each room, and `total`."""
    counted: dict[str, tuple[int, int]] = {}
    for path in python_files("app"):
        said, told = prose(path)
        for key in (path.relative_to("app/belfry").parts[0], "total"):
            before = counted.get(key, (0, 0))
            counted[key] = (before[0] + said, before[1] + told)
    return {key: said / told for key, (said, told) in sorted(counted.items()) if told}


def pure_shares() -> tuple[float, float]:
    """Shares of the pure rooms and of the pure modules of other rooms in the server's lines."""
    server = rooms = modules = 0
    alone = set(pure_module_files())
    for path in python_files("app"):
        room = path.relative_to("app/belfry").parts[0]
        if room not in NOT_SERVER:
            size = len(text(path).splitlines())
            server += size
            rooms += size * (room in PURE_ROOMS)
            modules += size * (path in alone)
    return rooms / server, modules / server


def main() -> None:
    """Tell all of them."""
    single = single_importers()
    print(f"modules under {SHORT} lines with a single importer: {len(single)}")
    for name, importer, size in single:
        print(f"    {name} ({size}) <- {importer}")
    twice = classes_named_twice()
    print(f"class names used twice: {len(twice)} ({', '.join(twice)})")
    shares = prose_share()
    print(f"prose: {shares.pop('total'):.1%}")
    print("    " + ", ".join(f"{room} {share:.1%}" for room, share in shares.items()))
    long = [path for path in python_files("app") if len(text(path).splitlines()) > LONG]
    print(f"files over {LONG} lines: {len(long)}")
    calls = way(GENERAL)
    print(
        f"calls across files that a general request is handed on by: {on_the_way(calls)}"
        f" (besides {sum(calls.values()) - on_the_way(calls)} that are answered at once)"
    )
    rooms, modules = pure_shares()
    print(
        f"pure share of the server: {rooms + modules:.1%}"
        f" (pure rooms {rooms:.1%}, pure modules of other rooms {modules:.1%})"
    )
    print(f"pure and not on the list of pyproject.toml: {', '.join(unlisted()) or 'none'}")


if __name__ == "__main__":
    main()
