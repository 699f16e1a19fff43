"""Batches on their way through Faust: none is lost, none comes twice, and a stuck one shows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from threading import Event
from typing import Any

import pytest
from faust.types import TP

from belfry.balance.assignment_map import MemberMetadata
from belfry.group import batch_agent
from belfry.group.batch_agent import AgentTold, to_nobody
from belfry.group.group import Group
from belfry.group.membership import MembershipApp, membership_app
from belfry.placement.partition_count import PartitionCount
from belfry.settings import Settings


def with_agents(
    play: Callable[[MembershipApp], Awaitable[None]], told: AgentTold = to_nobody
) -> None:
    """Play with an application whose agents run, and which has joined no group."""

    async def played() -> None:
        app = membership_app(Settings(), Group(MemberMetadata("one")), PartitionCount(4), told)
        await app.carries.start()
        try:
            await asyncio.sleep(0.05)
            await play(app)
        finally:
            app.carries.end_watch()
            for each in app.carries.all:
                # As Faust's own end of all agents does.
                each.agent.cancel()
                await each.agent.stop()
            # The thread of the group's client, which was never started, has a loop all the same.
            consumer: Any = app.consumer
            consumer._thread.thread_loop.close()

    asyncio.run(played())


def test_batches_come_once_and_in_their_order_and_are_counted() -> None:
    came: list[int] = []

    async def play(app: MembershipApp) -> None:
        for number in range(50):
            pass_on = partial(came.append, number)
            await asyncio.to_thread(app.carries.requests.hand_over, number % 3, number, pass_on)
        await asyncio.sleep(0.1)
        assert app.monitor.messages_received_by_topic[Settings().topic("schedules")] == 50

    with_agents(play)
    assert came == list(range(50))


def test_a_rebalance_neither_holds_batches_up_nor_drops_them() -> None:
    came: list[int] = []

    async def play(app: MembershipApp) -> None:
        app.consumer_generation_id = 1
        app.carries.requests.hand_over(0, 0, lambda: came.append(0))
        # It lies in the queue now, and the agent has not had its turn.
        await asyncio.sleep(0)
        app.consumer.stop_flow()
        app.flow_control.suspend()
        app.flow_control.clear()
        # The group has given the partition to another one, and its generation is a later one.
        await app.topics.on_partitions_assigned({TP("another", 0)})
        app.consumer_generation_id = 2
        app.carries.requests.hand_over(0, 1, lambda: came.append(1))
        app.flow_control.clear()
        await asyncio.sleep(0.1)
        app.flow_control.resume()
        app.carries.requests.hand_over(0, 2, lambda: came.append(2))
        await asyncio.sleep(0.1)

    with_agents(play)
    assert came == [0, 1, 2]


def test_an_agent_that_crashes_begins_again_with_the_batch_that_it_had() -> None:
    came: list[int] = []
    failures = iter((True,))

    def fails_once() -> None:
        if next(failures, False):
            raise ValueError("broken")
        came.append(1)

    async def play(app: MembershipApp) -> None:
        app.carries.requests.hand_over(0, 0, lambda: came.append(0))
        app.carries.requests.hand_over(0, 1, fails_once)
        app.carries.requests.hand_over(0, 2, lambda: came.append(2))
        for _ in range(100):
            await asyncio.sleep(0.05)
            if len(came) == 3:
                break

    with_agents(play)
    assert came == [0, 1, 2]


def test_without_its_agent_nothing_is_taken_in_and_the_worker_is_not_live(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came: list[int] = []
    monkeypatch.setattr(batch_agent, "STUCK_S", 0.1)

    async def play(app: MembershipApp) -> None:
        assert not app.carries.stuck
        await app.carries.requests.agent.stop()
        app.carries.requests.hand_over(0, 0, lambda: came.append(0))
        await asyncio.sleep(0.3)
        assert app.carries.stuck

    with_agents(play)
    assert came == []


def test_a_batch_that_is_not_taken_twice_is_passed_on_a_third_time() -> None:
    came: list[int] = []
    told: list[tuple[str, str]] = []
    failures = iter((True, True))

    def fails_twice() -> None:
        if next(failures, False):
            raise ValueError("broken")
        came.append(1)

    async def play(app: MembershipApp) -> None:
        app.carries.requests.hand_over(0, 0, lambda: came.append(0))
        app.carries.requests.hand_over(0, 1, fails_twice)
        app.carries.requests.hand_over(0, 2, lambda: came.append(2))
        await until(lambda: len(came) == 3)

    with_agents(play, lambda *event: told.append(event))
    assert told == [("belfry.requests", "failed")] * 2
    assert came == [0, 1, 2]


def test_an_agent_that_is_gone_is_started_again_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came: list[int] = []
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(batch_agent, "RESTART_S", 0.2)
    monkeypatch.setattr(batch_agent, "LOOK_S", 0.1)

    async def play(app: MembershipApp) -> None:
        for number in range(2):
            # Twice, since one that was mended once must not be less safe.
            await app.carries.history.agent.stop()
            for offset in range(3):
                pass_on = partial(came.append, 3 * number + offset)
                app.carries.history.hand_over(0, offset, pass_on)
            await until(lambda: len(came) == 3 * number + 3)  # noqa: B023  # awaited here
        assert not app.carries.stuck

    with_agents(play, lambda *event: told.append(event))
    assert told == [("belfry.history", "restarted")] * 2
    assert came == list(range(6))


def test_what_a_thread_reads_comes_back_to_it_through_its_agent_alone() -> None:
    stopping = Event()

    async def play(app: MembershipApp) -> None:
        inputs = app.carries.tenant_inputs
        read = "belfry.schedules.acme"
        assert await asyncio.to_thread(inputs.pass_through, read, 0, 7, stopping)
        assert app.monitor.messages_received_by_topic[read] == 1
        await inputs.agent.stop()
        waits = asyncio.create_task(asyncio.to_thread(inputs.pass_through, read, 0, 8, stopping))
        await asyncio.sleep(0.3)
        assert not waits.done()
        stopping.set()
        assert not await waits

    with_agents(play)


def test_the_group_shares_requests_alone() -> None:
    async def play(app: MembershipApp) -> None:
        topics: Any = app.topics
        assert list(await topics._update_indices()) == [Settings().topic("schedules")]

    with_agents(play)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, for a few seconds."""
    for _ in range(100):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come to hold")


def test_the_faust_command_lists_the_agents() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faust", "-A", "belfry.group.faust_app", "agents"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
        check=True,
    )
    for name in ("requests", "tenant-inputs", "policies", "deliveries", "history"):
        assert f"belfry.{name}" in done.stdout
    assert "belfry.schedules" in done.stdout
