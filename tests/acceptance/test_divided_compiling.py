"""The suite's own plugin: each worker begins to collect elsewhere, and ends with the same order."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.plugins.divided_compiling import pytest_collection, pytest_collection_modifyitems

# In pytest's order: folders and files of a folder by their names.
FILES: Final = (
    *("tests/acceptance/test_one.py", "tests/property/test_two.py"),
    *("tests/unit/api/deeper/test_three.py", "tests/unit/api/test_four.py"),
    *("tests/unit/test_five.py", "tests/unit/wire/test_six.py"),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (*FILES, "tests/unit/wire/unlike.py", "tests/unlike/other.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#" * 100_000, encoding="utf-8")
    return tmp_path


def collected(tree: Path, worker: dict[str, Any] | None, *args: str) -> tuple[list[str], list[str]]:
    """What a worker collects one after the other, and in which order it has the tests then."""
    given = {} if worker is None else {"workerinput": worker}
    config: Any = SimpleNamespace(
        args=[*args], invocation_params=SimpleNamespace(dir=tree), stash=pytest.Stash(), **given
    )
    session: Any = SimpleNamespace(config=config)
    pytest_collection(session)
    files = [
        file
        for each in (tree / arg for arg in config.args)
        for file in ([each] if each.is_file() else sorted(each.rglob("test_*.py")))
    ]
    items: list[Any] = [SimpleNamespace(path=file) for file in files]
    pytest_collection_modifyitems(config, items)
    ended = [str(item.path.relative_to(tree)) for item in items]
    return [str(path.relative_to(tree)) for path in files], ended


@pytest.mark.parametrize(
    ("number", "first"), [(0, FILES[0]), (1, FILES[1]), (2, FILES[2]), (3, FILES[4]), (5, FILES[1])]
)
def test_each_worker_begins_elsewhere_and_all_end_with_one_order(
    tree: Path, number: int, first: str
) -> None:
    began, ended = collected(tree, {"workerid": f"gw{number}", "workercount": 4}, "tests")
    assert began[0] == first
    assert sorted(began) == sorted(FILES)
    assert ended == [*FILES]


def test_folders_that_are_asked_for_keep_their_order(tree: Path) -> None:
    worker = {"workerid": "gw1", "workercount": 2}
    began, ended = collected(tree, worker, "tests/unit", "tests/acceptance")
    assert began[0] != FILES[2]
    assert ended == [*FILES[2:], FILES[0]]


@pytest.mark.parametrize("args", [["tests/unit/api/test_four.py::test_it"], ["tests", "tests/no"]])
def test_what_is_no_path_is_left_to_pytest(tree: Path, args: list[str]) -> None:
    config: Any = SimpleNamespace(
        args=[*args],
        invocation_params=SimpleNamespace(dir=tree),
        workerinput={"workerid": "gw1", "workercount": 2},
    )
    session: Any = SimpleNamespace(config=config)
    pytest_collection(session)
    assert config.args == args


def test_a_process_of_its_own_collects_as_ever(tree: Path) -> None:
    began, ended = collected(tree, None, "tests/unit", "tests/acceptance")
    assert began == ended == [*FILES[2:], FILES[0]]
