"""The rules of the engine's state machine, through the shell's clients and the simulated broker."""

from __future__ import annotations

from contextlib import ExitStack
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from belfry.tenants.effective import Level
from tests.model.log_driver import Cluster, LogDriver
from tests.property.test_engine_model import TENANTS, Partition
from tests.simulation.broker import T0, Broker
from tests.simulation.disk import Disk
from tests.simulation.machine import Machine, Weather
from tests.simulation.seams import replaced
from tests.simulation.stage import Stage, enter, leave

# It runs at the lowest priority in `make test`, beside tests that start brokers.
pytestmark = pytest.mark.timeout(1_800)


def simulated() -> Cluster:
    """A broker in memory, seen from a machine that has nothing else to do."""
    stage = Stage(Random(1))
    broker = Broker(stage)
    machine = Machine("m0", broker=broker, weather=Weather(Random(2)), disk=Disk(Random(3)))
    stage.current.host = machine
    enter(stage)

    def append(topic: str, record: Any, timestamp_ms: int) -> None:
        """As a user who stamps the records."""
        now_ms = stage.now_ms
        stage.now_ms = float(timestamp_ms - T0)
        broker.append(broker.log(topic, 0), record)
        stage.now_ms = now_ms

    def create(topics: list[str]) -> None:
        """Of one partition each."""
        for topic in topics:
            broker.create(topic, 1)

    return Cluster({}, machine, append, create, "")


class OnSimulator(Partition):
    """The same rules; every step is a transaction of the simulated broker."""

    @initialize(level=st.sampled_from(Level))
    def claim(self, level: Level) -> None:
        """Begin in a world of its own."""
        self.open = ExitStack()
        self.open.enter_context(replaced())
        cluster = simulated()
        self.open.callback(leave)
        self.driver = self.logs = LogDriver(cluster, level, TENANTS)
        self.driver.engine.claim(b'{"partitions": 1}')
        self.driver.end(self.now_ms)

    def teardown(self) -> None:
        """What the topics hold is what was committed."""
        try:
            super().teardown()
            self.logs.compare()
        finally:
            self.logs.close()
            self.open.close()


TestOnSimulator = OnSimulator.TestCase
TestOnSimulator.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
