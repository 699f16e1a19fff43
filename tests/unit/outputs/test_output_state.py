"""Threads that look at topics and partitions that fire share a state, and never see half of it."""

from __future__ import annotations

from threading import Thread

import pytest

from belfry.outputs.output_state import FIRST_PAUSE_S, LONGEST_PAUSE_S, OutputState


def test_a_held_tenant_is_tried_again_with_a_growing_pause() -> None:
    state, now_s, pauses = OutputState(), 100.0, list[float]()
    for _ in range(8):
        state.keep_back("a", "fired.a", now_s)
        before = now_s
        while state.pauses("a", now_s):
            assert state.due(now_s) == []
            now_s += 0.5
        assert state.due(now_s) == ["a"]
        pauses.append(now_s - before)
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S
    state.let_go("a")
    state.keep_back("a", "fired.a", now_s)
    assert state.due(now_s + FIRST_PAUSE_S) == ["a"]


def test_who_waits_for_a_leader_is_tried_again_every_second() -> None:
    """A lone broker that was away for half a minute made its tenants wait for as long once more."""
    state = OutputState()
    for now_s in (100.0, 101.0, 102.0):
        state.keep_back("a", "fired.a", now_s, grows=False)
        assert state.pauses("a", now_s + FIRST_PAUSE_S / 2)
        assert state.due(now_s + FIRST_PAUSE_S) == ["a"]
    state.keep_back("a", "fired.a", 103.0)
    assert state.due(103.0 + FIRST_PAUSE_S) == ["a"]


def test_who_waits_for_a_topic_to_be_made_is_not_tried_again() -> None:
    state = OutputState()
    state.keep_back("a", "fired.a", None)
    assert state.due(float("inf")) == []


def test_a_tenant_that_is_kept_back_closes_its_topic() -> None:
    state = OutputState()
    state.let_go("a")
    state.open(["shared"])
    assert state.covers({"shared"}, {"a"})
    state.keep_back("b", "shared", 0.0)
    assert not state.covers({"shared"}, {"a"})
    assert state.closed({"shared"}) == {"shared"}
    assert state.fresh(["a", "b"]) == ["b"]


def test_no_thread_sees_a_set_that_changes_while_it_looks() -> None:
    """What is due was looked for in a dictionary that other threads changed meanwhile."""
    state, failures = OutputState(), list[Exception]()

    def change() -> None:
        for number in range(20_000):
            state.keep_back(str(number % 500), f"fired.{number % 500}", float(number))
            state.let_go(str((number + 250) % 500))

    def look() -> None:
        try:
            while changer.is_alive():
                state.due(1e9)
                state.opened()
                state.covers({"fired.1"}, {"1"})
        except RuntimeError as error:
            failures.append(error)

    changer = Thread(target=change)
    looker = Thread(target=look)
    changer.start()
    looker.start()
    changer.join()
    looker.join()
    assert not failures


@pytest.mark.parametrize("topics", [{"x"}, {"fired.a", "x"}])
def test_only_what_is_open_is_covered(topics: set[str]) -> None:
    state = OutputState()
    state.let_go("a")
    state.open(["fired.a"])
    assert not state.covers(topics, {"a"})
