"""Loops that share threads: each has its turns in time, whatever another one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from threading import Event, Lock, Thread, current_thread
from time import monotonic, sleep

import pytest

from belfry.host import loops
from belfry.host.background import started
from belfry.host.loop_threads import LoopThreads
from belfry.host.loops import ALONE, Loop, Turns

LONG_S = 20.0
IDLE_S = 0.2
# So often loops are woken for a quarter of a second.
HAMMERED = 20


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
    """Threads that end soon when nobody needs them; none of them is left behind."""
    before = {each.name for each in started()}
    yield LoopThreads(IDLE_S)
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


def test_many_loops_are_in_time_each(threads: LoopThreads) -> None:
    many = [Recorded(threads, 0.05, f"loop {number}") for number in range(30)]
    for each in many:
        each.loop.start()
    until(lambda: all(each.turns > 5 for each in many))
    for each in many:
        each.end()
        gaps = [after - before for before, after in zip(each.at, each.at[1:], strict=False)]
        assert all(gap > 0.04 for gap in gaps[1:-1])


def test_many_loops_that_pause_need_one_thread(threads: LoopThreads) -> None:
    many = [Recorded(threads, name=f"loop {number}") for number in range(30)]
    for each in many:
        each.loop.start()
    until(lambda: all(each.turns == 1 for each in many) and len(names()) <= 1)
    for each in many:
        each.loop.wake()
    until(lambda: all(each.turns == 2 for each in many))
    for each in many:
        each.end()


def test_threads_of_a_busy_moment_end_though_some_loop_is_always_due(threads: LoopThreads) -> None:
    """If each idle thread were poked in turn, none would ever be idle for long enough."""
    recorded = [Recorded(threads, name=f"loop {number}") for number in range(20)]
    busy, random = Event(), Random(7)

    def pause() -> None:
        for each in recorded[:8]:
            each.pause_s = random.uniform(0.02, 0.06)

    def wait_for_a_broker() -> None:
        sleep(0.003)
        pause()

    for each in recorded:
        each.loop.start()
    until(lambda: all(each.turns == 1 for each in recorded))
    for each in recorded:
        each.act = lambda: busy.wait(LONG_S)
        each.loop.wake()
    until(lambda: len(names()) >= len(recorded))
    for each in recorded:
        each.act = wait_for_a_broker
    pause()
    busy.set()
    until(lambda: len(names()) <= 10)
    for each in recorded:
        each.end()


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


def test_turns_that_hang_hold_nobody_up_however_many_they_are(threads: LoopThreads) -> None:
    """Else partitions whose broker is slow would stop those of the others."""
    go_on = Event()
    stuck = [Recorded(threads, name=f"stuck {number}") for number in range(40)]
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
    # Who is not needed any more ends, and the loops go on.
    until(lambda: len(names()) <= 3)
    before = well.turns
    until(lambda: well.turns > before + 3)
    well.end()
    for each in stuck:
        each.end()


def test_a_panic_ends_no_loop(threads: LoopThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    """What bindings of Rust raise is no Exception."""
    monkeypatch.setattr(loops, "AGAIN_S", 0.0)

    class Panic(BaseException):
        pass

    def panic() -> None:
        one.act = bool
        raise Panic

    one = Recorded(threads, 0.0)
    one.loop.start()
    until(lambda: one.turns > 2)
    one.act = panic
    before = one.turns
    until(lambda: one.turns > before + 3)
    assert one.loop.alive
    one.end()


def test_where_no_thread_can_begin_loops_go_on_in_those_that_are_there(
    threads: LoopThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [Recorded(threads, 0.01, f"loop {number}") for number in range(8)]
    for each in many:
        each.loop.start()
    until(lambda: all(each.turns > 1 for each in many))
    begin = Thread.start

    def refuse(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    late = Recorded(threads, name="late")
    with pytest.raises(RuntimeError):
        late.loop.start()
    assert not late.loop.alive
    before = [each.turns for each in many]
    until(lambda: all(each.turns > was + 5 for each, was in zip(many, before, strict=True)))
    monkeypatch.setattr(Thread, "start", begin)
    for each in many:
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


def test_short_pauses_amid_wakes_let_no_thread_wait_for_ever() -> None:
    """A wake may be another thread's at the very end of a pause.

    `SimpleQueue.get` of Python 3.11 waits for ever then, and all loops with it: with such a queue
    in place of the semaphore this test fails in two runs of three.
    """
    dice = Random(5)
    for _ in range(HAMMERED):
        threads = LoopThreads(IDLE_S)
        many = [Recorded(threads, name=f"loop-{number}") for number in range(3)]
        for each in many:
            each.act = lambda each=each: setattr(each, "pause_s", dice.random() / 1000)  # type: ignore[misc]
            each.loop.start()
        deadline = monotonic() + 0.25
        while monotonic() < deadline:
            dice.choice(many).loop.wake()
            sleep(dice.random() / 2000)
        # Nobody wakes them any more: each goes on by itself.
        seen = [each.turns for each in many]
        until(lambda: all(each.turns > before for each, before in zip(many, seen, strict=True)))  # noqa: B023
        for each in many:
            each.end()
