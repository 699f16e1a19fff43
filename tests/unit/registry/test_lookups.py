"""Lookups: few at a time, one at a time where the registry does not answer, each until it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from belfry.engine.claims import STRANGER
from belfry.registry.answers import Missing, RegistryUnreachable, WriterSchema
from belfry.registry.client import AskedAnew
from belfry.registry.client import Registry as SchemaRegistry
from belfry.registry.lanes import (
    AGAIN_S,
    AT_ONCE,
    DOUBTS,
    MOST_WANTED,
    STRANGERS_AT_ONCE,
    THREADS,
    WANTED_S,
    AskingLane,
)
from belfry.registry.lookups import Lookups
from belfry.registry.schema_memory import MISSING_S
from belfry.schedules.rejections import Rejection
from belfry.wire import catalogue
from belfry.wire.readings import reading_of

OURS = catalogue.schema("ScheduleRequest")
GUID = bytes(range(16))
ACME, OTHER = b"acme", b"other"


class Registry:
    """Gives its answer when it may; counts how many ask at once."""

    def __init__(self, answer: WriterSchema) -> None:
        self.answer = answer
        self.bug: Exception | None = None
        self.asked: list[int | bytes] = []
        self.at_once = self.most_at_once = 0
        self.may = Event()
        self._lock = Lock()
        # Ids that are answered though others may not be.
        self.prompt: set[int | bytes] = set()

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema of an id."""
        return self._answer(schema_id)

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema of a GUID."""
        return self._answer(guid)

    def _answer(self, reference: int | bytes) -> WriterSchema:
        with self._lock:
            self.asked.append(reference)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        if reference not in self.prompt:
            self.may.wait()
        with self._lock:
            self.at_once -= 1
        if self.bug is not None:
            raise self.bug
        return self.answer


@contextmanager
def lookups(
    registry: Any, now: list[float], wait_s: float = 10.0, known: Any = None
) -> Iterator[Lookups]:
    """Lookups by a clock that stands."""
    found = Lookups(registry, wait_s, known, lambda: now[0]).start()
    try:
        yield found
    finally:
        registry.may.set()
        found.close()


def soon(true: Callable[[], object]) -> None:
    """Wait until this holds; the test's time-out is its limit."""
    while not true():
        time.sleep(0.001)


def test_an_answer_is_kept_and_asked_for_once() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now) as found:
        assert found.answer(ACME, 7) is None
        for _ in range(3):
            assert found.ask(ACME, 7)
            assert found.ask(ACME, GUID)
        registry.may.set()
        soon(lambda: found.answer(ACME, 7) and found.answer(ACME, GUID))
        assert found.answer(ACME, 7) == reading_of(OURS)
        now[0] += 1e6
        assert found.answer(ACME, 7)
    assert sorted(map(str, registry.asked)) == sorted(map(str, [7, GUID]))


def test_what_is_known_beforehand_is_not_asked_for() -> None:
    with lookups(Registry(OURS), [0.0], known={5: reading_of(OURS)}) as found:
        assert found.answer(ACME, 5) == reading_of(OURS)


def test_that_there_is_none_counts_for_a_while() -> None:
    registry, now = Registry(Missing("the registry knows no schema 7")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        found.ask(ACME, 7)
        soon(lambda: found.answer(ACME, 7))
        refused = found.answer(ACME, 7)
        assert isinstance(refused, Rejection)
        assert refused.code == "unknown_schema_id"
        assert "knows no schema 7" in refused.reason
        now[0] += MISSING_S
        assert found.answer(ACME, 7) is None


@pytest.mark.parametrize("answer", [OURS, Missing("there is none")], ids=["found", "missing"])
def test_what_was_answered_since_the_caller_looked_is_not_asked_for_again(
    answer: WriterSchema,
) -> None:
    """A caller looks, finds nothing, and asks; the answer may come between the two."""
    registry, now = Registry(answer), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        found.ask(ACME, 7)
        soon(lambda: found.answer(ACME, 7))
        assert found.ask(ACME, 7)
        found.ask(ACME, 8)
        soon(lambda: found.answer(ACME, 8))
    assert registry.asked == [7, 8]


def test_few_are_asked_for_at_once_and_only_so_many_are_wanted() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now) as found:
        room = [found.ask(ACME, number) for number in range(MOST_WANTED + 1)]
        assert room == [True] * MOST_WANTED + [False]
        assert found.ask(OTHER, MOST_WANTED + 1)
        soon(lambda: registry.at_once == AT_ONCE + 1)
        time.sleep(0.05)
        assert registry.most_at_once == AT_ONCE + 1


def test_what_nobody_waits_for_any_more_is_not_asked_for() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now) as found:
        for number in range(AT_ONCE + 2):
            found.ask(ACME, number)
        soon(lambda: registry.at_once == AT_ONCE)
        now[0] += WANTED_S + 1
        found.ask(ACME, AT_ONCE)
        registry.may.set()
        soon(lambda: found.answer(ACME, AT_ONCE))
        assert AT_ONCE + 1 not in registry.asked


def test_a_lane_in_doubt_asks_for_one_schema_at_a_time_a_second_apart() -> None:
    registry, now = Registry(RegistryUnreachable("refused")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        for number in range(10):
            found.ask(ACME, number)
        soon(lambda: len(registry.asked) >= DOUBTS and not registry.at_once)
        time.sleep(0.05)
        asked = len(registry.asked)
        assert DOUBTS <= asked <= DOUBTS + AT_ONCE
        registry.may.clear()
        now[0] += AGAIN_S
        soon(lambda: registry.at_once)
        time.sleep(0.3)
        assert (len(registry.asked), registry.at_once) == (asked + 1, 1)


def test_ids_that_are_never_answered_hold_up_nobody_else() -> None:
    """Their lane and those of all strangers hold so many threads, and others have theirs."""
    registry, now = Registry(OURS), [100.0]
    registry.prompt = {7}
    with lookups(registry, now) as found:
        for number in range(100, 160):
            assert found.ask(ACME, number)
            assert found.ask(STRANGER + bytes([number]), number)
        soon(lambda: registry.at_once == AT_ONCE + STRANGERS_AT_ONCE)
        assert AT_ONCE + STRANGERS_AT_ONCE < THREADS
        assert found.ask(OTHER, 7)
        soon(lambda: found.answer(OTHER, 7))
        assert registry.asked[-1] == 7


def test_lanes_in_doubt_leave_half_of_the_threads_to_others() -> None:
    registry, now = Registry(RegistryUnreachable("refused")), [100.0]
    registry.may.set()
    doubted = [b"doubted-%d" % number for number in range(2 * THREADS)]
    with lookups(registry, now) as found:
        for lane in doubted:
            for number in range(DOUBTS):
                found.ask(lane, number)
        soon(lambda: all(found._lanes.by_name[lane].doubted for lane in doubted))
        registry.may.clear()
        now[0] += AGAIN_S
        soon(lambda: registry.at_once == THREADS // 2)
        time.sleep(0.25)
        assert registry.at_once == THREADS // 2
        registry.prompt, registry.answer = {7}, OURS
        found.ask(OTHER, 7)
        soon(lambda: found.answer(OTHER, 7))


def test_the_next_is_found_in_one_pass_of_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for under the lock that all partitions ask under."""
    looks = [0]

    def counted(lane: AskingLane) -> bool:
        looks[0] += 1
        return lane.misses >= DOUBTS

    monkeypatch.setattr(AskingLane, "doubted", property(counted))
    asked = Lookups(Registry(OURS), 10.0, clock=lambda: 0.0)
    for number in range(200):
        asked.ask(b"tenant-%d" % number, number)
    for lane in asked._lanes.by_name.values():
        lane.misses, lane.again_at = DOUBTS, 1.0
    assert asked._lanes.next(0.0) is None
    assert looks[0] <= 3 * 200


def test_a_registry_is_silent_for_who_has_asked_it_in_vain_once_it_was_so_for_long() -> None:
    registry, now = Registry(RegistryUnreachable("refused")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        for number in range(DOUBTS):
            while len(registry.asked) == number or registry.at_once:
                found.ask(ACME, 7)
                time.sleep(0.001)
            assert not found.silent(ACME, 7)
            now[0] += 1.0
        now[0] = 111.0
        found.ask(ACME, 7)
        soon(lambda: found.silent(ACME, 7) == "refused")
        registry.prompt, registry.answer = {8}, OURS
        found.ask(OTHER, 8)
        assert not found.silent(OTHER, 8)
        soon(lambda: found.answer(OTHER, 8))
        assert not found.silent(ACME, 7)
        now[0] += AGAIN_S
        found.ask(ACME, 7)
        soon(lambda: found.answer(ACME, 7))


def test_lookups_that_never_end_are_a_silence_too() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now) as found:
        for number in range(THREADS):
            found.ask(b"%d" % number, number)
        soon(lambda: registry.at_once == THREADS)
        assert not found.silent(ACME, 7)
        now[0] += 10.0
        assert "no lookup has ended" in found.silent(ACME, 7)


def askers() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.startswith("belfry-registry")}


def test_threads_begin_when_something_is_wanted() -> None:
    before = askers()
    registry = Registry(OURS)
    lookups = Lookups(registry, 5.0).start()
    try:
        assert not askers() - before
        lookups.ask(ACME, 1)
        soon(lambda: registry.at_once == 1)
        assert 1 <= len(askers() - before) <= 2
        # Nobody waits for the one that has no answer.
        registry.prompt = {2}
        lookups.ask(OTHER, 2)
        soon(lambda: lookups.answer(OTHER, 2) is not None)
        assert registry.at_once == 1
    finally:
        registry.may.set()
        lookups.close()


def test_more_begin_while_those_that_were_free_are_at_work() -> None:
    registry = Registry(OURS)
    lookups = Lookups(registry, 5.0).start()
    try:
        registry.prompt = {0}
        lookups.ask(ACME, 0)
        soon(lambda: lookups.answer(ACME, 0) is not None and lookups._idle == lookups._begun)
        free = lookups._begun
        with lookups._changed:
            # No thread takes anything in between, so each of these finds all of them free.
            for number in range(1, free + 2):
                lookups.ask(b"lane-%d" % number, number)
            assert lookups._begun == free
        soon(lambda: registry.at_once == free + 1)
    finally:
        registry.may.set()
        lookups.close()


def test_whatever_a_client_raises_the_threads_go_on() -> None:
    registry, now = Registry(OURS), [100.0]
    registry.bug = RuntimeError("bug")
    registry.may.set()
    with lookups(registry, now, wait_s=0) as found:
        for number in range(THREADS):
            found.ask(b"%d" % number, number)
        soon(lambda: "RuntimeError: bug" in found.silent(b"1", 1))
        registry.bug = None
        now[0] += AGAIN_S
        soon(lambda: found.answer(b"1", 1))


def test_a_registry_is_asked_anew_for_what_there_was_none_of() -> None:
    """The memory of `Registry` is everybody's; lookups remember who has asked."""
    registry = SchemaRegistry("http://127.0.0.1:1")
    missing = SchemaRegistryError(404, 40403, "Schema not found")
    asked = MagicMock(side_effect=missing)
    registry._connection = MagicMock(client=lambda: MagicMock(get_schema=asked))
    for _ in range(2):
        assert isinstance(registry.writer_schema(7), Missing)
    assert asked.call_count == 1
    assert isinstance(AskedAnew(registry).writer_schema(7), Missing)
    assert asked.call_count == 2


def test_lookups_are_counted_and_doubt_is_told_until_one_is_answered() -> None:
    registry, now, told = Registry(RegistryUnreachable("refused")), [0.0], list[str]()
    found = Lookups(registry, 10.0, None, lambda: now[0], told.append).start()
    registry.may.set()
    for number in range(DOUBTS):
        assert found.doubt() == ""
        found.ask(ACME, number)
        soon(lambda number=number: len(told) > number)  # type: ignore[misc]
        now[0] += AGAIN_S / 2
    soon(found.doubt)
    assert (found.doubt(), set(told)) == ("refused", {"unanswered"})
    registry.answer = OURS
    now[0] += AGAIN_S
    found.ask(ACME, 0)
    soon(lambda: "answered" in told)
    soon(lambda: not found.doubt())
    found.close()
