"""A folder in which mutmut finds belfry as it expects a project to lie: the package below `src`.

mutmut copies it once more, with all mutants of a function beside it, and runs pytest there:

    .mutants/ROOM/pyproject.toml      what is mutated, and by which tests it is killed
                  src, tests, …       links to the tree
                  mutants/            mutmut's copy, and a file of results for each module

Results stay there, so a later run goes on with what was not looked at yet, and looks again at
functions that have changed.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.architecture.tree import ROOT
from tests.mutants.rooms import ROOMS

HOME: Final = ROOT / ".mutants"
LINKS: Final = {"src": "app", "tests": "tests", "schemas": "schemas", "docs": "docs"}
# Exit codes that mutmut keeps of a mutant's tests; anything else is a failure of a test.
OUTCOMES: Final = {
    None: "not run", 0: "survived", 5: "no tests", 33: "no tests", 34: "skipped",
    36: "timeout", 24: "timeout", 152: "timeout", -24: "timeout",
}  # fmt: skip
KILLED: Final = ("killed", "timeout")


class MutantResult(NamedTuple):
    """One mutant: its name as mutmut has it, its module, and what became of it."""

    name: str
    module: str
    outcome: str


def staged(room: str, only: Sequence[str]) -> Path:
    """Lay a room out for mutmut; `only` are patterns of modules, all of the room's by default."""
    folder = HOME / room
    folder.mkdir(parents=True, exist_ok=True)
    for name, place in LINKS.items():
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(ROOT / place)
    for name in ("README.md", "CONTRIBUTING.md"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "pyproject.toml").write_text(_settings(room, only), "utf-8")
    return folder


def _settings(room: str, only: Sequence[str]) -> str:
    """The project's options of pytest, with `src` for `app`, and those of mutmut."""
    pytest = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]
    options = pytest["ini_options"] | {"pythonpath": ["src", "."], "timeout": 600}
    modules, tests = ROOMS[room]
    mutmut = {
        "source_paths": ["src/"],
        "only_mutate": [f"src/belfry/{each}" for each in only or modules],
        "do_not_mutate": ["*/__init__.py"],
        "also_copy": [*LINKS.keys() - {"src", "tests"}, "README.md", "CONTRIBUTING.md"],
        "pytest_add_cli_args_test_selection": [f"tests/{each}" for each in tests],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "no:xdist"],
        "use_git_change_detection": False,
    }
    return _table("tool.pytest.ini_options", options) + _table("tool.mutmut", mutmut)


def _table(name: str, values: dict[str, object]) -> str:
    # JSON's texts, numbers and lists are TOML's as well.
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join([f"[{name}]", *lines, "", ""])


def results(folder: Path) -> Iterator[MutantResult]:
    """What became of each mutant so far, module by module."""
    base = folder / "mutants" / "src" / "belfry"
    for path in sorted(base.rglob("*.meta")):
        module = str(path.relative_to(base)).removesuffix(".meta")
        codes = json.loads(path.read_text("utf-8"))["exit_code_by_key"]
        for name, code in codes.items():
            yield MutantResult(name, module, OUTCOMES.get(code, "killed"))


def counted(found: Sequence[MutantResult]) -> dict[str, Counter[str]]:
    """How many of each outcome, by module."""
    counts: dict[str, Counter[str]] = {}
    for each in found:
        counts.setdefault(each.module, Counter())[each.outcome] += 1
    return counts
