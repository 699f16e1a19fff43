"""A folder with belfry's package in it, where modules of a room hold all of their mutants.

    .mutants/ROOM/src/belfry/     a copy of the package; mutated modules have, beside each
                                  function, its mutants, and choose by MUTANT_UNDER_TEST
                  made/           by module: mutants, the hash of what each one changes, and what
                                  became of it
                  schemas         a link to the tree, where the package looks for schemas

Results stay there, so a later run goes on with what was not looked at yet, and looks again at
functions that have changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from difflib import ndiff
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.architecture.tree import PACKAGE, ROOT
from tests.mutants.rooms import ROOMS

HOME: Final = ROOT / ".mutants"
NOT_RUN: Final = "not run"
# What mypy refuses cannot be brought in.
REFUSED: Final = "refused"
KILLED: Final = ("killed", "timeout", REFUSED)
LEFT: Final = ("survived", "no tests")
# mutmut looks for this in the folder in which it works.
_SETTINGS: Final = '[tool.mutmut]\nsource_paths = ["src/"]\n'
Mutate = Callable[[str, str], Any]


class MutantResult(NamedTuple):
    """One mutant: its name with the module's, its module's path, and what became of it."""

    name: str
    module: str
    outcome: str


@dataclass(slots=True)
class MadeModule:
    """Mutants of one module, by name: which function they change, its hash, what became of them."""

    source: str = ""
    functions: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)


def staged(room: str, only: Sequence[str], mutate: Mutate) -> Path:
    """Lay a room out with its mutants; `only` are patterns of modules, by default the room's.

    `mutate` is mutmut's: a path and the code in it to the mutated code and the mutants' names.
    """
    folder = HOME / room
    package = folder / "src" / "belfry"
    left_out = _mutated(folder)
    shutil.copytree(PACKAGE, package, dirs_exist_ok=True, ignore=left_out, copy_function=_copied)
    (folder / "pyproject.toml").write_text(_SETTINGS, "utf-8")
    if not (folder / "schemas").is_symlink():
        (folder / "schemas").symlink_to(ROOT / "schemas")
    # What was mutated before may have changed since.
    patterns = [*(only or ROOMS[room].modules), *_made_modules(folder)]
    for path in sorted(PACKAGE.rglob("*.py")):
        module = str(path.relative_to(PACKAGE))
        if path.name != "__init__.py" and any(fnmatch(module, each) for each in patterns):
            with chdir(folder):
                _make(folder, module, path.read_text("utf-8"), mutate)
    return folder


def _copied(source: str, target: str) -> None:
    """Copy a file, unless it is there as it is now."""
    was = Path(target)
    if not was.is_file() or was.stat().st_mtime_ns != Path(source).stat().st_mtime_ns:
        shutil.copy2(source, target)


def _mutated(folder: Path) -> Callable[[str, list[str]], list[str]]:
    """Files that are not to be copied: what was mutated, and what Python has compiled."""
    made = set(_made_modules(folder))

    def left_out(place: str, names: list[str]) -> list[str]:
        base = Path(place).relative_to(PACKAGE)
        return [each for each in names if each == "__pycache__" or str(base / each) in made]

    return left_out


def _make(folder: Path, module: str, code: str, mutate: Mutate) -> None:
    """Write a module's mutants, unless they are there; outcomes of unchanged functions stay."""
    source = hashlib.sha256(code.encode()).hexdigest()
    before = made_of(folder, module)
    if before.source == source:
        return
    mutated = mutate(module, code)
    hashes = mutated.hash_by_function_name
    functions = {each: hashes[each.rpartition("__mutmut_")[0]] for each in mutated.mutant_names}
    kept = {
        name: outcome
        for name, outcome in before.outcomes.items()
        if name in functions and functions[name] == before.functions[name]
    }
    (folder / "src" / "belfry" / module).write_text(mutated.code, "utf-8")
    keep(folder, module, MadeModule(source, functions, kept))


def _place(folder: Path, module: str) -> Path:
    return folder / "made" / module.replace(".py", ".json")


def _made_modules(folder: Path) -> list[str]:
    base = folder / "made"
    paths = sorted(base.rglob("*.json"))
    return [str(each.relative_to(base)).replace(".json", ".py") for each in paths]


def made_of(folder: Path, module: str) -> MadeModule:
    """What is kept of a module; nothing where it was never mutated."""
    place = _place(folder, module)
    return MadeModule(**json.loads(place.read_text("utf-8"))) if place.is_file() else MadeModule()


def keep(folder: Path, module: str, made: MadeModule) -> None:
    """Keep a module's mutants, and what became of them."""
    place = _place(folder, module)
    place.parent.mkdir(parents=True, exist_ok=True)
    told = {"source": made.source, "functions": made.functions, "outcomes": made.outcomes}
    place.write_text(json.dumps(told, indent=1), "utf-8")


def python_name(module: str) -> str:
    """`firing/due.py` as Python imports it."""
    return "belfry." + module.removesuffix(".py").replace("/", ".")


def results(folder: Path, only: Sequence[str] = ("*",)) -> Iterator[MutantResult]:
    """What became of each mutant so far, module by module."""
    for module in _made_modules(folder):
        if any(fnmatch(module, each) for each in only or ("*",)):
            made = made_of(folder, module)
            for name in made.functions:
                full = f"{python_name(module)}.{name}"
                yield MutantResult(full, module, made.outcomes.get(name, NOT_RUN))


def sampled(found: Iterable[MutantResult], one_in: int) -> Iterator[MutantResult]:
    """One mutant in so many, drawn by its name, so that a later run draws the same ones."""
    return (each for each in found if zlib.crc32(each.name.encode()) % one_in == 0)


def counted(found: Sequence[MutantResult]) -> dict[str, Counter[str]]:
    """How many of each outcome, by module."""
    counts: dict[str, Counter[str]] = {}
    for each in found:
        counts.setdefault(each.module, Counter())[each.outcome] += 1
    return counts


def change(folder: Path, mutant: MutantResult) -> str:
    """The lines of a function that a mutant changes, before and after."""
    code = (folder / "src" / "belfry" / mutant.module).read_text("utf-8")
    name = mutant.name.rpartition(".")[2]
    original = name.rpartition("__mutmut_")[0] + "__mutmut_orig"
    before, after = (_lines_of(code, each) for each in (original, name))
    return "\n".join(each for each in ndiff(before, after) if each[0] in "+-")


def _lines_of(code: str, function: str) -> list[str]:
    """A function without its first line, which has its name."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, kinds) and node.name == function:
            return code.splitlines()[node.body[0].lineno - 1 : node.end_lineno]
    return []
