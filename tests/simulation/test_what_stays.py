"""When a seed has ended, nothing of its world stays, so many seeds take no more memory than one."""

from __future__ import annotations

import gc
from random import Random
from weakref import ref

import pytest

from tests.simulation.broker import Broker
from tests.simulation.consumer_groups import coordinator
from tests.simulation.direct import nodes_of
from tests.simulation.run import simulate
from tests.simulation.scenario import scenarios
from tests.simulation.stage import Stage

GROUP = "belfry-deliverers"


def test_nodes_and_groups_last_as_long_as_their_broker() -> None:
    broker = Broker(Stage(Random(0)))
    assert nodes_of(broker) is nodes_of(broker)
    assert coordinator(broker, GROUP) is coordinator(broker, GROUP)
    gone = ref(broker)
    del broker
    gc.collect()
    assert gone() is None


def _brokers() -> int:
    gc.collect()
    return sum(isinstance(each, Broker) for each in gc.get_objects())


# A worker that is killed leaves its loops open, as a process does.
@pytest.mark.filterwarnings("ignore:unclosed event loop:ResourceWarning")
def test_a_world_is_gone_when_its_seed_is() -> None:
    (scenario,) = (each for each in scenarios() if each.name == "crashes")
    before = _brokers()
    for seed in range(3):
        assert not simulate(scenario, seed).problems
    assert _brokers() <= before
