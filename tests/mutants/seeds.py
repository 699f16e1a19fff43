"""Seeds of the simulator as tests of one process, for mutants of what only a whole worker reaches.

`make mutants` names this file where a room has it.  `make test` plays more seeds than these
(`tests/simulation/test_seeds.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.simulation.run import simulate
from tests.simulation.scenario import scenarios

SEEDS: Final = 200


# A simulated process that is killed leaves its loops and coroutines where they are.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_seed_finds_nothing(seed: int) -> None:
    chosen = [each for each in scenarios() if not each.named]
    scenario = chosen[seed % len(chosen)]
    direct = replace(scenario, settings=scenario.settings | {"transaction_writer": "direct"})
    assert not simulate(direct, seed).problems
