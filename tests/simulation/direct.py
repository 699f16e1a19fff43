"""What stands in for the direct writer's connections, and for the event loop that it shares.

The writer, its batches, its waits and its repeats run as shipped: coroutines of asyncio, on a loop
whose time is the stage's.  A partition's task carries its own loop, so others' turns come between.
A request has the fates of `Weather.end_fate`: it is answered; it is lost; it arrives and the answer
is lost; or it arrives late.  Some of the lost ones are noticed at once, others by a deadline alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from belfry.kafka.moved_leaders import MovedLeaders
from belfry.transactions.batches import Where
from belfry.transactions.brokers import Lost
from belfry.transactions.produce import ProduceAnswer
from belfry.transactions.requests import EndTxn, EndTxnWithEpoch
from tests.simulation.acknowledging import acknowledged
from tests.simulation.broker import Broker
from tests.simulation.machine import machine
from tests.simulation.requests import Nodes
from tests.simulation.stage import here

T = TypeVar("T")
SILENCE_S: Final = 20.0
METADATA_S: Final = 5.0
NOTICED_S: Final = 0.01


def nodes_of(broker: Broker) -> Nodes:
    """The nodes of a simulated broker, which all its clients see."""
    found: Nodes | None = broker.parts.get(Nodes)
    if found is None:
        found = broker.parts[Nodes] = Nodes(broker)
    return found


class _Selector:
    """Where an event loop waits for its next timer: nothing else ever wakes it."""

    def select(self, timeout_s: float | None) -> list[Any]:
        assert timeout_s is not None, "a coroutine waits for nothing that could come"
        if timeout_s > 0:
            here().sleep(timeout_s * 1000)
        return []


class StageLoop(asyncio.BaseEventLoop):
    """An event loop of asyncio in the stage's time."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector()
        self._clock_resolution = 1e-6
        # A process that is killed leaves its coroutines where they are.
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        """Seconds of the stage."""
        return here().now_ms / 1000

    def _process_events(self, _events: Any) -> None:
        """There are none."""


class SimClientLoop:
    """`ClientLoop`: runs a coroutine in the task that asks for it."""

    def __init__(self, _name: str) -> None:
        """It needs no thread."""

    def enter(self) -> None:
        """Use the loop."""

    def leave(self) -> None:
        """Use it no more."""

    def run(self, work: Coroutine[Any, Any, T], _most_s: float) -> T:
        """Run it; its own deadlines end it."""
        loop = StageLoop()
        try:
            here().check()
            return loop.run_until_complete(work)
        finally:
            work.close()
            loop.close()


class SimCluster:
    """`Cluster`: the simulated broker as three nodes; who leads what is as old as the last look."""

    def __init__(self, _properties: Mapping[str, Any]) -> None:
        self._machine = machine()
        self._broker = self._machine.broker
        self._nodes = nodes_of(self._broker)
        self._leaders: dict[Where, int] = {}
        self._moved = MovedLeaders()

    async def start(self) -> None:
        """Connect."""
        if not await self._travel():
            await asyncio.sleep(METADATA_S)
            raise ConnectionError("no answer")

    async def close(self) -> None:
        """Nothing is kept open."""

    async def gives_own_epochs(self) -> bool:
        """Whether each transaction gets an epoch of its own, as the seed has chosen."""
        await self.start()
        return self._broker.own_epochs

    async def know(self, topics: Iterable[str], _within_s: float = 1.0) -> None:
        """Learn of topics."""
        await self.refresh(topics)

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        """Ask anew for the leaders of these topics, or of all; those without an answer stay."""
        asked = set(topics)
        if not await self._travel():
            await asyncio.sleep(METADATA_S)
            return
        for where in self._leaders:
            if not asked or where[0] in asked:
                self._leaders[where] = self._nodes.leader_of(where)

    def partitions_of(self, topic: str) -> int:
        """How many partitions a topic has."""
        return len(self._broker.topics.get(topic, ()))

    def leader_of(self, where: Where) -> int | None:
        """The node that led a partition at the last look."""
        if where[0] not in self._broker.topics:
            return None
        if (told := self._moved.leader_of(where, _now())) is not None:
            return told
        return self._leaders.setdefault(where, self._nodes.leader_of(where))

    def tell_leader(self, where: Where, leader: int, epoch: int) -> bool:
        """Note what a node said that leads a partition no more; whether that is news."""
        if not self._moved.tell(where, leader, epoch, _now()):
            return False
        self._leaders[where] = leader
        return True

    def is_told(self, where: Where) -> bool:
        """Whether such a word still counts."""
        return self._moved.leader_of(where, _now()) is not None

    def doubt(self, where: Where, node: int) -> None:
        """Forget it."""
        self._moved.doubt(where, node)

    async def coordinator_of(
        self, name: str, informed: int | None = None
    ) -> int | tuple[None, int]:
        """The node that coordinates a transactional id, as the one says that is asked."""
        if not await self._travel():
            await asyncio.sleep(METADATA_S)
            raise Lost("no answer", sent=False)
        return self._nodes.coordinator_said(name, informed)

    async def send(self, node: int, request: Any) -> Any:
        """The answer to a request; raises Lost."""
        machine, ends = self._machine, isinstance(request, EndTxn | EndTxnWithEpoch)
        fate = machine.weather.end_fate()
        if ends and machine.weather.strikes(machine.weather.late_end_alone):
            fate = "late"
        if fate == "late":
            stage = here()
            machine.struck.append("late EndTxn" if ends else "late request")
            late_ms = stage.random.random() * machine.weather.latest_ms
            stage.later(late_ms, lambda: self._arrive(node, request))
        if fate in ("late", "lost") or not await self._travel():
            return await self._lose()
        answer = self._arrive(node, request)
        if isinstance(answer, ProduceAnswer):
            await acknowledged(self._broker, request, answer)
        if ends:
            machine.reach("S6")
        if fate == "unheard" or not await self._travel():
            machine.struck.append("lost reply")
            return await self._lose()
        return answer

    def _arrive(self, node: int, request: Any) -> Any:
        return self._nodes.answer(self._machine, node, request)

    async def _travel(self) -> bool:
        """One way to a node; False where the network is cut."""
        here().check()
        await asyncio.sleep(self._machine.weather.latency_ms() / 1000)
        return not self._machine.cut

    async def _lose(self) -> Any:
        """A broken connection is noticed soon, and silence by a deadline of the asker."""
        if self._machine.weather.random.random() < 0.5:
            await asyncio.sleep(SILENCE_S)
        await asyncio.sleep(NOTICED_S)
        raise Lost("cut")


def _now() -> float:
    return here().now_ms / 1000
