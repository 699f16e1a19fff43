"""Workers of one run of the tests draw ports that differ."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.devstack import free_port
from tests.plugins.port_shares import pytest_configure, share

WHOLE = range(20_000, 32_000)


class Configured:
    """pytest's configuration, as a worker of a run has it."""

    def __init__(self, workerid: str, workercount: int) -> None:
        self.workerinput = {"workerid": workerid, "workercount": workercount}


def test_no_two_workers_share_a_port() -> None:
    shares = [set(share(WHOLE, number, 7)) for number in range(7)]
    assert sum(map(len, shares)) == len(set().union(*shares))
    assert min(map(len, shares)) == len(WHOLE) // 7
    assert set().union(*shares) <= set(WHOLE)


def test_a_worker_in_the_place_of_a_crashed_one_has_its_share() -> None:
    assert share(WHOLE, 5, 4) == share(WHOLE, 1, 4)


def test_a_worker_draws_from_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belfry.devstack.ports.ANY_PORT", WHOLE)
    config: Any = Configured("gw2", 4)
    pytest_configure(config)
    assert all(free_port() in share(WHOLE, 2, 4) for _ in range(20))
