"""What makes a module pure: what it computes depends on its arguments alone.

Three things are looked at, all of them in the syntax of the file:

- *Outside*: it imports no module that reads a clock, draws by chance, does I/O, logs, or brings a
  framework (`OUTSIDE`).
- *Inside*: of belfry it imports modules of the pure rooms and listed pure modules alone.
- *Doing*: it neither waits nor calls what reaches outside without an import.

The list of pure rooms and modules is a contract of import-linter in `pyproject.toml`.  A module
that is pure and not on it is named by `python -m tests.architecture.figures`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.architecture.tree import (
    PURE_MODULES,
    PURE_ROOMS,
    module,
    pure_files,
    python_files,
    syntax,
)

# Modules, and all that is in them, of which a pure module must not import anything.
OUTSIDE: Final = frozenset(
    {
        "aiohttp",
        "aiokafka",
        "asyncio",
        "concurrent",
        "confluent_kafka",
        "contextvars",
        "fastapi",
        "faust",
        "fcntl",
        "fsspec",
        "glob",
        "grpc",
        "http.client",
        "http.server",
        "httpx",
        "logging",
        "mode",
        "multiprocessing",
        "opentelemetry",
        "os",
        "prometheus_client",
        "pydantic_settings",
        "queue",
        "random",
        "requests",
        "rich",
        "rocksdict",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "starlette",
        "structlog",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "typer",
        "urllib.request",
        "uvicorn",
        "uvloop",
    }
)
CALLS: Final = frozenset({"breakpoint", "exec", "eval", "input", "open", "print"})
CLOCKS: Final = frozenset({"now", "utcnow", "today"})


def imports(tree: ast.Module) -> Iterator[str]:
    """Full names of all that a module imports, such as `os.path`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "Imports are absolute."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def outside(tree: ast.Module) -> list[str]:
    """What a module imports of `OUTSIDE`."""
    return [name for name in imports(tree) if any(part in OUTSIDE for part in _parts(name))]


def inside(tree: ast.Module) -> set[str]:
    """Modules of belfry that a module imports; packages that hold no more than a docstring too."""
    known = modules()
    return {
        next(part for part in _parts(name) if part in known)
        for name in imports(tree)
        if name.partition(".")[0] == "belfry"
    }


def reaches(tree: ast.Module) -> Iterator[str]:
    """What a module does that needs no import: it waits, looks around, or reads a clock."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield f"line {node.lineno} waits"
        elif isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) if name in CALLS:
                    yield f"line {node.lineno} calls {name}"
                case ast.Attribute(attr=name) if name in CLOCKS:
                    yield f"line {node.lineno} reads a clock by {name}"


def impure(names: Iterable[str]) -> list[str]:
    """Those of the modules that are neither in a pure room nor on the list.

    The package itself, which holds no more than its version, is fine.
    """
    listed = {"belfry", *(f"belfry.{name}" for name in PURE_MODULES)}
    rooms = {f"belfry.{room}" for room in PURE_ROOMS}
    return [
        name for name in names if name not in listed and ".".join(name.split(".")[:2]) not in rooms
    ]


def unlisted() -> list[str]:
    """Modules that keep the rules of pure ones and are not on the list, nor in a pure room."""
    known = set(pure_files())
    return [
        module(path)
        for path in python_files("app")
        if path not in known and path.name not in ("__init__.py", "__main__.py")
        if not outside(syntax(path)) and not any(reaches(syntax(path)))
        if not impure(inside(syntax(path)))
    ]


@cache
def modules() -> dict[str, Path]:
    """Files of the package by the names under which they are imported."""
    return {module(path): path for path in python_files("app")}


def _parts(name: str) -> list[str]:
    """A name and all that it lies in, the longest first: `os.path`, `os`."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
