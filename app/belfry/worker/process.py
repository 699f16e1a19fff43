"""One worker: set-up, membership, partitions, HTTP, and an orderly end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Any, Final

import structlog

from belfry.wire.batch import SourceBatch
from belfry.worker.group import Group
from belfry.worker.heartbeats import Heartbeats
from belfry.worker.membership import membership_app
from belfry.worker.owners import Owners
from belfry.worker.ownership_kit import Kit
from belfry.worker.runner import PartitionRunner
from belfry.worker.self_check import SelfCheck

LEAVE_S: Final = 3.0

log = structlog.get_logger(__name__)


class WorkerProcess:
    """Runs until it is asked to stop; `run` returns the exit code."""

    def __init__(self, kit: Kit, group: Group) -> None:
        self._kit = kit
        self._group = group
        self._app, self._batches = membership_app(kit.settings, group, kit.partitions, take_in)
        settings = kit.settings
        self._heartbeats = Heartbeats(
            group.worker,
            kit.outlets.changelog,
            settings.kafka_properties(),
            f"{settings.cluster.app_id}.heartbeats",
        )
        self.owners = Owners(kit, group, self._heartbeats)
        self._ending = threading.Event()
        self.self_check = SelfCheck(kit, self.owners, group, self._ending)
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        kit.hand_over = self._hand_over
        kit.refused = self._refused
        kit.leaves = group.leaves
        self._refusal = ""
        on_assigned: Any = self._assigned
        self._app.on_partitions_assigned.connect(on_assigned)

    def live(self) -> bool:
        """Whether the process can still do its work."""
        return not self._app.crashed and self.self_check.live()

    async def run(self) -> int:
        """Join the group, own what it assigns, and leave when asked to."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.asked.set)
        self._heartbeats.start()
        self.owners.start()
        self._group.keeps_heartbeat = lambda: self._heartbeats.works
        await asyncio.to_thread(self._heartbeats.begun)
        self._app.topics.add(self._app.topic(self._kit.outlets.schedules, acks=False))
        await self._app.start()
        self.self_check.start()
        await self._until_asked()
        self._ending.set()
        log.info("stopping")
        if not (self._app.crashed or self._refusal):
            await self._hand_on()
        await asyncio.to_thread(self.owners.stop)
        await asyncio.to_thread(self._heartbeats.stop)
        code = 1 if self._app.crashed or self._refusal else 0
        if not await self._left_group():
            log.warning("ended without the group's answer")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        return code

    async def _left_group(self) -> bool:
        """Tell the group; False if it does not answer in time.

        It waits for a member that died before until that one's session is over, and its client
        cannot be stopped before it has answered.  Nothing is open here by then.
        """
        leaving = asyncio.create_task(self._app.stop())
        done, _ = await asyncio.wait({leaving}, timeout=LEAVE_S)
        return bool(done)

    async def _hand_on(self) -> None:
        """Give the partitions to others while they still fire here: a successor fences each.

        A static member keeps its seat while it restarts, so its standbys bridge that alone.
        """
        if self._group.alone or self._group.static:
            return
        self._group.leave()
        await asyncio.to_thread(
            self.owners.await_idle, self._kit.settings.hand_over_limit_ms / 1000
        )

    async def _until_asked(self) -> None:
        asked = asyncio.create_task(self.asked.wait())
        ended = asyncio.create_task(self._app.wait_until_stopped())
        _, pending = await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()

    async def _assigned(self, _app: Any, assigned: set[Any], **_: Any) -> None:
        partitions = sorted(
            tp.partition for tp in assigned if tp.topic == self._kit.outlets.schedules
        )
        log.info("assigned", partitions=partitions)
        self.owners.assign(partitions)

    def _refused(self, reason: str) -> None:
        """From a partition's thread: this worker does not fit the state, so it must not run."""
        if not self._refusal:
            self._refusal = reason
            log.critical("refused to start", reason=reason)
        self._loop.call_soon_threadsafe(self.asked.set)

    def _hand_over(self, runner: PartitionRunner, term: int, batch: SourceBatch) -> None:
        """From a reader's thread to the agent; waits while the agent's channel is full."""
        handover: Any = (runner, term, batch)
        asyncio.run_coroutine_threadsafe(self._batches.put(handover), self._loop).result()


async def take_in(batches: Any) -> None:
    """The agent: each batch goes to the owner of its partition."""
    async for runner, term, batch in batches:
        runner.deliver(term, batch)
