"""The agents of a worker: what it reads goes through them; Faust runs, restarts and counts them.

An agent passes each batch on to its owner.  One that crashes is started again by Faust's
supervisor, and begins with the batch that the last one took and did not pass on: so none is lost,
and none comes twice.  Where an agent does not pass batches on any more, only a new process helps:
the worker is not `live`, and says which agent it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Any, Final

import structlog

from belfry.group.batches import Batch, PassOn
from belfry.telemetry.limited import LimitedLogger

REQUESTS: Final = "belfry.requests"
# A batch that waits for so long waits for an agent that is gone.
STUCK_S: Final = 20.0

log = structlog.get_logger(__name__)


class BatchAgent:
    """One agent, and the way of a batch into it."""

    def __init__(self, app: Any, name: str, topic: str, help_text: str) -> None:
        self.name = name
        self._app = app
        self._topic = topic
        # What the running actor took and has not passed on; the next one begins with it.
        self._taken: deque[PassOn] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handed_over = self._passed = 0
        self._moved_s = 0.0
        self._log = LimitedLogger(log, first=1)
        described = app.topic(topic, acks=False, value_type=bytes)

        async def run(batches: Any) -> None:
            await self._run(batches)

        # `faust agents` shows the function's docstring.
        run.__doc__ = help_text
        self.agent = app.agent(described, name=name)(run)

    def hand_over(self, partition: int, offset: int, pass_on: PassOn) -> None:
        """From a reader's thread: let the agent pass a batch on, which begins at an offset."""
        batch = Batch(self._app, self._topic, partition, offset, pass_on)
        assert self._loop is not None, "the group is joined once the agents run"
        self._loop.call_soon_threadsafe(self._put, batch)

    @property
    def stuck(self) -> bool:
        """Whether a batch has waited for so long that the agent must be gone."""
        waits = self._handed_over > self._passed
        stuck = waits and monotonic() - self._moved_s > STUCK_S
        if stuck:
            told = "an agent passes no batches on: this worker is not live, restart it"
            self._log.error(self.name, told, agent=self.name, since_s=STUCK_S)
        return stuck

    # -- on the event loop -----------------------------------------------------------------------

    def _put(self, batch: Batch) -> None:
        if self._handed_over == self._passed:
            self._moved_s = monotonic()
        self._handed_over += 1
        self._app.topics.hand_over(batch)

    async def _run(self, batches: Any) -> None:
        self._loop = asyncio.get_running_loop()
        while self._taken:
            self._pass_on()
        async for pass_on in batches:
            self._taken.append(pass_on)
            self._pass_on()

    def _pass_on(self) -> None:
        """Pass the first of what was taken on; it stays the first where that fails."""
        self._taken[0]()
        self._taken.popleft()
        self._passed += 1
        self._moved_s = monotonic()
