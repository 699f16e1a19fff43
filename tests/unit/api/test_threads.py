"""Work that blocks: so much of it and no more, and never in the loop's own threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from belfry.api.auth.principal import ANYBODY
from belfry.api.notes import NOTE, RequestNotes
from belfry.api.problems import Problem
from belfry.api.server.threads import Threads


async def test_what_work_returns_and_raises_is_handed_on() -> None:
    threads = Threads("dry runs", 1)
    name = await threads.run(lambda: threading.current_thread().name)
    assert name.startswith("belfry-dry-runs")
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    assert await threads.run(lambda: 7) == 7


async def test_a_place_is_free_again_where_the_pool_takes_no_work() -> None:
    threads = Threads("dry runs", 1)
    threads._pool.shutdown()
    for _ in range(2):
        # Not that all of them are under way.
        with pytest.raises(RuntimeError, match="after shutdown"):
            await threads.run(lambda: 7)


async def test_one_caller_leaves_a_thread_to_others() -> None:
    threads, goes_on = Threads("looks at topics", 3), threading.Event()

    def begun(caller: str) -> asyncio.Task[bool]:
        """A call of a caller, whose note the task takes along."""
        who = RequestNotes()
        who.comes_from(caller, "read")
        token = NOTE.set(who)
        try:
            return asyncio.create_task(threads.run(lambda: goes_on.wait(5)))
        finally:
            NOTE.reset(token)

    mine = [begun("shop") for _ in range(2)]
    with pytest.raises(Problem, match="2 looks at topics of shop are under way") as refused:
        await begun("shop")
    assert (refused.value.status, refused.value.headers) == (503, {"retry-after": "1"})
    other = begun("mail")
    await asyncio.sleep(0)
    with pytest.raises(Problem, match="3 looks at topics are under way"):
        await begun("third")
    goes_on.set()
    assert await asyncio.gather(*mine, other) == [True] * 3
    # Where the port is open to all, nobody is told from others.
    assert await asyncio.gather(*(begun(ANYBODY.name) for _ in range(3))) == [True] * 3


async def test_beyond_its_threads_work_is_refused_not_queued() -> None:
    threads, goes_on = Threads("dry runs", 2), threading.Event()
    waiting = [asyncio.create_task(threads.run(lambda: goes_on.wait(5))) for _ in range(2)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    with pytest.raises(Problem, match="2 dry runs are under way") as refused:
        await threads.run(lambda: True)
    assert (refused.value.status, refused.value.headers) == (503, {"retry-after": "1"})
    goes_on.set()
    assert await waiting[1] is True
    await asyncio.sleep(0.05)
    assert await threads.run(lambda: 7) == 7
