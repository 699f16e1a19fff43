"""Each worker of pytest begins to collect elsewhere, so that they compile the tests together.

    gw0   unit/api, audit … │ unit/engine …     │ unit/store …      compiles the first third
    gw1   unit/engine …     │ unit/store …      │ unit/api, audit … the second one
    gw2   unit/store …      │ unit/api, audit … │ unit/engine …     the last one

Every worker collects all tests, and Python compiles a file where it finds nothing compiled.  In a
fresh copy of the tree, workers that all began with the first file would each compile nearly all.
Here each finds what the others have compiled meanwhile.  Then the tests are put into their usual
order, which has to be the same for all workers.

Loaded by `addopts` in `pyproject.toml`; without pytest-xdist it does nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import pytest

# The folders below `tests`, and those below `tests/unit`, are the parts.
DEPTH: Final = 2
TESTS: Final = "test_*.py"
# By each part: its place in the usual order.
PLACES: Final = pytest.StashKey[dict[Path, int]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let a worker of pytest-xdist begin at a place of its own."""
    given: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    asked = [session.config.invocation_params.dir / each for each in session.config.args]
    # Single tests, and names of packages, are left as they are.
    if given is None or not all(each.exists() for each in asked):
        return
    parts = [*dict.fromkeys(part for each in asked for part in divided(each, DEPTH))]
    # One that takes the place of a crashed worker has a higher number.
    number, count = int(given["workerid"].removeprefix("gw")), given["workercount"]
    first = begin(parts, number % count / count)
    session.config.args[:] = map(str, (*parts[first:], *parts[:first]))
    session.config.stash[PLACES] = {part: at for at, part in enumerate(parts)}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests of all parts into their usual order."""
    if places := config.stash.get(PLACES, None):
        files = {item.path: place(item.path, places) for item in items}
        items.sort(key=lambda item: files[item.path])


def divided(path: Path, depth: int) -> list[Path]:
    """A folder's folders and files of tests, in pytest's order, down to so many levels."""
    if depth == 0 or not path.is_dir():
        return [path]
    inside = sorted(each for each in path.iterdir() if each.is_dir() or each.match(TESTS))
    return [
        part
        for each in inside
        if each.is_file() or any(each.rglob(TESTS))
        for part in divided(each, depth - 1)
    ]


def begin(parts: list[Path], share: float) -> int:
    """Place of the part at which such a share of all tests ends, by the sizes of their files."""
    sizes = [sum(file.stat().st_size for file in (part, *part.rglob(TESTS))) for part in parts]
    sums = [*accumulate(sizes)]
    return bisect_left(sums, sums[-1] * share)


def place(path: Path, places: dict[Path, int]) -> int:
    """Place of the part that a file belongs to."""
    return next(places[each] for each in (path, *path.parents) if each in places)
