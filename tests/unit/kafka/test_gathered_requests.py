"""What is asked of one broker at once goes together; no answer is older than its question."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

import pytest

from belfry.kafka.gathered_requests import GatheredRequests


class Brokers:
    """Answer each request once they are let; tell ten times what they are asked for."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, list[int]]] = []
        self.let: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))
        self.fails: Exception | None = None
        self.given_up = 0
        self.requests: GatheredRequests[str, int] = GatheredRequests(self.answer)

    async def answer(self, to: str, asked: list[int]) -> Mapping[int, int]:
        self.sent.append((to, asked))
        try:
            await self.let[to].acquire()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.fails is not None:
            raise self.fails
        return {each: 10 * each for each in asked}

    def ask(self, to: str, *asked: int) -> asyncio.Task[dict[int, int]]:
        return asyncio.create_task(self.requests.ask(to, asked))


async def passed() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_comes_up_while_one_is_under_way_goes_together() -> None:
    brokers = Brokers()
    first = brokers.ask("a", 1)
    await passed()
    # The same is asked for again: what is under way was asked before.
    others = [brokers.ask("a", 1), brokers.ask("a", 2, 3), brokers.ask("a", 3)]
    await passed()
    assert brokers.sent == [("a", [1])]
    brokers.let["a"].release()
    assert await first == {1: 10}
    await passed()
    assert brokers.sent == [("a", [1]), ("a", [1, 2, 3])]
    assert not any(each.done() for each in others)
    brokers.let["a"].release()
    assert await asyncio.gather(*others) == [{1: 10}, {2: 20, 3: 30}, {3: 30}]
    last = brokers.ask("a", 4)
    brokers.let["a"].release()
    assert await last == {4: 40}


async def test_nobody_waits_for_another_broker() -> None:
    brokers = Brokers()
    silent = brokers.ask("a", 1)
    brokers.let["b"].release()
    assert await brokers.ask("b", 2) == {2: 20}
    assert not silent.done()
    brokers.let["a"].release()
    assert await silent == {1: 10}


async def test_what_fails_fails_for_all_who_asked_and_for_nobody_else() -> None:
    brokers = Brokers()
    brokers.fails = ConnectionError("away")
    first = brokers.ask("a", 1)
    await passed()
    others = brokers.ask("a", 2), brokers.ask("a", 3)
    brokers.let["a"].release()
    with pytest.raises(ConnectionError, match="away"):
        await first
    brokers.let["a"].release()
    for each in others:
        with pytest.raises(ConnectionError, match="away"):
            await each
    brokers.fails = None
    brokers.let["a"].release()
    assert await brokers.ask("a", 2) == {2: 20}


async def test_who_asks_a_silent_broker_does_not_wait_for_it_twice() -> None:
    brokers = Brokers()
    brokers.requests = GatheredRequests(brokers.answer, share_failures=True)
    brokers.fails = ConnectionError("silent")
    asked = [brokers.ask("a", 1)]
    await passed()
    asked += [brokers.ask("a", 2), brokers.ask("a", 3)]
    other = brokers.ask("b", 4)
    await passed()
    brokers.let["a"].release()
    for each in asked:
        with pytest.raises(ConnectionError, match="silent"):
            await each
    assert brokers.sent == [("a", [1]), ("b", [4])]
    brokers.fails = None
    # Only those share it who have asked meanwhile.
    for name, late in (("b", other), ("a", brokers.ask("a", 5))):
        brokers.let[name].release()
        assert len(await late) == 1


async def test_a_request_goes_on_while_anybody_waits_for_it_and_no_longer() -> None:
    brokers = Brokers()
    silent = brokers.ask("a", 1)
    await passed()
    gone, stays = brokers.ask("a", 2), brokers.ask("a", 3)
    await passed()
    gone.cancel()
    silent.cancel()
    await passed()
    # Whoever waited for the first one does so no more, so the next one has its turn.
    assert (brokers.given_up, brokers.sent) == (1, [("a", [1]), ("a", [2, 3])])
    brokers.let["a"].release()
    assert await stays == {3: 30}
    assert silent.cancelled()
    assert gone.cancelled()


async def test_one_that_nobody_waits_for_is_not_sent() -> None:
    brokers = Brokers()
    first = brokers.ask("a", 1)
    await passed()
    gone = brokers.ask("a", 2)
    await passed()
    gone.cancel()
    await passed()
    late = brokers.ask("a", 3)
    await passed()
    assert brokers.sent == [("a", [1])], "one request is under way, though who waited is gone"
    for _ in range(2):
        brokers.let["a"].release()
    assert await first == {1: 10}
    assert await late == {3: 30}
    assert brokers.sent == [("a", [1]), ("a", [3])]
