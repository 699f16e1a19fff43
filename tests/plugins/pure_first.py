"""Pure tests side by side, then all others one by one, beside what can wait: one run, one report.

    one worker    pure  pure  pure  pure │ broker  broker  broker  broker  broker …
    the other     pure  pure  pure  pure │ wheel  simulator  simulator │ (ends)

Tests in `PURE` need no broker, measure nothing and share nothing, so the workers of pytest-xdist
divide them.  Those in `BESIDE` keep a core busy for minutes and ask nothing of it: they run at the
lowest priority, in the time that the others spend waiting.  All others follow one another on one
worker, in their order: they start brokers and workers, and some of them measure.

`make test` loads this plugin; without it pytest runs all tests one after another.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from xdist.scheduler import LoadScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

# The longest ones first, so that both workers end at the same time.
PURE: Final = (
    "tests/property/",
    "tests/conformance/",
    "tests/compatibility/",
    "tests/architecture/",
    "tests/unit/",
)
BESIDE: Final = ("tests/acceptance/test_wheel.py", "tests/simulation/")
# A worker begins a test when it has been told of the next one; few more, so that none has to wait.
AHEAD: Final = 4
LOWEST_PRIORITY: Final = 19


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> PureFirst:
    """Take the place of what ``--dist`` names."""
    return PureFirst(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Step back behind the other worker for good, with all processes that the test starts."""
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1 and item.nodeid.startswith(BESIDE):
        os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)


class PureFirst(LoadScheduling):  # type: ignore[misc]  # xdist ships no types
    """`pending` are tests for every worker, `apart` and `beside` for one worker each."""

    collection: list[str] | None
    pending: list[int]

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self.apart: list[int] = []
        self.beside: list[int] = []
        self._own: dict[WorkerController, list[int]] = {}

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
            self.pending, self.beside, self.apart = divided(self.collection)
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Give a worker its next tests, never many: a run that has to stop stops soon."""
        if node.shutting_down:
            return
        if not self.pending and node not in self._own:
            self._own[node] = self._last_of(node)
        if source := self.pending or self._own[node]:
            given = source[: max(AHEAD - len(self.node2pending[node]), 0)]
            del source[: len(given)]
            self.node2pending[node] += given
            # One that died is heard of later, and what it was given comes back by `remove_node`.
            with suppress(OSError):
                node.send_runtest_some(given)
        else:
            node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker has ended or crashed; whoever takes its place gets what it has left."""
        self.apart += self._own.pop(node, [])
        crashed: str | None = super().remove_node(node)
        return crashed

    def _last_of(self, node: WorkerController) -> list[int]:
        """Who asks first gets those that stand apart; who is alone gets everything."""
        others = any(each not in self._own for each in self.nodes if each is not node)
        if others and self.apart:
            last, self.apart = self.apart, []
        else:
            last, self.apart, self.beside = self.beside + self.apart, [], []
        return last

    def _rest(self) -> int:
        return len(self.apart) + len(self.beside) + sum(map(len, self._own.values()))


def divided(names: list[str]) -> tuple[list[int], list[int], list[int]]:
    """Places of the pure tests, of those beside, and of all others, by the names of the tests."""
    others = [at for at, name in enumerate(names) if not name.startswith(PURE + BESIDE)]
    return _places(names, PURE), _places(names, BESIDE), others


def _places(names: list[str], kind: tuple[str, ...]) -> list[int]:
    return [at for start in kind for at, name in enumerate(names) if name.startswith(start)]
