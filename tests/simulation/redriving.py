"""People who redrive: a range of refused requests, or of fired events, is sent again.

The shipped `Redrive` plays on a machine of its own, which is killed amid it as often as not.  When
all faults have ended each range is asked for once more, to its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from confluent_kafka import KafkaError

from belfry.client.errors import Unavailable
from belfry.client.redrive import Redrive
from belfry.client.refired import FiredSource, RefireRange
from belfry.client.refusals import EVERYBODY, RedriveRange, RefusedSource
from tests.simulation.broker import Broker
from tests.simulation.clients import SimProducer
from tests.simulation.disk import Disk
from tests.simulation.machine import Machine, Weather
from tests.simulation.readers import SimConsumer
from tests.simulation.stage import here

# The transactional id of all of them; a new one ends the one before.
OPERATOR: Final = "operator-redrives"
PREFIX: Final = "belfry."


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """A range (epoch ms, its end exclusive) of an output topic, or of refusals where it is none."""

    name: str
    topic: str | None
    from_ms: int
    until_ms: int

    def source(self) -> Any:
        """What `Redrive` takes."""
        if self.topic is None:
            return RefusedSource(PREFIX, RedriveRange(EVERYBODY, self.from_ms, self.until_ms))
        asked = RefireRange(self.from_ms, self.until_ms, name=self.name)
        return FiredSource(self.topic, asked)


class SimReach:
    """`Cluster` of the library, on the simulated broker."""

    def consumer(self, group: str, *, uncommitted: bool = False, **_: Any) -> SimConsumer:
        """A reader of one isolation."""
        level = "read_uncommitted" if uncommitted else "read_committed"
        return SimConsumer({"group.id": group, "isolation.level": level})

    def transactional(self, name: str) -> SimProducer:
        """A producer of transactions."""
        return SimProducer({"transactional.id": name, "transaction.timeout.ms": 4_000})

    def partitions(self, consumer: SimConsumer, topic: str) -> list[int]:
        """The partitions of a topic."""
        return sorted(consumer.list_topics(topic, 5.0).topics[topic].partitions)

    def unavailable(self, error: KafkaError, _topic: str = "") -> Unavailable:
        """An error, in the client's words."""
        return Unavailable(error.str())


class Redriving:
    """All redrives of one world."""

    def __init__(self, broker: Broker, weather: Weather, random: Random) -> None:
        self.asked: list[AskedAgain] = []
        self.machines: list[Machine] = []
        self._broker, self._weather, self._random = broker, weather, random

    def begin(self) -> None:
        """Ask for a range, and be killed amid it, perhaps."""
        asked = self._drawn(0.4)
        machine = self._spawn(asked)
        if self._random.random() < 0.5:
            lives_ms = self._random.random() * self._random.choice((60.0, 400.0, 3_000.0))
            self._broker.stage.later(lives_ms, lambda: self._kill(machine))

    def begin_together(self) -> None:
        """Ask for a range, and for the same once more as soon as the first one may be at work."""
        asked = self._drawn(0.0)
        self._spawn(asked)
        for _ in range(2):
            soon_ms = self._random.random() * 400.0
            self._broker.stage.later(soon_ms, lambda: self._again(asked))

    def _again(self, asked: AskedAgain) -> None:
        self._spawn(asked)

    def _drawn(self, same: float) -> AskedAgain:
        """A range, with this chance the last one once more."""
        now_ms, number = self._broker.now_ms(), len(self.asked)
        topics = [topic for topic in self._broker.topics if topic.startswith("belfry.fired.")]
        topic = self._random.choice([None, None, *topics])
        from_ms = now_ms - self._random.randint(500, 8_000)
        if self.asked and self._random.random() < same:
            # Somebody asks once more, perhaps while the first one works.
            return self.asked[-1]
        until_ms = now_ms - self._random.randint(0, 300)
        asked = AskedAgain(f"again-{number}", topic, from_ms, until_ms)
        self.asked.append(asked)
        return asked

    def finish(self) -> None:
        """Ask for each range once more, one after the other, to the end."""
        stage = self._broker.stage
        for machine in self.machines:
            self._kill(machine)
        for asked in self.asked:
            machine = self._spawn(asked)
            while machine.tasks:
                stage.sleep(20.0)

    def _spawn(self, asked: AskedAgain) -> Machine:
        number, disk = len(self.machines), Disk(Random(0))
        name = f"operator-{number}"
        machine = Machine(name, broker=self._broker, weather=self._weather, disk=disk)
        self.machines.append(machine)
        per_second = self._random.choice((3, 20))
        self._broker.stage.spawn(name, lambda: _redrive(asked, per_second), machine)
        return machine

    def _kill(self, machine: Machine) -> None:
        """As `Stage.kill`, and callable where nobody's turn it is."""
        machine.dead = True
        for task in machine.tasks:
            here().wake(task)


def _redrive(asked: AskedAgain, per_second: int) -> None:
    reach: Any = SimReach()
    try:
        Redrive(reach, (OPERATOR, "operators"), asked.source()).send(per_second=per_second)
    except Unavailable:
        # Who redrives reads it, and asks again.
        return
