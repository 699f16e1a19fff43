"""Mutants that mypy refuses: `None` where a number belongs, a text for nothing.

Nobody can bring such a change in, whatever the tests say. They are looked at once for all mutants
of a module, which lie in one file.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.architecture.tree import ROOT

_ERROR: Final = re.compile(r"^src/belfry/(?P<module>[^:]+):(?P<line>\d+): error: ")
_OPTIONS: Final = (
    "--strict", "--warn-unreachable", "--namespace-packages", "--explicit-package-bases",
    "--follow-imports=silent", "--no-error-summary", "--no-pretty", "--hide-error-context",
    "--no-warn-unused-ignores", "--ignore-missing-imports", "--no-color-output",
    # All mutants of a class's beginning define its attributes.
    "--disable-error-code=no-redef",
)  # fmt: skip


def refused(folder: Path, modules: Iterable[str]) -> dict[str, set[str]]:
    """Mutants in which mypy finds an error, by module."""
    given = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    settings = folder / "mypy.ini"
    settings.write_text(f"[mypy]\nmypy_path = src\nplugins = {','.join(given['plugins'])}\n")
    paths = [f"src/belfry/{each}" for each in modules]
    codes = [f"--enable-error-code={each}" for each in given["enable_error_code"]]
    command = [
        sys.executable, "-m", "mypy", *_OPTIONS, *codes, f"--config-file={settings}",
        f"--cache-dir={folder.parent / 'mypy'}", *paths,
    ]  # fmt: skip
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if told.returncode > 1:
        raise RuntimeError(f"mypy failed: {told.stdout}{told.stderr}")
    return functions_with_errors(folder, told.stdout.splitlines())


def functions_with_errors(folder: Path, told: Iterable[str]) -> dict[str, set[str]]:
    """The mutants to which mypy's lines point, by module."""
    lines: dict[str, set[int]] = {}
    for each in told:
        if found := _ERROR.match(each):
            lines.setdefault(found["module"], set()).add(int(found["line"]))
    return {
        module: _functions_at((folder / "src" / "belfry" / module).read_text("utf-8"), places)
        for module, places in lines.items()
    }


def _functions_at(code: str, lines: set[int]) -> set[str]:
    """Mutants on these lines; none of a function in which something is wrong without a mutant."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    found = {
        node.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, kinds) and not lines.isdisjoint(range(node.lineno, _end(node) + 1))
    }
    return {each for each in found if _original(each) not in found}


def _original(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0] + "__mutmut_orig"


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
