"""Pure tests side by side, then everything else one by one: one run, one report, no disturbance.

    worker 0   pure  pure  pure  pure ·│ broker  broker  broker  broker …
    worker 1   pure  pure  pure  pure  │ (gone)

Tests in `PURE` need no broker, measure nothing and share nothing, so the workers of pytest-xdist
divide them.  All others get the machine for themselves: they begin on the one worker that is left
when the others have ended, and run one after another.

`make test` loads this plugin; without it pytest runs all tests one after another.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

import pytest
from xdist.scheduler import LoadScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

# What is pure, the longest first.  Not the simulation: it uses all cores itself.
WHEEL: Final = "tests/acceptance/test_wheel.py"
PURE: Final = (
    WHEEL,
    "tests/property/",
    "tests/conformance/",
    "tests/compatibility/",
    "tests/architecture/",
    "tests/unit/",
)
# A worker begins a test when it has been told of the next one; few more, so that none has to wait.
AHEAD: Final = 4


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> PureFirst:
    """Take the place of what ``--dist`` names."""
    return PureFirst(config, log)


class PureFirst(LoadScheduling):  # type: ignore[misc]  # xdist ships no types
    """`pending` are tests for every worker, `apart` those that one worker gets at last."""

    collection: list[str] | None
    pending: list[int]

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self.apart: list[int] = []

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to give to a worker."""
        return bool(super().tests_finished) and not self.apart

    @property
    def has_pending(self) -> bool:
        """Whether there is a test that has not ended."""
        return bool(super().has_pending or self.apart)

    def schedule(self) -> None:
        """Divide the tests when all workers know them, and give each worker its first ones."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            collection = next(iter(self.node2collection.values()))
            self.pending, self.apart = divided(collection)
            self.collection = collection
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Give a worker what it may do next; it ends when that is nothing."""
        if node.shutting_down or self.collection is None:
            return
        if self.pending:
            # All tests of the wheel share what it is installed in, so they stay together.
            names = (self.collection[at] for at in self.pending)
            together = len(list(takewhile(lambda name: name.startswith(WHEEL), names)))
            self._send_tests(node, max(together, AHEAD - len(self.node2pending[node]), 0))
        elif not self._stays(node):
            node.shutdown()
        elif len(self.nodes) == 1:
            self.pending, self.apart = self.apart, []
            self._send_tests(node, len(self.pending))
            node.shutdown()

    def remove_node(self, node: WorkerController) -> str | None:
        """A worker ended or crashed; the one that stays may have waited for that."""
        crashed: str | None = super().remove_node(node)
        for other in self.nodes:
            self.check_schedule(other)
        return crashed

    def _stays(self, node: WorkerController) -> bool:
        return next(each for each in self.nodes if not each.shutting_down) is node


def divided(names: list[str]) -> tuple[list[int], list[int]]:
    """Places of the pure tests and of all others, by the names of the tests."""
    pure = [at for start in PURE for at, name in enumerate(names) if name.startswith(start)]
    return pure, [at for at, name in enumerate(names) if not name.startswith(PURE)]
