"""A plugin of pytest that runs tests once for each mutant, in a process of its own.

    collect all tests ─► run them once in a child: which test reaches which function, how long
                      ─► for each mutant a child that runs the tests which reach its function,
                         the shortest first, and ends with the first one that fails

Python starts and imports belfry once for all of them, so that a mutant costs what its tests cost:
most are killed within milliseconds. The process itself runs no test, so no child finds what
another one has left behind.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.mutants.stage import keep, made_of

# Names a file with the plan: what `Plan` has, as JSON.
PLAN: Final = "BELFRY_MUTANTS_PLAN"
_SURVIVED: Final = 0
_FAILED: Final = 1
# A mutant has so many times as long as its tests took, and these seconds on top.
_TIMES: Final = 20.0
_SPARE_S: Final = 15.0
_SPARE_CPU_S: Final = 3
# Between two looks: soon at first, for most mutants are killed at once, then less often, for on a
# crowded machine looking would take more of it than the tests do.
_FIRST_LOOK_S: Final = 0.002
_LATER_LOOK_S: Final = 0.064
# However long they were apart: who stops all of it for minutes ends no mutant.
_LONGEST_LOOK_S: Final = 0.1


class Plan(NamedTuple):
    """Which mutants to look at, by module, in which folder, until when (epoch seconds).

    `most_s`: of the tests that reach a mutant, only the shortest that take so long together.
    """

    folder: str
    mutants: dict[str, list[str]]
    until_s: float
    children: int
    most_s: float = inf


@dataclass(slots=True)
class Reach:
    """Which tests reach a function, by their places among all, and how long each one takes.

    `cpu_s` is how much of that they computed.
    """

    tests: dict[str, list[int]] = field(default_factory=dict)
    took_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def of(self, function: str, most_s: float) -> list[int]:
        """Tests of a function, as far as they compute no longer together.

        Those that compute least come first: on a crowded machine, what a test took says nothing.
        """
        ordered = sorted(self.tests.get(function, ()), key=self.cpu_s.__getitem__)
        computed = accumulate(self.cpu_s[each] for each in ordered)
        return [
            each for each, so_far_s in zip(ordered, computed, strict=True) if so_far_s <= most_s
        ]

    def seconds(self, function: str) -> float:
        """How long its tests take together."""
        return sum(self.took_s[each] for each in self.tests.get(function, ()))

    def cpu_seconds(self, function: str) -> int:
        """How much a mutant may compute: one that runs for ever ends soon on a crowded machine."""
        computed = sum(self.cpu_s[each] for each in self.tests.get(function, ()))
        return int(computed * _TIMES) + _SPARE_CPU_S


@dataclass(slots=True)
class _Child:
    module: str
    name: str
    left_s: float


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of pytest's own loop."""
    told = json.loads(Path(os.environ[PLAN]).read_text("utf-8"))
    config.pluginmanager.register(ForkedRuns(Plan(**told)))


class ForkedRuns:
    """Runs the tests of a session once for each mutant of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._folder = Path(plan.folder)
        self._children: dict[int, _Child] = {}
        self._outcomes: defaultdict[str, dict[str, str]] = defaultdict(dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All mutants of the plan, until its time is up."""
        if session.testsfailed:
            return True
        reach = self._reach(session)
        for failed in reach.failed:
            # It would kill all that it reaches.  Tests turn warnings into errors; this is none.
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn(f"left out, since it fails without a mutant: {failed}", stacklevel=1)
        # A child that collects garbage would copy all pages that it looks at.
        gc.freeze()
        try:
            self._look_at(session, reach)
        finally:
            for pid in self._children:
                os.killpg(pid, signal.SIGKILL)
            self._note()
        return True

    def _look_at(self, session: pytest.Session, reach: Reach) -> None:
        wanted = [
            (reach.seconds(function), module, name, function)
            for module, names in self._plan.mutants.items()
            for name in names
            for function in [name.rpartition("__mutmut_")[0]]
        ]
        noted_s = time.time()
        for took_s, module, name, function in sorted(wanted):
            while len(self._children) >= self._plan.children:
                self._wait()
            if time.time() > self._plan.until_s:
                return
            tests = [session.items[each] for each in reach.of(function, self._plan.most_s)]
            if not tests:
                self._outcomes[module][name.rpartition(".")[2]] = "no tests"
                continue
            limit_s = reach.cpu_seconds(function)
            pid = _forked(partial(_passes, session, name, tests, limit_s))
            left_s = took_s * _TIMES + _SPARE_S
            self._children[pid] = _Child(module, name.rpartition(".")[2], left_s)
            if time.time() - noted_s > 5:
                self._note()
                noted_s = time.time()
        while self._children:
            self._wait()

    def _wait(self) -> None:
        """For a child that ends, or has had its time."""
        looked_s, pause_s = time.monotonic(), _FIRST_LOOK_S
        while True:
            passed_s = min(time.monotonic() - looked_s, _LONGEST_LOOK_S)
            looked_s = time.monotonic()
            for pid, child in list(self._children.items()):
                child.left_s -= passed_s
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended or child.left_s < 0:
                    outcome = "timeout"
                    if ended and os.WIFEXITED(status):
                        survived = os.WEXITSTATUS(status) == _SURVIVED
                        outcome = "survived" if survived else "killed"
                    elif not ended:
                        os.killpg(pid, signal.SIGKILL)
                        os.waitpid(pid, 0)
                    del self._children[pid]
                    self._outcomes[child.module][child.name] = outcome
                    return
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LATER_LOOK_S)

    def _note(self) -> None:
        """Keep what became of mutants so far."""
        for module, outcomes in self._outcomes.items():
            made = made_of(self._folder, module)
            made.outcomes.update(outcomes)
            keep(self._folder, module, made)

    def _reach(self, session: pytest.Session) -> Reach:
        """Run all tests in a child that tells which functions each of them reaches."""
        told = self._folder / "reach.json"
        told.unlink(missing_ok=True)
        pid = _forked(lambda: _watch(session, told))
        os.waitpid(pid, 0)
        if not told.is_file():
            raise pytest.UsageError("the tests did not come to their end")
        return Reach(**json.loads(told.read_text("utf-8")))


def _forked(does: Callable[[], bool]) -> int:
    """Start a child in a group of its own, which ends with 0 where it is true what it did."""
    pid = os.fork()
    if pid:
        return pid
    code = _FAILED
    try:
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code = _SURVIVED if does() else _FAILED
    finally:
        os._exit(code)


def _run(session: pytest.Session, items: Sequence[pytest.Item], at: int) -> bool:
    """Run one of these tests; whether it has passed."""
    item, following = items[at], items[at + 1] if at + 1 < len(items) else None
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return not session.testsfailed


def _passes(
    session: pytest.Session, mutant: str, items: Sequence[pytest.Item], limit_s: int
) -> bool:
    """Whether these tests let a mutant pass, which may compute for so many seconds."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    trampoline().set_mutant_under_test(mutant)
    return all(_run(session, items, at) for at in range(len(items)))


def _watch(session: pytest.Session, told: Path) -> bool:
    """Run all tests, and write which functions they reach."""
    reached: set[str] = set()
    # It is asked for each call of a function that has mutants.
    module = trampoline()
    module.record_trampoline_hit = lambda name, caller=None: reached.add(name)
    module.set_mutant_under_test("stats")
    tests: defaultdict[str, list[int]] = defaultdict(list)
    took_s, cpu_s, failed = list[float](), list[float](), list[str]()
    for at, item in enumerate(session.items):
        began_s, computed_s = time.perf_counter(), time.process_time()
        if not _run(session, session.items, at):
            failed.append(item.nodeid)
            session.testsfailed = 0
            reached.clear()
        took_s.append(time.perf_counter() - began_s)
        cpu_s.append(time.process_time() - computed_s)
        for function in reached:
            tests[function].append(at)
        reached.clear()
    reach = {"tests": tests, "took_s": took_s, "cpu_s": cpu_s, "failed": failed}
    told.write_text(json.dumps(reach), "utf-8")
    return True


def trampoline() -> Any:
    """mutmut's module that calls a function or one of its mutants."""
    from mutmut.mutation import trampoline as found  # type: ignore[import-not-found]

    return found
