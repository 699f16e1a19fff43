"""Lanes share a worker's lookups: whose turn it is, whose wait counts, and who is told what."""

from __future__ import annotations

import time
from functools import partial

from belfry.engine.claims import STRANGER
from belfry.registry.answers import Missing, RegistryUnreachable
from belfry.registry.lanes import (
    AGAIN_S,
    AT_ONCE,
    DOUBTS,
    REMEMBERED_S,
    STRANGERS_AT_ONCE,
)
from belfry.registry.lookups import Lookups
from belfry.schedules.rejections import Rejection
from belfry.wire.readings import reading_of
from tests.unit.registry.test_lookups import ACME, OTHER, OURS, Registry, lookups, soon


def test_a_lane_of_strangers_leaves_lookups_to_the_others() -> None:
    registry, now = Registry(OURS), [100.0]
    lanes = [STRANGER + bytes([number]) for number in range(4)]
    with lookups(registry, now) as found:
        for number in range(20):
            found.ask(lanes[0], 100 + number)
        soon(lambda: registry.at_once == AT_ONCE)
        time.sleep(0.05)
        assert registry.at_once == AT_ONCE
        found.ask(lanes[1], 7)
        soon(lambda: 7 in registry.asked)


def test_who_was_served_longest_ago_comes_next() -> None:
    registry, now = Registry(OURS), [100.0]
    busy = STRANGERS_AT_ONCE // AT_ONCE
    lanes = [STRANGER + bytes([number]) for number in range(busy + 4)]
    with lookups(registry, now) as found:
        for at, lane in enumerate(lanes[:busy]):
            for number in range(20):
                found.ask(lane, 100 * (at + 1) + number)
        soon(lambda: registry.at_once == STRANGERS_AT_ONCE)
        for number, lane in enumerate(lanes[busy:]):
            found.ask(lane, number)
        registry.may.set()
        soon(lambda: all(found.answer(lane, each) for each, lane in enumerate(lanes[busy:])))
        assert set(registry.asked[STRANGERS_AT_ONCE : STRANGERS_AT_ONCE + 4]) == {0, 1, 2, 3}


def test_time_in_which_others_come_first_does_not_count() -> None:
    registry, now = Registry(OURS), [100.0]
    waits, busy = STRANGER + b"x", [STRANGER + bytes([n]) for n in range(STRANGERS_AT_ONCE)]
    with lookups(registry, now, wait_s=60.0) as found:
        for number, lane in enumerate(busy):
            found.ask(lane, number)
        soon(lambda: registry.at_once == STRANGERS_AT_ONCE)
        assert found.ask(waits, 7)
        now[0] += 30.0
        assert found.waited_s(busy[0], 0) == 30.0
        assert found.waited_s(waits, 7) == 0.0
        assert found.waited_s(waits, 8) > 1e9, "what nobody asks for is not waited for"
        now[0] += 30.0
        assert found.waited_s(waits, 7) == 60.0, "nothing has ended: that is the registry's doing"


def test_time_in_which_its_own_come_first_does() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now, wait_s=60.0) as found:
        for number in range(AT_ONCE + 1):
            found.ask(ACME, number)
        soon(lambda: registry.at_once == AT_ONCE)
        now[0] += 30.0
        assert found.waited_s(ACME, AT_ONCE) == 30.0


def test_what_a_lane_waits_for_counts_while_its_own_doubt_holds_it_up() -> None:
    registry, now = Registry(RegistryUnreachable("refused")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        for number in range(DOUBTS):
            found.ask(ACME, number)
        soon(lambda: found._lanes.by_name[ACME].doubted and not registry.at_once)
        registry.may.clear()
        now[0] += 0.25
        found.ask(ACME, 7)
        now[0] += 0.5
        assert found.waited_s(ACME, 7) == 0.5
        now[0] += 0.25
        assert found.waited_s(ACME, 7) == AGAIN_S - 0.25
        soon(lambda: registry.at_once)
        now[0] += 1.0
        assert found.waited_s(ACME, 7) == AGAIN_S + 0.75


def test_that_there_is_none_counts_for_who_has_asked() -> None:
    """Who registers a schema need not wait for what others have asked before."""
    registry, now = Registry(Missing("the registry knows no schema 7")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        found.ask(ACME, 7)
        soon(lambda: found.answer(ACME, 7))
        registry.answer = OURS
        assert found.answer(OTHER, 7) is None
        found.ask(OTHER, 7)
        soon(lambda: found.answer(OTHER, 7))
        assert found.answer(ACME, 7) == reading_of(OURS), "a schema counts for everybody"


def test_that_there_was_none_before_it_asked_is_not_told_to_another_stranger() -> None:
    """Who asks for each id in advance has "none" remembered for itself alone."""
    registry, now = Registry(Missing("the registry knows no schema 7")), [100.0]
    registry.may.set()
    loud, quiet = (STRANGER + bytes([number]) for number in range(2))
    with lookups(registry, now) as found:
        found.ask(loud, 7)
        soon(lambda: found.answer(loud, 7))
        assert found.answer(quiet, 7) is None
        registry.answer = OURS
        found.ask(quiet, 7)
        soon(lambda: found.answer(quiet, 7))
        assert found.answer(quiet, 7) == reading_of(OURS)


def test_that_there_is_none_is_told_to_those_who_had_asked_when_the_lookup_went_out() -> None:
    now = [100.0]
    early, first, late = (STRANGER + bytes([number]) for number in range(3))
    asked = Lookups(Registry(OURS), 10.0, clock=lambda: now[0])
    for lane in (first, early):
        asked.ask(lane, 7)
    lookup = asked._lanes.next(now[0])
    assert lookup is not None
    asked._lanes.goes_out(lookup, now[0])
    now[0] += 0.1
    asked.ask(late, 7)
    none = Rejection("unknown_schema_id", "There is none.")
    asked._heard(lookup, none, for_ever=False)
    assert [asked.answer(lane, 7) for lane in (first, early, late)] == [none, none, None]


def test_strangers_who_ask_for_the_same_share_the_answer_that_there_is_none() -> None:
    """If they had asked when the lookup went out."""
    registry, now = Registry(Missing("the registry knows no schema 7")), [100.0]
    lanes = [STRANGER + bytes([number]) for number in range(100)]
    asked = Lookups(registry, 10.0, clock=lambda: now[0])
    for lane in lanes:
        asked.ask(lane, 7)
    registry.may.set()
    asked.start()
    soon(lambda: all(asked.answer(lane, 7) for lane in lanes))
    asked.close()
    assert len(registry.asked) <= STRANGERS_AT_ONCE


def test_lanes_and_accounts_that_want_nothing_are_forgotten() -> None:
    """What is left of an hour in which there were thousands of them."""
    registry, now = Registry(OURS), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        for number in range(1_000):
            lane = b"tenant-%d" % number
            found.ask(lane, number)
            soon(partial(found.answer, lane, number))
            now[0] += 1.0
        assert len(found._lanes.by_name) <= REMEMBERED_S + 2
        assert len(found._lanes.served) <= REMEMBERED_S + 2
