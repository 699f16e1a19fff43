"""The agents of a worker: all batches that it reads go through them; Faust runs and counts them.

    requests         a reader's thread hands a batch over and reads on; the agent passes it on to
                     the owner of its partition
    all others       the thread that reads waits until the agent has passed its batch back to it

If the receiver does not take a batch, that is logged and counted, and the batch is passed on again
after a pause, before those behind it. An agent that takes no batches any more is started again: by
Faust's supervisor, and by belfry if the supervisor does not. Each time the agent begins with the
first batch that was not passed on, so no batch is lost and none comes twice. If that does not help
either, the worker is not `live`, and names the agent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import structlog

from belfry.group.batches import Batch, PassOn
from belfry.host import machine
from belfry.settings import Settings
from belfry.telemetry.limited import LimitedLogger

# If a batch waits for this long, its agent counts as gone.
STUCK_S: Final = 20.0
# Faust's supervisor looks every 5 s.
RESTART_S: Final = 7.0
AGAIN_S: Final = 0.2
# Seconds between two looks of a waiting thread whether it is asked to stop.
WAIT_S: Final = 0.2
# Seconds between two looks of the watch for an agent that is gone.
LOOK_S: Final = 1.0

log = structlog.get_logger(__name__)

# Called with the agent and an event: "failed" for a batch that was not taken, "restarted".
AgentTold = Callable[[str, str], None]


def to_nobody(_agent: str, _event: str) -> None:
    """The default: counts nothing."""


class BatchAgent:
    """One agent, and the way of a batch into it."""

    def __init__(self, app: Any, name: str, topic: str, help_text: str, told: AgentTold) -> None:
        self.name = name
        self._told = told
        self._app = app
        self._topic = topic
        # Batches that were handed over and not passed on yet; only the event loop touches them.
        self._waiting: deque[PassOn] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._moved_s = self._started_s = 0.0
        self._log = LimitedLogger(log, first=1)
        described = app.topic(topic, acks=False, value_type=bytes)

        async def run(batches: Any) -> None:
            await self._run(batches)

        # `faust agents` shows the function's docstring.
        run.__doc__ = help_text
        self.agent = app.agent(described, name=name)(run)

    def hand_over(
        self, partition: int, offset: int, pass_on: PassOn, topic: str | None = None
    ) -> None:
        """From any thread: let the agent pass on a batch that begins at an offset.

        `topic` is the topic that the batch was read from, if it is not the agent's own.
        """
        batch = Batch(self._app, topic or self._topic, partition, offset, pass_on)
        assert self._loop is not None, "nothing is read before the agents run"
        self._loop.call_soon_threadsafe(self._put, batch)

    def pass_through(
        self, topic: str, partition: int, offset: int, stopping: machine.Event
    ) -> bool:
        """From a thread: wait until its batch has come through; False if it is to stop before."""
        passed = machine.Event()
        self.hand_over(partition, offset, passed.set, topic)
        while not passed.wait(WAIT_S):
            if stopping.is_set():
                return False
        return True

    @property
    def stuck(self) -> bool:
        """Whether a batch has waited for so long that the agent must be gone."""
        stuck = self._waits_since(STUCK_S)
        if stuck:
            told = "an agent passes no batches on: this worker is not live, restart it"
            self._log.error(self.name, told, agent=self.name, since_s=STUCK_S)
        return stuck

    def _waits_since(self, seconds: float) -> bool:
        return bool(self._waiting) and machine.monotonic() - self._moved_s > seconds

    # -- on the event loop -----------------------------------------------------------------------

    async def start(self) -> None:
        """Start the agent, unless it runs."""
        self._loop = asyncio.get_running_loop()
        await self.agent.maybe_start()

    async def mend(self) -> None:
        """Start the agent again if a batch has waited for longer than Faust needs for a restart."""
        waits = self._waits_since(RESTART_S)
        if not waits or machine.monotonic() - self._started_s < RESTART_S:
            return
        self._started_s = machine.monotonic()
        self._told(self.name, "restarted")
        log.error("an agent passes no batches on: started again", agent=self.name)
        self.agent.cancel()
        await self.agent.stop()
        self._app.topics.forget(self._topic)
        self.agent.service_reset()
        await self.agent.start()

    def _put(self, batch: Batch) -> None:
        if not self._waiting:
            self._moved_s = machine.monotonic()
        self._waiting.append(batch.pass_on)
        self._app.topics.hand_over(batch, self._topic)

    async def _run(self, batches: Any) -> None:
        while self._waiting:
            await self._pass_on()
        async for pass_on in batches:
            # Batches that an agent before this one has left in the queue were passed on above.
            if self._waiting and self._waiting[0] is pass_on:
                await self._pass_on()

    async def _pass_on(self) -> None:
        """Pass on the first batch that waits; it stays the first until it is taken."""
        while True:
            try:
                self._waiting[0]()
                break
            except Exception as error:  # noqa: BLE001  # told, and tried again
                self._told(self.name, "failed")
                told = "a batch was not taken from an agent; it is passed on again"
                self._log.warning(f"{self.name} fails", told, agent=self.name, cause=repr(error))
            await asyncio.sleep(AGAIN_S)
        self._waiting.popleft()
        self._moved_s = machine.monotonic()


class WorkerAgents:
    """The agents of an application, one for each stream that it reads, by what they carry.

    They run before anything is read, and before the group is joined, since a worker that takes a
    partition over has to know its tenants' policies.
    """

    def __init__(self, app: Any, settings: Settings, told: AgentTold = to_nobody) -> None:
        """`told` is called for each restart, and for each batch that was not taken."""
        requests = settings.topic("schedules")

        def agent(name: str, topic: str, help_text: str) -> BatchAgent:
            return BatchAgent(app, f"belfry.{name}", topic, help_text, told)

        self.requests = agent(
            "requests", requests, "Passes each batch of requests on to the owner of its partition."
        )
        self.tenant_inputs = agent(
            "tenant-inputs", f"{requests}.*", "Carries the requests of tenants' own input topics."
        )
        self.policies = agent(
            "policies", settings.topic("tenants"), "Carries the policies of tenants."
        )
        self.deliveries = agent(
            "deliveries", settings.topic("deliveries"), "Carries the deliveries to targets."
        )
        self.history = agent(
            "history", settings.topic("lifecycle"), "Carries the outcomes that histories keep."
        )
        self._app = app
        self._watch: asyncio.Task[None] | None = None

    @property
    def all(self) -> tuple[BatchAgent, ...]:
        """All agents."""
        return self.requests, self.tenant_inputs, self.policies, self.deliveries, self.history

    @property
    def stuck(self) -> bool:
        """Whether one of them does not pass batches on any more."""
        return any(each.stuck for each in self.all)

    async def start(self) -> None:
        """Start all of them, and watch them for as long as the application runs."""
        for each in self.all:
            await each.start()
        self._watch = asyncio.create_task(self._look())

    def end_watch(self) -> None:
        """Stop starting them again."""
        if self._watch is not None:
            self._watch.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for each in self.all:
                try:
                    await each.mend()
                except Exception as error:  # noqa: BLE001  # the others are still looked at
                    log.warning("an agent was not started", agent=each.name, reason=repr(error))
