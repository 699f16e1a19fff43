"""The rooms that are mutated exist, with their tests, and what becomes of mutants is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.mutants import forking, stage
from tests.mutants.forking import ForkedRuns, Plan, Reach
from tests.mutants.rooms import ROOMS, MutatedRoom
from tests.mutants.stage import (
    MadeModule,
    MutantResult,
    change,
    counted,
    keep,
    results,
    sampled,
    staged,
)
from tests.mutants.typed import functions_with_errors

MUTATED = """
def x_due__mutmut_orig(a):
    return a < 2

def x_due__mutmut_1(a):
    return a <= 2

async def x_later__mutmut_orig(a):
    return a

async def x_later__mutmut_1(a):
    return None
"""


@pytest.mark.parametrize("room", ROOMS.values(), ids=ROOMS)
def test_modules_and_tests_of_a_room_are_there(room: MutatedRoom) -> None:
    for pattern in room.modules:
        assert [*(ROOT / "app" / "belfry").glob(pattern)], pattern
    for path in room.tests:
        assert (ROOT / "tests" / path).exists(), path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with the room `firing`, of which one module is in it."""
    module = tmp_path / "belfry" / "firing" / "due.py"
    module.parent.mkdir(parents=True)
    module.write_text("first")
    (module.parent / "other.py").write_text("other")
    monkeypatch.setattr(stage, "PACKAGE", tmp_path / "belfry")
    monkeypatch.setattr(stage, "HOME", tmp_path / ".mutants")
    return module


def mutate(due: str = "1", later: str = "1") -> Callable[[str, str], Any]:
    """Stands for mutmut: two functions, of which these are the hashes."""
    return lambda _path, _code: SimpleNamespace(
        code=MUTATED,
        mutant_names=["x_due__mutmut_1", "x_later__mutmut_1"],
        hash_by_function_name={"x_due": due, "x_later": later},
    )


def outcomes(folder: Path) -> list[str]:
    return [each.outcome for each in results(folder)]


def test_only_functions_that_changed_are_looked_at_again(package: Path) -> None:
    folder = staged("firing", ["firing/due.py"], mutate())
    lies = folder / "src" / "belfry" / "firing"
    assert ((lies / "due.py").read_text(), (lies / "other.py").read_text()) == (MUTATED, "other")
    assert outcomes(folder) == ["not run", "not run"]
    made = stage.made_of(folder, "firing/due.py")
    made.outcomes.update(dict.fromkeys(made.functions, "killed"))
    keep(folder, "firing/due.py", made)
    assert outcomes(staged("firing", ["firing/due.py"], mutate("another"))) == ["killed", "killed"]
    package.write_text("second")
    # Of another module alone: what was mutated once is never left behind the tree.
    assert outcomes(staged("firing", ["no such"], mutate("another"))) == ["not run", "killed"]


def test_outcomes_are_told_by_module(tmp_path: Path) -> None:
    told = {"a": "survived", "b": "killed", "d": "no tests", "e": "timeout"}
    keep(tmp_path, "firing/due.py", MadeModule("", dict.fromkeys("abcde", "hash"), told))
    found = [*results(tmp_path)]
    assert found[0] == MutantResult("belfry.firing.due.a", "firing/due.py", "survived")
    assert counted(found) == {
        "firing/due.py": {"survived": 1, "killed": 1, "not run": 1, "no tests": 1, "timeout": 1}
    }
    assert [*results(tmp_path, ["firing/rates.py"])] == []


def test_a_sample_draws_the_same_mutants_each_time_and_one_in_so_many() -> None:
    found = [MutantResult(f"belfry.firing.due.x_due__mutmut_{n}", "", "") for n in range(1_000)]
    drawn = [*sampled(found, 5)]
    assert 150 < len(drawn) < 250
    assert [*sampled(reversed(found), 5)] == drawn[::-1]
    assert {*sampled(found, 10)} < {*drawn}
    assert [*sampled(found, 1)] == found


@pytest.mark.usefixtures("package")
def test_a_mutant_is_shown_by_the_lines_that_it_changes() -> None:
    folder = staged("firing", [], mutate())
    mutant = MutantResult("belfry.firing.due.x_due__mutmut_1", "firing/due.py", "survived")
    assert change(folder, mutant) == "-     return a < 2\n+     return a <= 2"


@pytest.mark.usefixtures("package")
def test_mutants_that_mypy_refuses_are_those_in_which_it_finds_errors() -> None:
    folder = staged("firing", [], mutate())
    told = ["src/belfry/firing/due.py:12: error: No [x]", "src/belfry/firing/due.py:3: note: hm"]
    assert functions_with_errors(folder, told) == {"firing/due.py": {"x_later__mutmut_1"}}
    # What it finds without a mutant as well is none of theirs.
    both = [f"src/belfry/firing/due.py:{line}: error: No [x]" for line in (3, 6, 12)]
    assert functions_with_errors(folder, both) == {"firing/due.py": {"x_later__mutmut_1"}}


class FakeSession:
    """As much of a session as is needed: tests that call a function of which there are mutants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.testsfailed = 0
        self.mutant = ""
        self.record_trampoline_hit: Callable[[str], None] = lambda _: None
        self.items = [self._item(name) for name in ("unconcerned", "due")]
        monkeypatch.setattr(forking, "trampoline", lambda: self)

    def set_mutant_under_test(self, name: str) -> None:
        self.mutant = name

    def _item(self, name: str) -> Any:
        hook = SimpleNamespace(pytest_runtest_protocol=self._run)
        return SimpleNamespace(nodeid=name, config=SimpleNamespace(hook=hook))

    def _run(self, item: Any, nextitem: Any) -> None:
        if item.nodeid == "unconcerned":
            # A mutant of another function would be killed by it.
            self.testsfailed += self.mutant != "stats"
        else:
            self.record_trampoline_hit("belfry.firing.due.x_due")
            self.testsfailed += self.mutant.endswith("_1")
            if self.mutant.endswith("_3"):
                time.sleep(60)
            while self.mutant.endswith("_4"):
                pass
            if self.mutant.endswith("_5"):
                time.sleep(0.05)


def test_each_mutant_meets_the_tests_that_reach_its_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"x_due__mutmut_{number}" for number in (1, 2, 3, 4)] + ["x_untested__mutmut_1"]
    keep(tmp_path, "firing/due.py", MadeModule("", dict.fromkeys(names, "hash"), {}))
    monkeypatch.setattr(forking, "_SPARE_S", 5.0)
    monkeypatch.setattr(forking, "_SPARE_CPU_S", 1)
    full = [f"belfry.firing.due.{name}" for name in names]
    plan = Plan(str(tmp_path), {"firing/due.py": full}, time.time() + 60, 2)
    session: Any = FakeSession(monkeypatch)
    assert ForkedRuns(plan).pytest_runtestloop(session)
    assert outcomes(tmp_path) == ["killed", "survived", "timeout", "timeout", "no tests"]
    assert session.mutant == "", "a mutant is tried in a process of its own"


def test_a_machine_that_stops_all_of_it_for_long_kills_no_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, looks = "x_due__mutmut_5", count()
    keep(tmp_path, "firing/due.py", MadeModule("", {name: "hash"}, {}))
    # It stands still once, between the first two looks, for longer than any mutant may take.
    leaps = {"monotonic": lambda: time.monotonic() + (1_000.0 if next(looks) else 0.0)}
    monkeypatch.setattr(forking, "time", SimpleNamespace(**vars(time) | leaps))
    plan = Plan(str(tmp_path), {"firing/due.py": [f"belfry.firing.due.{name}"]}, 2e9, 1)
    session: Any = FakeSession(monkeypatch)
    ForkedRuns(plan).pytest_runtestloop(session)
    assert outcomes(tmp_path) == ["survived"]


def test_the_shortest_tests_come_first_and_take_no_longer_than_they_may() -> None:
    reach = Reach({"due": [0, 1, 2]}, took_s=[3.0, 1.0, 2.0], cpu_s=[2.9, 0.9, 1.9])
    assert reach.of("due", inf) == [1, 2, 0]
    assert reach.of("due", 3.0) == [1, 2]
    assert reach.of("due", 0.5) == []
    assert reach.of("later", inf) == []


def test_nothing_is_looked_at_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "x_due__mutmut_1"
    keep(tmp_path, "firing/due.py", MadeModule("", {name: "hash"}, {}))
    plan = Plan(str(tmp_path), {"firing/due.py": [f"belfry.firing.due.{name}"]}, 0.0, 1)
    session: Any = FakeSession(monkeypatch)
    ForkedRuns(plan).pytest_runtestloop(session)
    assert outcomes(tmp_path) == ["not run"]


def test_a_test_that_fails_without_a_mutant_kills_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "x_due__mutmut_2"
    keep(tmp_path, "firing/due.py", MadeModule("", {name: "hash"}, {}))
    session: Any = FakeSession(monkeypatch)

    def broken(item: Any, nextitem: Any) -> None:
        session.record_trampoline_hit("belfry.firing.due.x_due")
        session.testsfailed += 1

    session.items.append(session._item("broken"))
    session.items[-1].config.hook = SimpleNamespace(pytest_runtest_protocol=broken)
    plan = Plan(str(tmp_path), {"firing/due.py": [f"belfry.firing.due.{name}"]}, 2e9, 1)
    with pytest.warns(match="left out, since it fails without a mutant: broken"):
        ForkedRuns(plan).pytest_runtestloop(session)
    assert outcomes(tmp_path) == ["survived"]


def test_a_plan_travels_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "plan.json"
    place.write_text(json.dumps(Plan("folder", {}, 0.0, 1)._asdict()))
    monkeypatch.setenv(forking.PLAN, str(place))
    registered: list[Any] = []
    manager = SimpleNamespace(register=registered.append)
    forking.pytest_configure(SimpleNamespace(pluginmanager=manager))  # type: ignore[arg-type]
    assert isinstance(registered[0], ForkedRuns)
