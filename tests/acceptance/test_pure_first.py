"""The suite's own plugin: each test once, pure ones divided, the others on a worker of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import ROOT
from tests.plugins.pure_first import (
    ALONE,
    BESIDE,
    BESIDE_TOO,
    LONGEST,
    LOWEST_PRIORITY,
    PROPERTIES,
    PURE,
    divided,
    may_return,
)

# Kinds that the plugin knows by their files, not by their folders.
FILES: Final = {
    "measured": "acceptance/test_failover.py",
    "simulation": "simulation/test_plants.py",
    "seeds": "simulation/test_seeds.py",
}
PLUGINS: Final = ("-p", "xdist", "-p", "tests.plugins.pure_first", "-p", "tests.plugins.no_skips")
# Each test writes down who ran it; more of them than a worker is told of at once.
WRITES: Final = """
import os, pytest

@pytest.mark.parametrize("number", range(20))
def test_writes(number):
    with open("{log}", "a") as out:
        out.write(f"{folder} {{number}} {{os.environ['PYTEST_XDIST_WORKER']}} {{os.nice(0)}}\\n")
    {then}
"""
# A process may, or may not, raise its priority again.
RIGHTS: Final = """
from tests.plugins import pure_first
pure_first.may_return = lambda: {}
"""
# Whoever gives tests out hears late that one has ended, and later that a worker has.
HEARS_LATE: Final = """
import os, time
from xdist.workermanage import WorkerController

def pytest_runtest_logreport(report):
    late = "PYTEST_XDIST_WORKER" not in os.environ and report.when == "teardown"
    time.sleep(0.2 * late)

heard = WorkerController.process_from_remote

def hear(self, told):
    time.sleep(0 if isinstance(told, tuple) else 3)
    heard(self, told)

WorkerController.process_from_remote = hear
"""


class Suite:
    """A small suite of its own, and who ran which of its tests."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "log"
        self.log.touch()

    def add(self, folder: str, then: str = "pass") -> None:
        """Twenty tests in a folder, each of which ends so."""
        file = self.home / "tests" / FILES.get(folder, f"{folder}/test_writing.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(WRITES.format(log=self.log, folder=folder, then=then), encoding="utf-8")

    def run(self, *options: str, **environment: str) -> tuple[int, str]:
        """Exit code, and what was printed."""
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *PLUGINS,
                "-q",
                "-n2",
                "--import-mode=importlib",
                *options,
                "tests",
            ],
            cwd=self.home,
            env={
                "PYTHONPATH": str(ROOT),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def ran(self) -> list[list[str]]:
        """Folder, number, worker and priority of each test, in the order in which they ran."""
        return [line.split() for line in self.log.read_text("utf-8").splitlines()]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_the_pure_ones_are_divided_and_each_file_has_a_worker_of_its_own(suite: Suite) -> None:
    folders = (
        *("acceptance", "architecture", "attack", "integration"),
        *("measured", "seeds", "simulation", "unit"),
    )
    for folder in folders:
        # One worker has these for itself, and is back while the other pure ones are divided.
        suite.add(folder, f"__import__('time').sleep({0 if folder == 'architecture' else 0.02})")
    code, printed = suite.run()
    assert (code, "160 passed" in printed) == (0, True), printed
    ran = suite.ran()
    numbers = {folder: [int(n) for of, n, *_ in ran if of == folder] for folder in folders}
    workers = {folder: {who for of, _, who, _ in ran if of == folder} for folder in folders}
    prior = {folder: {int(nice) for of, *_, nice in ran if of == folder} for folder in folders}
    assert all(sorted(each) == list(range(20)) for each in numbers.values())
    assert workers["attack"] == workers["unit"] == {"gw0", "gw1"}
    one_by_one = ("acceptance", "architecture", "integration", "seeds", "simulation", "measured")
    assert all(numbers[folder] == list(range(20)) for folder in one_by_one)
    assert all(len(workers[folder]) == 1 for folder in one_by_one)
    assert workers["acceptance"] != workers["integration"]
    assert workers["simulation"] != workers["measured"]
    assert prior.pop("simulation") == prior.pop("seeds") == {LOWEST_PRIORITY}
    assert set.union(*prior.values()) == {os.nice(0)}
    assert not {"acceptance", "integration"} & {of for of, *_ in ran[ran_of(ran, "measured") + 2 :]}


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_what_measures_waits_for_all_files(suite: Suite, workers: int) -> None:
    for folder in ("acceptance", "business", "connect", "measured"):
        suite.add(folder, f"__import__('time').sleep({0.02 if folder == 'measured' else 0.05})")
    suite.add("integration", "__import__('time').sleep(0.15)")
    code, printed = suite.run(f"-n{workers}")
    assert (code, "100 passed" in printed) == (0, True), printed
    ran = suite.ran()
    # A worker asks for more while it has a test or two left.
    assert {of for of, *_ in ran[ran_of(ran, "measured") + 3 * workers :]} == {"measured"}
    assert len({who for of, _, who, _ in ran if of == "measured"}) == 1


@pytest.mark.parametrize("returns", sorted({False, may_return()}))
def test_of_many_workers_one_is_for_what_needs_nobody(suite: Suite, returns: bool) -> None:
    (suite.home / "conftest.py").write_text(RIGHTS.format(returns), encoding="utf-8")
    files = ("acceptance", "business", "connect", "integration", "long", "longer")
    for folder in files:
        suite.add(folder, "__import__('time').sleep(0.1)")
    suite.add("measured", "__import__('time').sleep(0.1)")
    needing_nobody = ("simulation", "property")
    for folder in needing_nobody:
        suite.add(folder)
    code, printed = suite.run("-n4")
    assert (code, "180 passed" in printed) == (0, True), printed
    ran = suite.ran()
    assert ran_of(ran, "simulation") < 20
    # Beside the files, or when none of them is left to be begun: three of six have ended by then.
    begun = [of for of, *_ in ran[: ran_of(ran, "property")]]
    assert (sum(of in files for of in begun) > 50) if returns else ("measured" not in begun)
    workers = {each: {who for of, _, who, _ in ran if of == each} for each in needing_nobody}
    assert [len(each) for each in workers.values()] == [1, 1]
    (behind,) = workers["simulation"]
    assert any(of in files for of, _, who, _ in ran if who == behind) == returns
    assert returns or workers["property"] == {behind}
    prior = {(of in needing_nobody, int(nice)) for of, *_, nice in ran}
    assert prior == {(True, LOWEST_PRIORITY), (False, os.nice(0))}


def ran_of(ran: list[list[str]], folder: str) -> int:
    """When the first test of a folder ran."""
    return next(at for at, (of, *_) in enumerate(ran) if of == folder)


def test_one_worker_runs_all_of_them(suite: Suite) -> None:
    for folder in ("acceptance", "simulation", "unit"):
        suite.add(folder)
    code, printed = suite.run("-n1")
    assert (code, "60 passed" in printed) == (0, True), printed
    assert {int(nice) for *_, nice in suite.ran()} == {os.nice(0)}


@pytest.mark.parametrize("folder", ["unit", "simulation", "acceptance"])
def test_one_kind_alone_runs_too(suite: Suite, folder: str) -> None:
    suite.add(folder)
    code, printed = suite.run()
    assert (code, len(suite.ran())) == (0, 20), printed


def test_failures_skips_and_deaths_of_either_kind_fail_the_run(suite: Suite) -> None:
    suite.add("property", "assert number != 7")
    suite.add("unit", "number == 7 and os._exit(3)")
    suite.add("acceptance", "number == 7 and pytest.skip('no time')")
    suite.add("integration", "number == 7 and os._exit(3)")
    suite.add("simulation", "number == 7 and os._exit(3)")
    suite.add("measured", "assert number != 7")
    code, printed = suite.run(CI="true")
    assert (code, "6 failed, 114 passed" in printed) == (1, True), printed
    assert "which CI does not allow" in printed
    assert len(suite.ran()) == 120


def test_a_worker_that_died_before_that_was_heard_gives_its_tests_back(suite: Suite) -> None:
    """It is given tests when it has ended one: here, when it has died in the next."""
    suite.add("unit", "number == 7 and os._exit(3)")
    (suite.home / "conftest.py").write_text(HEARS_LATE, encoding="utf-8")
    code, printed = suite.run()
    assert (code, "1 failed, 19 passed" in printed) == (1, True), printed


@pytest.mark.parametrize("folder", ["unit", "simulation", "acceptance"])
def test_the_first_failure_ends_the_run_where_that_is_asked_for(suite: Suite, folder: str) -> None:
    for each in {"unit", "simulation", "acceptance"} - {folder}:
        suite.add(each, "__import__('time').sleep(0.2)")
    suite.add(folder, "assert number != 3")
    code, printed = suite.run("-x")
    assert code == 2, printed
    assert len(suite.ran()) < 45, printed


def test_nothing_is_left_out_and_nothing_is_there_twice() -> None:
    names = ["tests/unit/a.py::x", f"{ALONE[0]}::y", "tests/protocol/c.py::z", "odd.py::w"]
    names += [f"{BESIDE[1]}::v", "e.py::u", "odd.py::t", f"{BESIDE_TOO[0]}::s"]
    names += ["tests/property/d.py::r"]
    assert divided(names) == ([2, 0], [[3, 6], [5]], [[4], [7], [8]], [1])


def test_the_longest_files_come_before_all_others() -> None:
    second, first = (f"{LONGEST[at]}test_x.py::y".replace(".pytest_x.py", ".py") for at in (2, 1))
    names = ["tests/acceptance/test_short.py::x", second, first, "tests/integration/test_z.py::x"]
    assert divided(names)[1] == [[2], [1], [0], [3]]


def test_what_the_plugin_names_is_there() -> None:
    names = PURE + LONGEST + ALONE + BESIDE + BESIDE_TOO + PROPERTIES
    assert all((ROOT / name).exists() for name in names)
