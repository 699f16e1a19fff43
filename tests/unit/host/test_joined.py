"""Threads that have one question at once share an answer, and none gets one of before it asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pytest

from belfry.host.joined import Joined

SOON_S = 20.0


class Asked:
    """A question whose answers are numbers, and which is answered once it is let."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.numbers = count(1)
        self.fails: BaseException | None = None
        self.question = Joined(self.ask)

    def ask(self) -> int:
        number = next(self.numbers)
        self.begun.release()
        assert self.let.acquire(timeout=SOON_S)
        if self.fails is not None:
            raise self.fails
        return number

    def waits(self, threads: ThreadPoolExecutor, many: int) -> list[Future[int]]:
        """So many threads that wait for the next asking, the first of them to ask."""
        found = [threads.submit(self.question) for _ in range(many)]
        until(lambda: self.question._next is not None)
        return found


def until(found: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(int(SOON_S * 100)):
        if found():
            return
        waited.wait(0.01)
    raise AssertionError("it did not come")


def test_who_comes_while_it_is_asked_shares_the_next_answer() -> None:
    asked = Asked()
    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(asked.question)
        assert asked.begun.acquire(timeout=SOON_S)
        others = asked.waits(threads, 5)
        asked.let.release()
        assert first.result(SOON_S) == 1
        assert asked.begun.acquire(timeout=SOON_S)
        asked.let.release(5)
        answers = [each.result(SOON_S) for each in others]
    # One that had not come yet when the second began has another one.
    assert min(answers) == 2
    assert answers.count(2) >= 1
    assert asked.question._next is None


def test_a_failure_is_told_to_all_who_share_it() -> None:
    asked = Asked()
    asked.fails = ConnectionError("nobody tells")
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(asked.question)
        assert asked.begun.acquire(timeout=SOON_S)
        others = asked.waits(threads, 2)
        asked.let.release(4)
        for each in (first, *others):
            with pytest.raises(ConnectionError, match="nobody tells"):
                each.result(SOON_S)
    asked.fails = None
    asked.let.release()
    assert asked.question() >= 3


def test_where_who_asks_ends_by_something_else_the_others_ask_for_themselves() -> None:
    asked = Asked()
    asked.fails = KeyError("of one thread alone")
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(asked.question)
        assert asked.begun.acquire(timeout=SOON_S)
        others = asked.waits(threads, 3)
        asked.let.release()
        with pytest.raises(KeyError):
            first.result(SOON_S)
        assert asked.begun.acquire(timeout=SOON_S)
        asked.let.release()
        until(lambda: any(each.done() for each in others))
        asked.fails = None
        asked.let.release(3)
        ended = [each.exception(SOON_S) for each in others]
    # One thread has asked in vain; those that waited for it have asked once more.
    assert sorted(str(type(each)) for each in ended).count(str(KeyError)) == 1
    assert ended.count(None) == 2
