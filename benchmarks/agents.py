"""What it costs that a worker's streams come through Faust's agents.

    benchmarks/agents.py [batches]

No broker is asked.  One thread hands batches over, as the thread that reads a topic does: `direct`
to itself through a queue, and `agent` through the agent of histories, waiting for each.  `ahead` is
the way of requests, which are not waited for.  A batch stands for as many events as a fetch brings
in a flood (500) or one by one (1); the events themselves cost nothing here.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from belfry.balance.assignment_map import MemberMetadata
from belfry.group.group import Group
from belfry.group.membership import MembershipApp, membership_app
from belfry.settings import Settings


def _direct(batches: int) -> list[float]:
    queue: SimpleQueue[int] = SimpleQueue()
    waited = []
    for number in range(batches):
        began = time.perf_counter()
        queue.put(number)
        queue.get()
        waited.append(time.perf_counter() - began)
    return waited


def _through(app: MembershipApp, batches: int) -> list[float]:
    stopping, waited = Event(), []
    for number in range(batches):
        began = time.perf_counter()
        app.carries.history.pass_through("belfry.lifecycle", 0, number, stopping)
        waited.append(time.perf_counter() - began)
    return waited


def _ahead(app: MembershipApp, batches: int) -> float:
    came: SimpleQueue[None] = SimpleQueue()
    began = time.perf_counter()
    for number in range(batches):
        app.carries.requests.hand_over(0, number, lambda: came.put(None))
        if number > 1:
            came.get()
    return time.perf_counter() - began


def _in_thread(work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> asyncio.Future[Any]:
    done: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        found = work()
        loop.call_soon_threadsafe(done.set_result, found)

    Thread(target=run, daemon=True).start()
    return done


def _tell(name: str, waited: list[float]) -> None:
    ordered, batches = sorted(waited), len(waited)
    p50, p99 = ordered[batches // 2] * 1e6, ordered[batches * 99 // 100] * 1e6
    rate = batches / sum(waited)
    print(
        f"{name:8} p50 {p50:7.1f} us   p99 {p99:8.1f} us   {rate:12,.0f} batches/s"
        f"   {rate * 500:14,.0f} events/s by 500"
    )


async def _main(batches: int) -> None:
    app = membership_app(Settings(), Group(MemberMetadata("bench")), 4)
    await app.carries.start()
    loop = asyncio.get_running_loop()
    for _ in range(3):
        _tell("direct", await _in_thread(lambda: _direct(batches), loop))
        _tell("agent", await _in_thread(lambda: _through(app, batches), loop))
        took = await _in_thread(lambda: _ahead(app, batches), loop)
        _tell("ahead", [took / batches] * batches)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000))
