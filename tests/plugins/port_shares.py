"""Each worker of pytest takes free ports from a share of its own.

    gw0   20 000 ──────── 25 999
    gw1   26 000 ──────── 31 999

A broker that a test kills and starts again wants its port back.  While it is gone, its port is
free, and another worker of the same run could draw it for a broker of its own.

Loaded by `addopts` in `pyproject.toml`; without pytest-xdist it does nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

from belfry.devstack import ports


def pytest_configure(config: pytest.Config) -> None:
    """Leave a worker of pytest-xdist its share."""
    given: dict[str, Any] | None = getattr(config, "workerinput", None)
    if given is not None:
        number = int(given["workerid"].removeprefix("gw"))
        ports.ANY_PORT = share(ports.ANY_PORT, number, given["workercount"])


def share(whole: range, number: int, count: int) -> range:
    """The part of a range of ports for one of `count` workers.

    A worker that takes the place of a crashed one has a higher number, and its share.
    """
    size = len(whole) // count
    first = number % count * size
    return whole[first : first + size]
