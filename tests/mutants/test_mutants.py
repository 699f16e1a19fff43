"""The rooms that are mutated exist, with their tests, and mutmut is told what it needs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.mutants import stage
from tests.mutants.rooms import ROOMS, MutatedRoom
from tests.mutants.stage import MutantResult, counted, results, staged


@pytest.mark.parametrize("room", ROOMS.values(), ids=ROOMS)
def test_modules_and_tests_of_a_room_are_there(room: MutatedRoom) -> None:
    for pattern in room.modules:
        assert [*(ROOT / "app" / "belfry").glob(pattern)], pattern
    for path in room.tests:
        assert (ROOT / "tests" / path).exists(), path


def test_mutmut_is_told_which_modules_and_which_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "HOME", tmp_path)
    folder = staged("firing", ["firing/due.py"])
    assert (folder / "src" / "belfry" / "firing" / "due.py").is_file()
    told = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]
    assert told["mutmut"]["only_mutate"] == ["src/belfry/firing/due.py"]
    assert "tests/unit/firing" in told["mutmut"]["pytest_add_cli_args_test_selection"]
    assert told["pytest"]["ini_options"]["pythonpath"] == ["src", "."]


def test_outcomes_are_told_by_module(tmp_path: Path) -> None:
    place = tmp_path / "mutants" / "src" / "belfry" / "firing"
    place.mkdir(parents=True)
    codes = {"a": 0, "b": 1, "c": None, "d": 33, "e": 36}
    (place / "due.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    found = [*results(tmp_path)]
    assert found[0] == MutantResult("a", "firing/due.py", "survived")
    assert counted(found) == {
        "firing/due.py": {"survived": 1, "killed": 1, "not run": 1, "no tests": 1, "timeout": 1}
    }
