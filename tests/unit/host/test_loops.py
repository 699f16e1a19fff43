"""Loops that share threads: each has its turns in time, whatever another one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Lock, current_thread
from time import monotonic

import pytest

from belfry.host import loop_threads, loops
from belfry.host.background import started
from belfry.host.loop_threads import LoopThreads
from belfry.host.loops import ALONE, Loop, Turns

LONG_S = 20.0


class Recorded:
    """A loop that counts its turns; `pause_s` is how long it pauses after each."""

    def __init__(self, threads: LoopThreads, pause_s: float = 3_600.0, name: str = "one") -> None:
        self.pause_s = pause_s
        self.turns = 0
        self.at: list[float] = []
        self.names: list[str] = []
        self.act: Callable[[], object] = bool
        self.loop = Loop(name, self._turns, threads)

    def _turns(self) -> Turns:
        while not self.loop.stopping.is_set():
            self.turns += 1
            self.at.append(monotonic())
            self.names.append(current_thread().name)
            self.act()
            yield self.pause_s

    def end(self) -> None:
        self.loop.stop()
        assert self.loop.join(LONG_S)


@pytest.fixture
def threads() -> Iterator[LoopThreads]:
    """Two threads for all loops; none of them is left behind."""
    before = {each.name for each in started()}
    yield LoopThreads(2)
    until(lambda: {each.name for each in started()} <= before)


def until(what: Callable[[], object]) -> None:
    """Wait for what other threads do."""
    pause, deadline = Event(), monotonic() + LONG_S
    while not what():
        assert monotonic() < deadline
        pause.wait(0.002)


def names() -> list[str]:
    """Threads that have turns."""
    return [each.name for each in started() if each.name.startswith("loops-")]


def test_a_loop_begins_alone_and_shares_threads_after_its_first_pause(threads: LoopThreads) -> None:
    one = Recorded(threads, 0.0)
    one.loop.start()
    until(lambda: one.turns > 20)
    one.end()
    assert one.names[0] == "belfry-one"
    assert all(name.startswith("belfry-loops-") for name in one.names[1:])


def test_many_loops_need_few_threads_and_each_is_in_time(threads: LoopThreads) -> None:
    many = [Recorded(threads, 0.05, f"loop {number}") for number in range(30)]
    for each in many:
        each.loop.start()
    until(lambda: all(each.turns > 5 for each in many))
    assert len(names()) <= 2
    for each in many:
        each.end()
        gaps = [after - before for before, after in zip(each.at, each.at[1:], strict=False)]
        assert all(gap > 0.04 for gap in gaps[1:-1])


def test_who_is_woken_has_a_turn_at_once_also_when_it_was_at_one(threads: LoopThreads) -> None:
    one = Recorded(threads)
    one.loop.start()
    until(lambda: one.turns == 1)
    one.loop.wake()
    until(lambda: one.turns == 2)
    amid, go_on = Event(), Event()

    def wait() -> None:
        amid.set()
        go_on.wait(LONG_S)

    one.act = wait
    one.loop.wake()
    assert amid.wait(LONG_S)
    one.loop.wake()
    one.act = bool
    go_on.set()
    until(lambda: one.turns == 4)
    one.end()


def test_no_loop_has_two_turns_at_once(threads: LoopThreads) -> None:
    at_once, held = list[bool](), Lock()

    def act() -> None:
        at_once.append(not held.acquire(blocking=False))
        Event().wait(0.001)
        held.release()

    one = Recorded(threads, 0.0005)
    one.act = act
    one.loop.start()
    while one.turns < 100:
        one.loop.wake()
    one.end()
    assert not any(at_once)


def test_a_turn_that_hangs_holds_nobody_up(
    threads: LoopThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a partition whose broker is away would stop those of the others."""
    monkeypatch.setattr(loop_threads, "HANGS_S", 0.05)
    go_on = Event()
    stuck = [Recorded(threads, name=f"stuck {number}") for number in range(5)]
    for each in stuck:
        each.loop.start()
    until(lambda: all(each.turns == 1 for each in stuck))
    for each in stuck:
        each.act = lambda: go_on.wait(LONG_S)
        each.loop.wake()
    well = Recorded(threads, 0.01, "well")
    well.loop.start()
    until(lambda: all(each.turns == 2 for each in stuck) and well.turns > 10)
    go_on.set()
    well.end()
    until(lambda: len(names()) <= 2)
    for each in stuck:
        each.end()


def test_what_blocks_has_a_thread_of_its_own_amid_the_turns(threads: LoopThreads) -> None:
    seen: list[str] = []

    def turns() -> Turns:
        yield 0.0
        yield ALONE
        seen.append(current_thread().name)
        yield 0.0
        seen.append(current_thread().name)

    loop = Loop("blocks", turns, threads)
    loop.start()
    assert loop.join(LONG_S)
    assert seen[0] == "belfry-blocks"
    assert seen[1].startswith("belfry-loops-")


def test_an_error_that_nobody_expected_is_told_and_the_loop_begins_anew(
    threads: LoopThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "AGAIN_S", 0.0)
    ends: list[str] = []

    def turns() -> Turns:
        yield 0.0
        ends.append("begun")
        if len(ends) < 3:
            raise ValueError("a bug")

    loop = Loop("odd", turns, threads)
    loop.last = lambda: ends.append("over")
    loop.start()
    assert loop.join(LONG_S)
    assert ends == ["begun"] * 3 + ["over"]
    assert not loop.alive


def test_who_has_not_begun_is_not_waited_for(threads: LoopThreads) -> None:
    loop = Recorded(threads).loop
    assert not loop.alive
    loop.wake()
    assert loop.join(0)


def test_loops_that_come_after_the_last_one_left_have_threads_again(threads: LoopThreads) -> None:
    for _ in range(2):
        one = Recorded(threads, 0.0)
        one.loop.start()
        until(lambda: one.turns > 3)  # noqa: B023  # it is called within the round
        one.end()
        until(lambda: not names())
