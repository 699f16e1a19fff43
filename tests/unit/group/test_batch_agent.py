"""Batches on their way through Faust: none is lost, none comes twice, and a stuck one shows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from faust.types import TP

from belfry.balance.roster import MemberStanding
from belfry.group import batch_agent
from belfry.group.group import Group
from belfry.group.membership import MembershipApp, membership_app
from belfry.settings import Settings


def with_agents(play: Callable[[MembershipApp], Awaitable[None]]) -> None:
    """Play with an application whose agents run, and which has joined no group."""

    async def played() -> None:
        app = membership_app(Settings(), Group(MemberStanding("one")), 4)
        agent = app.requests.agent
        await agent.start()
        try:
            await asyncio.sleep(0.05)
            await play(app)
        finally:
            # As Faust's own end of all agents does.
            agent.cancel()
            await agent.stop()
            # The thread of the group's client, which was never started, has a loop all the same.
            consumer: Any = app.consumer
            consumer._thread.thread_loop.close()

    asyncio.run(played())


def test_batches_come_once_and_in_their_order_and_are_counted() -> None:
    came: list[int] = []

    async def play(app: MembershipApp) -> None:
        for number in range(50):
            pass_on = partial(came.append, number)
            await asyncio.to_thread(app.requests.hand_over, number % 3, number, pass_on)
        await asyncio.sleep(0.1)
        assert app.monitor.messages_received_by_topic[Settings().topic("schedules")] == 50

    with_agents(play)
    assert came == list(range(50))


def test_a_rebalance_neither_holds_batches_up_nor_drops_them() -> None:
    came: list[int] = []

    async def play(app: MembershipApp) -> None:
        app.consumer_generation_id = 1
        app.requests.hand_over(0, 0, lambda: came.append(0))
        # It lies in the queue now, and the agent has not had its turn.
        await asyncio.sleep(0)
        app.consumer.stop_flow()
        app.flow_control.suspend()
        app.flow_control.clear()
        # The group has given the partition to another one, and its generation is a later one.
        await app.topics.on_partitions_assigned({TP("another", 0)})
        app.consumer_generation_id = 2
        app.requests.hand_over(0, 1, lambda: came.append(1))
        app.flow_control.clear()
        await asyncio.sleep(0.1)
        app.flow_control.resume()
        app.requests.hand_over(0, 2, lambda: came.append(2))
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
        app.requests.hand_over(0, 0, lambda: came.append(0))
        app.requests.hand_over(0, 1, fails_once)
        app.requests.hand_over(0, 2, lambda: came.append(2))
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
        assert not app.stuck
        await app.requests.agent.stop()
        app.requests.hand_over(0, 0, lambda: came.append(0))
        await asyncio.sleep(0.3)
        assert app.stuck

    with_agents(play)
    assert came == []


def test_the_faust_command_lists_the_agents() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faust", "-A", "belfry.group.faust_app", "agents"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
        check=True,
    )
    assert "belfry.requests" in done.stdout
    assert "belfry.schedules" in done.stdout
