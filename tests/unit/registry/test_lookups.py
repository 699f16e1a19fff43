"""Lookups: few at a time, one at a time where the registry does not answer, each until it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any

from belfry.registry.answers import Missing, RegistryUnreachable, WriterSchema
from belfry.registry.client import MISSING_S
from belfry.registry.lookups import DOUBTS, MOST_WANTED, THREADS, WANTED_S, Lookups
from belfry.schedules.rejections import Rejection
from belfry.wire import catalogue
from belfry.wire.requests import reading_of

OURS = catalogue.schema("ScheduleRequest")
GUID = bytes(range(16))


class Registry:
    """Gives its answer when it may; counts how many ask at once."""

    def __init__(self, answer: WriterSchema) -> None:
        self.answer = answer
        self.bug: Exception | None = None
        self.asked: list[int | bytes] = []
        self.at_once = self.most_at_once = 0
        self.may = Event()
        self._lock = Lock()

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
        assert found.answer(7) is None
        for _ in range(3):
            assert found.ask(7)
            assert found.ask(GUID)
        registry.may.set()
        soon(lambda: found.answer(7) and found.answer(GUID))
        assert found.answer(7) == reading_of(OURS)
        now[0] += 1e6
        assert found.answer(7)
    assert sorted(map(str, registry.asked)) == sorted(map(str, [7, GUID]))


def test_what_is_known_beforehand_is_not_asked_for() -> None:
    with lookups(Registry(OURS), [0.0], known={5: reading_of(OURS)}) as found:
        assert found.answer(5) == reading_of(OURS)


def test_that_there_is_none_counts_for_a_while() -> None:
    registry, now = Registry(Missing("the registry knows no schema 7")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        found.ask(7)
        soon(lambda: found.answer(7))
        refused = found.answer(7)
        assert isinstance(refused, Rejection)
        assert refused.code == "unknown_schema_id"
        assert "knows no schema 7" in refused.reason
        now[0] += MISSING_S
        assert found.answer(7) is None


def test_few_are_asked_for_at_once_and_only_so_many_are_wanted() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now) as found:
        room = [found.ask(number) for number in range(THREADS)]
        soon(lambda: registry.at_once == THREADS)
        room = [found.ask(1_000 + number) for number in range(MOST_WANTED + 1)]
        assert room == [True] * MOST_WANTED + [False]
        assert registry.most_at_once == THREADS


def test_what_nobody_waits_for_any_more_is_not_asked_for() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now) as found:
        for number in range(THREADS + 2):
            found.ask(number)
        soon(lambda: registry.at_once == THREADS)
        now[0] += WANTED_S + 1
        found.ask(THREADS)
        registry.may.set()
        soon(lambda: found.answer(THREADS))
        assert THREADS + 1 not in registry.asked


def test_a_registry_in_doubt_is_asked_for_one_schema_at_a_time_a_second_apart() -> None:
    registry, now = Registry(RegistryUnreachable("refused")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        for number in range(10):
            found.ask(number)
        soon(lambda: len(registry.asked) >= DOUBTS and not registry.at_once)
        time.sleep(0.05)
        asked = len(registry.asked)
        assert DOUBTS <= asked <= DOUBTS + THREADS
        registry.may.clear()
        now[0] += 1.0
        soon(lambda: registry.at_once)
        time.sleep(0.3)
        assert (len(registry.asked), registry.at_once) == (asked + 1, 1)


def test_a_registry_is_silent_once_it_has_been_in_doubt_for_long_until_it_answers() -> None:
    """The probes go on though nobody asks."""
    registry, now = Registry(RegistryUnreachable("refused")), [100.0]
    registry.may.set()
    with lookups(registry, now) as found:
        for number in range(DOUBTS):
            while len(registry.asked) == number or registry.at_once:
                found.ask(7)
                time.sleep(0.001)
            assert not found.silent
            now[0] += 1.0
        now[0] = 111.0
        soon(lambda: found.silent == "refused")
        registry.answer = OURS
        now[0] += 600.0
        soon(lambda: not found.silent)
        assert found.answer(7) == reading_of(OURS)


def test_lookups_that_never_end_are_a_silence_too() -> None:
    registry, now = Registry(OURS), [100.0]
    with lookups(registry, now) as found:
        for number in range(THREADS):
            found.ask(number)
        soon(lambda: registry.at_once == THREADS)
        assert not found.silent
        now[0] += 10.0
        assert "no lookup has ended" in found.silent


def test_whatever_a_client_raises_the_threads_go_on() -> None:
    registry, now = Registry(OURS), [100.0]
    registry.bug = RuntimeError("bug")
    registry.may.set()
    with lookups(registry, now, wait_s=0) as found:
        for number in range(8):
            found.ask(number)
        soon(lambda: "RuntimeError: bug" in found.silent)
        registry.bug = None
        now[0] += 1.0
        soon(lambda: not found.silent)
