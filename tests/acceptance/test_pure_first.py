"""The suite's own plugin: each test once, the pure ones divided, the others last, on one worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import ROOT
from tests.plugins.pure_first import PURE, divided

PLUGINS: Final = ("-p", "xdist", "-p", "tests.plugins.pure_first", "-p", "tests.plugins.no_skips")
# Each test writes down who ran it; more of them than a worker is told of at once.
WRITES: Final = """
import os, pytest

@pytest.mark.parametrize("number", range(20))
def test_writes(number):
    with open("{log}", "a") as out:
        out.write(f"{folder} {{number}} {{os.environ['PYTEST_XDIST_WORKER']}}\\n")
    {then}
"""


class Suite:
    """A small suite of its own, and who ran which of its tests."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "log"
        self.log.touch()

    def add(self, folder: str, then: str = "pass") -> None:
        """Twenty tests in a folder, each of which ends so."""
        file = self.home / "tests" / folder / "test_writing.py"
        file.parent.mkdir(parents=True)
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
        """Folder, number and worker of each test, in the order in which they ran."""
        return [line.split() for line in self.log.read_text("utf-8").splitlines()]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_the_pure_ones_come_first_on_both_and_the_others_on_one(suite: Suite) -> None:
    suite.add("acceptance")
    suite.add("property", "__import__('time').sleep(0.02)")
    suite.add("unit", "__import__('time').sleep(0.02)")
    code, printed = suite.run()
    assert (code, "60 passed" in printed) == (0, True), printed
    ran = suite.ran()
    assert sorted((folder, int(number)) for folder, number, _ in ran) == [
        (folder, number) for folder in ("acceptance", "property", "unit") for number in range(20)
    ]
    assert {worker for _, _, worker in ran[:40]} == {"gw0", "gw1"}
    assert [folder for folder, _, _ in ran[40:]] == ["acceptance"] * 20
    assert [int(number) for _, number, _ in ran[40:]] == list(range(20))
    assert len({worker for _, _, worker in ran[40:]}) == 1


@pytest.mark.parametrize("folder", ["unit", "acceptance"])
def test_one_kind_alone_runs_too(suite: Suite, folder: str) -> None:
    suite.add(folder)
    code, printed = suite.run()
    assert (code, len(suite.ran())) == (0, 20), printed


def test_failures_skips_and_deaths_of_either_kind_fail_the_run(suite: Suite) -> None:
    suite.add("property", "assert number != 7")
    suite.add("unit", "number == 7 and os._exit(3)")
    suite.add("acceptance", "number == 7 and pytest.skip('no time')")
    suite.add("integration", "number == 7 and os._exit(3)")
    suite.add("soak", "assert number != 7")
    code, printed = suite.run(CI="true")
    assert (code, "5 failed, 95 passed" in printed) == (1, True), printed
    assert "which CI does not allow" in printed
    assert len(suite.ran()) == 100


def test_the_first_failure_ends_the_run_where_that_is_asked_for(suite: Suite) -> None:
    suite.add("unit", "assert number != 7")
    suite.add("acceptance")
    code, printed = suite.run("-x")
    assert code == 2, printed
    assert {folder for folder, _, _ in suite.ran()} == {"unit"}, printed


def test_nothing_is_left_out_and_nothing_is_there_twice() -> None:
    names = ["tests/unit/a.py::x", "tests/soak/b.py::y", "tests/property/c.py::z", "odd.py::w"]
    assert divided(names) == ([2, 0], [1, 3])


def test_what_is_pure_is_there() -> None:
    assert all((ROOT / name).exists() for name in PURE)
