"""One worker process: it joins the group, owns partitions, and ends in an orderly way.

assigned by the group ──► Owners ──► a runner for each partition
a reader's batch ──► Faust's agent `belfry.requests` ──► the runner of its partition
SIGTERM, a refusal, Faust's end ──► hand the partitions on ──► leave the group
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog

from belfry.firing.clock_guard import ClockGuard
from belfry.group.batch_agent import BatchAgent
from belfry.group.group import Group, Surroundings
from belfry.group.heartbeats import Heartbeats
from belfry.group.membership import MembershipApp
from belfry.host.memory import SpareMemory
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.supervisor import Owners
from belfry.partitions.surroundings import TakesBatches
from belfry.process.closing import end_now
from belfry.process.self_check import SelfCheck
from belfry.wire.batch import SourceBatch

# Seconds that the group has to answer a member that leaves.
LEAVE_S: Final = 3.0
HandOver = Callable[[TakesBatches, int, SourceBatch], None]

log = structlog.get_logger(__name__)


class StopRequest:
    """Whether this process is to end, and why it must not run; made in its event loop.

    `asked` is set once and never cleared. An empty `refusal` means an orderly end, with exit code
    0.
    """

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.refusal = ""
        self._loop = asyncio.get_running_loop()

    def refused(self, reason: str) -> None:
        """From any thread: this worker does not fit the state, so it must not run."""
        if not self.refusal:
            self.refusal = reason
            log.critical("refused to start", reason=reason)
        self._loop.call_soon_threadsafe(self.asked.set)

    def on_signals(self) -> None:
        """Let SIGTERM and SIGINT ask this process to end; a second signal changes nothing."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.asked.set)


def requests_through(agent: BatchAgent) -> HandOver:
    """The way of a batch from its reader's thread to its owner: through the agent of requests.

    `term` names the term of ownership that the batch was read for: an owner of a later term drops
    it.
    """

    def hand_over(runner: TakesBatches, term: int, batch: SourceBatch) -> None:
        agent.hand_over(runner.partition, batch.start, partial(runner.deliver, term, batch))

    return hand_over


class WorkerProcess:
    """Runs until it is asked to stop; `run` returns the exit code.

    It lives on Faust's event loop. Blocking calls run in a thread (`asyncio.to_thread`), since
    heartbeats of the group go through the loop.
    """

    def __init__(
        self,
        app: MembershipApp,
        group: Group,
        opener: PartitionOpener,
        guard: ClockGuard,
        owners: Owners,
        stop: StopRequest,
    ) -> None:
        settings = opener.settings
        self._app = app
        self._group = group
        self._owners = owners
        self._stop = stop
        self._input = opener.output_topics.schedules
        self._hand_over_limit_s = settings.hand_over_limit_ms / 1000
        self.self_check = SelfCheck(opener, guard, owners, group, SpareMemory().look)
        on_assigned: Any = self._assigned
        app.on_partitions_assigned.connect(on_assigned)

    def live(self) -> bool:
        """Whether the process can still do its work."""
        return not self._app.crashed and not self._app.carries.stuck and self.self_check.live()

    async def run(self, heartbeats: Heartbeats) -> int:
        """Join the group, own the assigned partitions, and leave when asked to.

            12:00:00.000  SIGTERM
            12:00:00.010  the group is asked for no partitions; they still fire here
            12:00:00.400  successors have fenced all of them: nothing is owned (3 s at most)
            12:00:00.450  owners, standbys and heartbeats have ended
            12:00:00.500  the group has answered that the member left; exit code 0

        The exit code is 1 if Faust has crashed, or the worker was refused. If the group does not
        answer in time, the process ends by `end_now`: nothing is open by then.
        """
        heartbeats.start(self._owners.well)
        self._group.connect(
            Surroundings(
                rejoin=self._app.rejoin,
                look_again=self._app.look_again,
                holdings=self._owners.holdings,
                keeps_heartbeat=lambda: heartbeats.works,
            )
        )
        self._owners.start()
        await asyncio.to_thread(heartbeats.begun)
        await self._app.start()
        self.self_check.start()
        await self._until_asked()
        self.self_check.stop()
        log.info("stopping")
        self._app.carries.end_watch()
        failed = self._app.crashed or bool(self._stop.refusal)
        if not failed:
            await self._hand_on()
        await asyncio.to_thread(self._owners.stop)
        await asyncio.to_thread(heartbeats.stop)
        code = 1 if self._app.crashed or self._stop.refusal else 0
        if not await self._left_group():
            log.warning("ended without the group's answer")
            end_now(code)
        return code

    async def _left_group(self) -> bool:
        """Leave the group; False if it does not answer in time.

        The group may wait until the session of a dead member is over, and its client cannot be
        stopped before the group has answered. Nothing is open here by then.
        """
        leaving = asyncio.create_task(self._app.stop())
        done, _ = await asyncio.wait({leaving}, timeout=LEAVE_S)
        return bool(done)

    async def _hand_on(self) -> None:
        """Give the partitions to others while they still fire here: a successor fences each.

        A static member keeps its place in the group while it restarts, so it hands nothing on: its
        standbys take over meanwhile.
        """
        if self._group.alone or self._group.static:
            return
        self._group.leave()
        await asyncio.to_thread(self._owners.await_idle, self._hand_over_limit_s)

    async def _until_asked(self) -> None:
        """Wait for a request to stop, or for Faust's end."""
        asked = asyncio.create_task(self._stop.asked.wait())
        ended = asyncio.create_task(self._app.wait_until_stopped())
        _, pending = await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()

    async def _assigned(self, _app: Any, assigned: set[Any], **_: Any) -> None:
        """Faust's signal: the group has assigned these partitions, in place of those before."""
        partitions = sorted(tp.partition for tp in assigned if tp.topic == self._input)
        log.info("assigned", partitions=partitions)
        self._owners.assign(partitions)
