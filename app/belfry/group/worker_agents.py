"""The five agents of a worker: one for each stream that it reads.

They run before anything is read, and before the group is joined, since a worker that takes a
partition over has to know its tenants' policies.  A watch starts one again that is gone.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog

from belfry.group.batch_agent import AgentTold, BatchAgent, to_nobody
from belfry.settings import Settings

LOOK_S: Final = 1.0

log = structlog.get_logger(__name__)


class WorkerAgents:
    """The agents of an application, by what they carry."""

    def __init__(self, app: Any, settings: Settings, told: AgentTold = to_nobody) -> None:
        """`told` hears of each start again, and of each batch that was not taken."""
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
            "history", settings.topic("lifecycle"), "Carries what histories are kept of."
        )
        self._app = app
        self._watch: asyncio.Task[None] | None = None

    @property
    def all(self) -> tuple[BatchAgent, ...]:
        """All agents."""
        return self.requests, self.tenant_inputs, self.policies, self.deliveries, self.history

    @property
    def stuck(self) -> bool:
        """Whether one of them passes no batches on any more."""
        return any(each.stuck for each in self.all)

    async def start(self) -> None:
        """Start all of them, and watch them for as long as the application runs."""
        for each in self.all:
            await each.start()
        self._watch = asyncio.create_task(self._look())

    def end_watch(self) -> None:
        """Start none of them again."""
        if self._watch is not None:
            self._watch.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for each in self.all:
                try:
                    await each.mend()
                except Exception as error:  # noqa: BLE001  # the others are looked at all the same
                    log.warning("an agent was not started", agent=each.name, reason=repr(error))
