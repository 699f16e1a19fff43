"""Functions get other code in place, and where more differs nothing is taken for them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation.forked import APP, played
from tests.simulation.swapped import Unlike, changes, swap

BEFORE = """
from functools import cache

LIMIT = 3
BOTH = (1, 2)

def told(each):
    return [each, LIMIT]

def numbered():
    return 1

TOLD = told(1)
MOST = max(each for each in BOTH)

def twice(function):
    def again():
        return [function(), function()]
    return again

@cache
def limited(most=LIMIT):
    return [each for each in range(most)]

class Counted:
    kind = "counted"
    order = numbered()

    def __init__(self):
        self.number = 0

    def count(self, by=1):
        def more():
            return self.number + by
        self.number = more()
        return self.number
"""


def imported(tmp_path: Path, text: str = BEFORE) -> tuple[str, Any]:
    """A file, and the module that was imported of it."""
    file, made = tmp_path / "counted.py", dict[str, Any]()
    exec(compile(text, str(file), "exec", dont_inherit=True), made)  # as an import does
    return str(file), SimpleNamespace(**made)


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("self.number + by", "self.number + 2 * by", 2),
        ("self.number + by", "self.order + by", 2),
        ("        self.number = more()\n", "        self.number = more()\n        more()\n", 1),
        ("        self.number = more()\n", "", 0),
    ],
)
def test_who_holds_a_function_has_its_new_code(
    tmp_path: Path, old: str, new: str, counts: int
) -> None:
    file, module = imported(tmp_path)
    counted = module.Counted()
    held = counted.count
    # A line that comes before moves all others down, and changes none of them.
    swap(changes(file, BEFORE, "# A remark.\n" + BEFORE.replace(old, new)))
    assert held() == counts
    assert module.limited() == [0, 1, 2]


def test_a_function_that_others_wrap_is_found(tmp_path: Path) -> None:
    file, module = imported(tmp_path)
    swap(changes(file, BEFORE, BEFORE.replace("range(most)", "range(most + 1)")))
    assert module.limited() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ('kind = "counted"', 'kind = "told"'),
        ("by=1", "by=2"),
        ("by=1", "by=1, more=2"),
        ("@cache\n", ""),
        ("def count(", "def counts("),
        ("LIMIT = 3", "LIMIT = max(each for each in (3, 2))"),
        ("MOST = max(each for", "MOST = max(-each for"),
        # Python takes them for equal.
        ("BOTH = (1, 2)", "BOTH = (1, 2.0)"),
        ("BOTH = (1, 2)", "BOTH = (True, 2)"),
        # Somebody has its answer.
        ("return [each, LIMIT]", "return [LIMIT, each]"),
        ("    return 1", "    return 2"),
    ],
)
def test_what_runs_at_an_import_is_unlike(old: str, new: str) -> None:
    with pytest.raises(Unlike):
        changes("counted.py", BEFORE, BEFORE.replace(old, new))


def test_nothing_differs_where_only_lines_and_remarks_do() -> None:
    assert changes("counted.py", BEFORE, BEFORE.replace("class", "# A remark.\nclass")) == []


def test_a_function_that_nobody_holds_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"nobody holds Counted\.count"):
        swap(changes(str(tmp_path / "not.py"), BEFORE, BEFORE.replace("+ by", "- by")))


def test_a_function_made_before_of_one_that_is_another_is_told_of(tmp_path: Path) -> None:
    file, module = imported(tmp_path)
    # As a decorator that a file imported later has asked for.
    said = module.twice(lambda: 1)
    assert said() == [1, 1]
    other = BEFORE.replace("[function(), function()]", "[function()]")
    with pytest.raises(AssertionError, match=r"before it got its code: .*twice.*again"):
        swap(changes(file, BEFORE, other))


def test_a_text_that_changes_nothing_is_told_of(tmp_path: Path) -> None:
    file = "belfry/assembly.py"
    same = (APP / file).read_text(encoding="utf-8") + "# A remark.\n"
    with pytest.raises(AssertionError, match="does what it did"):
        played((), tmp_path / "told", 1, {file: same}, lambda: tmp_path)


def test_a_simulator_that_cannot_begin_says_why(tmp_path: Path) -> None:
    # A file that is there, under a name by which nobody can import it.
    file = "belfry/cli/../assembly.py"
    before = (APP / file).read_text(encoding="utf-8")
    other = before.replace("    if ", "    if not ", 1)
    printed = played((), tmp_path / "told", 60, {file: other}, lambda: tmp_path)
    assert "Error: " in printed
