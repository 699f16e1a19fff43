"""The tree as the architecture tests see it: files that belong to the project, and their syntax."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "app" / "belfry"


def _pure() -> list[str]:
    """Names in the contract of import-linter that keeps the pure ones pure, without `belfry.`."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["id"] == "pure"]
    return [name.removeprefix("belfry.") for name in contract["source_modules"]]


PURE_ROOMS: Final = tuple(name for name in _pure() if "." not in name)
# Modules of other rooms that keep the same rules, such as `kafka.rights`.
PURE_MODULES: Final = tuple(name for name in _pure() if "." in name)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is, or would be, tracked; relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    found = tuple(sorted(Path(name) for name in set(listed) if name and (ROOT / name).is_file()))
    assert found, f"no file of the project below {ROOT}"
    return found


def python_files(*folders: str) -> list[Path]:
    """Python files of the project under one of the folders."""
    found = [
        path
        for path in project_files()
        if path.suffix == ".py" and any(path.is_relative_to(folder) for folder in folders)
    ]
    assert found, f"no Python file below {folders}"
    return found


def pure_files() -> list[Path]:
    """Files of the pure rooms, and those of the pure modules of other rooms."""
    return python_files(*(f"app/belfry/{room}" for room in PURE_ROOMS)) + pure_module_files()


def pure_module_files() -> list[Path]:
    """Files of the pure modules of other rooms."""
    return [Path(f"app/belfry/{name.replace('.', '/')}.py") for name in PURE_MODULES]


def module(path: Path) -> str:
    """Name under which a file of the package is imported."""
    return ".".join(path.relative_to("app").with_suffix("").parts).removesuffix(".__init__")


@cache
def syntax(path: Path) -> ast.Module:
    """Syntax tree of a file."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), str(path))


def rooms() -> list[str]:
    """Packages directly inside `belfry` that hold code."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/*.py") if path.name == "__init__.py")


def markdown() -> list[Path]:
    """Every page of the project."""
    return [path for path in project_files() if path.suffix == ".md"]
