"""Pure tests side by side, then those with brokers file by file, then what measures: one report.

    one worker    pure  pure  pure │ file  file  file  file  file │ measured  measured (one by one)
    another       pure  pure  pure │ file  file  file  file │ (ends)
    a third       pure  pure  pure │ file  file  file  file │ (ends)
    a fourth      pure  pure  pure │ wheel  simulator  its seeds │ file  file │ properties

Tests in `PURE` need no broker, measure nothing and share nothing, so the workers of pytest-xdist
divide them.  Those in `TOGETHER` read the same files, so one worker has them all, and reads each
file once.  All others but the last start brokers and workers, and wait more than they work.  The
tests of one file share those and follow one another on one worker; whichever worker has ended a
file takes the next one, those in `LONGEST` before all others.  Tests in `ALONE` measure: no other
test with a broker runs beside them.

Those in `BESIDE` and what follows it keep a core busy for minutes and ask nothing of it: they run
at the lowest priority, in the time that others spend waiting.  Of `MANY` workers one is for them
alone, as soon as no pure tests are left; of fewer ones, whoever finds no file any more.  Properties
are among them: no clock judges them, and at the begin all others would wait for them.

Where a process may raise its priority again (`may_return`: root, or a limit that allows it), that
one takes files afterwards, as the others do.  Properties wait for whoever finds no file any more,
and so fill the minutes in which one worker measures and all others have ended.

`make test` loads this plugin; without it pytest runs all tests one after another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from xdist.scheduler import LoadScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

# The longest ones first, so that both workers end at the same time.
PURE: Final = (
    "tests/protocol/",
    "tests/conformance/",
    "tests/compatibility/",
    "tests/architecture/",
    "tests/unit/",
    "tests/attack/",
    "tests/soak/",
    "tests/benchmarks/test_results.py",
    "tests/benchmarks/test_workload.py",
)
TOGETHER: Final = ("tests/architecture/",)
# Those that take a minute or so, the longest first; whoever begins last is waited for by all.
LONGEST: Final = (
    "tests/acceptance/test_readme_commands.py",
    "tests/integration/test_promise_mirror_grown.py",
    "tests/integration/test_promise_grown.py",
    "tests/chaos/",
    "tests/integration/test_promise_bulk.py",
    "tests/integration/test_promise_day_files.py",
    "tests/acceptance/test_clients.py",
    "tests/integration/test_promise_expired_ids.py",
    "tests/integration/test_promise_webhooks.py",
    "tests/integration/test_promise_calibrated.py",
    "tests/acceptance/test_how_to_pages.py",
    "tests/integration/test_promise_mirror.py",
    "tests/acceptance/test_console.py",
    "tests/integration/test_promise_versions.py",
    "tests/integration/test_promise_metering.py",
    "tests/integration/test_promise_claimed_payloads.py",
    "tests/integration/test_promise_swept_payloads.py",
    "tests/integration/test_promise_backup.py",
    "tests/integration/test_promise_identity.py",
    "tests/acceptance/test_connect.py",
    "tests/integration/test_promise_unpacking.py",
    "tests/integration/test_promise_checkpoint_peers.py",
    "tests/integration/test_promise_signed_changelog.py",
    "tests/integration/test_promise_audit.py",
    "tests/integration/test_promise_tenants_apart.py",
    "tests/integration/test_promise_grown_releases.py",
    "tests/acceptance/test_http_fuzz.py",
    "tests/integration/test_promise_key_groups.py",
    "tests/integration/test_promise_linearizable.py",
    "tests/integration/test_promise_standbys.py",
    "tests/integration/test_promise_replayed.py",
    "tests/integration/test_promise_checkpoints.py",
    "tests/integration/test_devstack_kafka.py",
    "tests/integration/test_promise_canary.py",
    "tests/acceptance/test_survives_kill.py",
    "tests/integration/test_promise_engine_rules.py",
    "tests/integration/test_promise_many_workers.py",
    "tests/integration/test_promise_verified.py",
)
ALONE: Final = (
    "tests/benchmarks/test_raw_is_honest.py",
    "tests/acceptance/test_failover.py",
    "tests/acceptance/test_hostile_tenants.py",
    "tests/integration/test_promise_never_early.py",
)
# Three groups, which may run beside each other.
BESIDE: Final = (
    "tests/acceptance/test_wheel.py",
    "tests/simulation/test_plants.py",
    "tests/simulation/test_engine_rules.py",
)
BESIDE_TOO: Final = ("tests/simulation/test_seeds.py",)
PROPERTIES: Final = ("tests/property/",)
# A worker begins a test when it has been told of the next one.
LEAST: Final = 2
# Pure tests are short: few more, so that none has to wait.
AHEAD: Final = 4
MANY: Final = 4
LOWEST_PRIORITY: Final = 19
USUAL_PRIORITY: Final = os.getpriority(os.PRIO_PROCESS, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> PureFirst:
    """Take the place of what ``--dist`` names."""
    return PureFirst(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Step back behind the other workers, with all processes that the test starts, or return."""
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        behind = item.nodeid.startswith(BESIDE + BESIDE_TOO + PROPERTIES)
        wanted = LOWEST_PRIORITY if behind else USUAL_PRIORITY
        if os.getpriority(os.PRIO_PROCESS, 0) != wanted:
            os.setpriority(os.PRIO_PROCESS, 0, wanted)


def may_return() -> bool:
    """Whether a process may raise its priority after it has lowered it; another one tries."""
    tries = f"import os; os.nice({LOWEST_PRIORITY}); os.setpriority(os.PRIO_PROCESS, 0, {{}})"
    command = tries.format(USUAL_PRIORITY)
    return not subprocess.run(
        [sys.executable, "-I", "-S", "-c", command], stderr=subprocess.DEVNULL, check=False
    ).returncode


class PureFirst(LoadScheduling):  # type: ignore[misc]  # xdist ships no types
    """`pending` are for every worker, each of `files` for the next that is free, then `alone`.

    Before all of them, `together` are for the first one.
    """

    collection: list[str] | None
    pending: list[int]

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self.together: list[int] = []
        self.files: list[list[int]] = []
        self.beside: list[list[int]] = []
        # Those of them that wait until there is no file any more.
        self.last: list[list[int]] = []
        self.alone: list[int] = []
        self._own: dict[WorkerController, list[int]] = {}
        self._many = self._returns = False
        # Those that have stepped back for others.
        self._behind: set[WorkerController] = set()
        # Those that asked for a file when there was none any more.
        self._late: set[WorkerController] = set()

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to give to a worker."""
        return bool(super().tests_finished) and not self._rest()

    @property
    def has_pending(self) -> bool:
        """Whether there is a test that has not ended."""
        return bool(super().has_pending or self._rest())

    def schedule(self) -> None:
        """Divide the tests when all workers know them, and give each worker its first ones."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            self.collection = next(iter(self.node2collection.values()))
            pure, self.files, self.beside, self.alone = divided(self.collection)
            self.together = [at for at in pure if self.collection[at].startswith(TOGETHER)]
            self.pending = [at for at in pure if not self.collection[at].startswith(TOGETHER)]
            self._many = len(self.nodes) >= MANY
            self._returns = self._many and bool(self.beside) and may_return()
            if self._returns:
                names = self.collection
                self.last = [each for each in self.beside if names[each[0]].startswith(PROPERTIES)]
                self.beside = [each for each in self.beside if each not in self.last]
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Give a worker its next tests, never many: a run that has to stop stops soon."""
        if node.shutting_down:
            return
        known = self.node2pending[node]
        given: list[int] = []
        while len(known) + len(given) < (AHEAD if self.pending else LEAST):
            if not (source := self._source(node)):
                break
            given.append(source.pop(0))
        if given:
            known += given
            # One that died is heard of later, and what it was given comes back by `remove_node`.
            with suppress(OSError):
                node.send_runtest_some(given)
        elif not self._source(node):
            node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker has ended or crashed; whoever takes its place gets what it has left."""
        if left := self._own.pop(node, []):
            (self.beside if node in self._behind else self.files).insert(0, left)
        self._behind.discard(node)
        crashed: str | None = super().remove_node(node)
        return crashed

    def _source(self, node: WorkerController) -> list[int]:
        """What is left of the worker's own, then pure tests, then the next file."""
        if not self._own.get(node):
            if self.together:
                self._own[node], self.together = self.together, []
            elif not self.pending:
                self._own[node] = self._following(node)
        return self._own.get(node) or self.pending

    def _following(self, node: WorkerController) -> list[int]:
        """The next file, or what comes beside all files or behind them.

        Who ends the last file asks last, and gets those that have to be alone.
        """
        if self.beside and (node in self._behind or (self._many and not self._behind)):
            return self._step_back(node, self.beside)
        if node in self._behind and not self._returns:
            return []
        self._behind.discard(node)
        if self.files:
            return self.files.pop(0)
        self._late.add(node)
        if self._late.issuperset(set(self.nodes) - self._behind) and self.alone:
            alone, self.alone = self.alone, []
            return alone
        if self.beside:
            return self._step_back(node, self.beside)
        # One at a time, for they may run beside what measures.
        return self._step_back(node, self.last) if self.last and not self._behind else []

    def _step_back(self, node: WorkerController, groups: list[list[int]]) -> list[int]:
        self._behind.add(node)
        return groups.pop(0)

    def _rest(self) -> int:
        groups = (*self.files, *self.beside, *self.last, *self._own.values())
        return sum(map(len, (self.together, *groups, self.alone)))


def divided(names: list[str]) -> tuple[list[int], list[list[int]], list[list[int]], list[int]]:
    """Places of the pure tests, of others by file, of the groups beside, and of those alone."""
    files: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        if not name.startswith(PURE + BESIDE + BESIDE_TOO + PROPERTIES + ALONE):
            files.setdefault(name.partition("::")[0], []).append(at)
    in_turn = [files[each] for each in sorted(files, key=_rank)]
    beside = [_places(names, kind) for kind in (BESIDE, BESIDE_TOO, PROPERTIES)]
    return _places(names, PURE), in_turn, [each for each in beside if each], _places(names, ALONE)


def _rank(file: str) -> int:
    return next((at for at, start in enumerate(LONGEST) if file.startswith(start)), len(LONGEST))


def _places(names: list[str], kind: tuple[str, ...]) -> list[int]:
    return [at for start in kind for at, name in enumerate(names) if name.startswith(start)]
