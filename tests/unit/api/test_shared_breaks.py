"""Breaks of hosts reach every process, outlive each, and come to the same whoever writes first."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

import pytest

from belfry.api.workers import shared_breaks
from belfry.api.workers.break_notes import (
    DAY_MS,
    MOST_BYTES,
    MOST_REASON,
    NoRoomForBreaks,
    entries_in,
    texts_of,
)
from belfry.api.workers.host_breaks import CLOSED_MS, HostBreak, HostBreaks
from belfry.api.workers.shared_breaks import SharedBreaks
from tests.acceptance.harness.site import wait_for

PARTITIONS = 3
HOUR_MS = 3_600_000


class KafkaNotes:
    """What Kafka keeps.

    `meanwhile` runs once between somebody's look and their writing, `afterwards` once behind it.
    """

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.away = False
        self.writes = self.looks = 0
        self.meanwhile: Callable[[], object] | None = None
        self.afterwards: Callable[[], object] | None = None

    def read(self, partitions: Iterable[int]) -> dict[int, str]:
        self.looks += 1
        if self.away:
            raise ConnectionError("no broker")
        return {each: self.texts[each] for each in partitions if each in self.texts}

    def write(self, texts: Mapping[int, str]) -> dict[int, str]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self.writes += 1
        self.texts |= texts
        afterwards, self.afterwards = self.afterwards, None
        if afterwards is not None:
            afterwards()
        return {}


class Process:
    """One process of a belfry, at an instant."""

    def __init__(self, kafka: KafkaNotes, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.breaks = HostBreaks()
        self.shared = SharedBreaks(self.breaks, kafka, PARTITIONS, lambda: float(self.now_ms))

    def break_(self, host: str, reason: str | None = None, until_ms: int = HOUR_MS) -> None:
        assert self.breaks.open(HostBreak(host, self.now_ms, until_ms, "ann", reason))
        self.shared.settle()

    def close(self, host: str) -> None:
        self.breaks.close(host, self.now_ms)
        self.shared.settle()

    def broken(self) -> list[str]:
        self.shared.settle()
        return [each.host for each in self.breaks.all(self.now_ms)]


@pytest.fixture
def kafka() -> KafkaNotes:
    return KafkaNotes()


def test_a_break_reaches_others_and_outlives_who_took_it(kafka: KafkaNotes) -> None:
    one, other = Process(kafka), Process(kafka)
    one.break_("a.example", "disk")
    assert other.broken() == ["a.example"]
    del one, other
    restarted = Process(kafka, now_ms=60_000)
    assert restarted.broken() == ["a.example"]
    assert restarted.breaks.all(0)[0].reason == "disk"
    assert Process(kafka, now_ms=HOUR_MS).broken() == []


def test_a_close_reaches_others_and_has_them_try_once(kafka: KafkaNotes) -> None:
    one, other = Process(kafka), Process(kafka)
    one.break_("a.example")
    assert other.broken() == ["a.example"]
    one.now_ms = 1_000
    one.close("a.example")
    assert other.broken() == []
    assert [other.breaks.is_tried("a.example"), other.breaks.is_tried("a.example")] == [True, False]
    other.shared.settle()
    assert not other.breaks.is_tried("a.example")


def test_two_that_write_at_the_same_time_lose_nothing(kafka: KafkaNotes) -> None:
    one, other = Process(kafka), Process(kafka)
    # The other one's note is written over by one that has not read it.
    kafka.meanwhile = lambda: other.break_("b.example")
    one.break_("a.example")
    assert other.broken() == ["a.example", "b.example"]
    assert one.broken() == ["a.example", "b.example"]
    assert Process(kafka).broken() == ["a.example", "b.example"]


def test_what_is_written_over_at_once_is_written_again_before_it_is_answered(
    kafka: KafkaNotes,
) -> None:
    # By somebody who had looked before, and has ended since.
    kafka.afterwards = lambda: kafka.texts.update({0: "[]"})
    Process(kafka).break_("a.example")
    assert Process(kafka).broken() == ["a.example"]


def test_of_two_breaks_of_a_host_the_later_one_counts_though_it_ends_earlier(
    kafka: KafkaNotes,
) -> None:
    one, other = Process(kafka), Process(kafka, now_ms=1_000)
    one.break_("a.example", "long")
    other.break_("a.example", "short", until_ms=2_000)
    assert other.broken() == one.broken() == ["a.example"]
    assert [each.reason for each in one.breaks.all(1_000)] == ["short"]


def test_what_kafka_did_not_take_is_written_with_the_next_turn(kafka: KafkaNotes) -> None:
    one = Process(kafka)
    kafka.away = True
    with pytest.raises(ConnectionError, match="no broker"):
        one.break_("a.example")
    assert [each.host for each in one.breaks.all(0)] == ["a.example"]
    kafka.away = False
    one.shared.settle()
    assert Process(kafka).broken() == ["a.example"]


def test_a_thread_goes_on_through_an_outage_until_both_are_the_same(
    kafka: KafkaNotes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_breaks, "EVERY_S", 0.01)
    kafka.away = True
    one = Process(kafka)
    one.breaks.open(HostBreak("a.example", 0, HOUR_MS, "ann", None))
    one.shared.start()
    try:
        wait_for("a look in vain", lambda: kafka.looks > 1)
        kafka.away = False
        wait_for("the break", lambda: Process(kafka).broken() == ["a.example"])
    finally:
        one.shared.stop()
    assert one.shared._thread.failures == 0


def test_nothing_is_written_where_nothing_has_changed(kafka: KafkaNotes) -> None:
    one, other = Process(kafka), Process(kafka)
    one.break_("a.example", "r" * 500)
    for each in (one, other, one):
        each.shared.settle()
    assert kafka.writes == 1


@pytest.mark.parametrize("seed", range(20))
def test_all_come_to_the_same_in_whatever_order_they_hear(seed: int) -> None:
    chance, kafka = random.Random(seed), KafkaNotes()
    processes = [Process(kafka) for _ in range(3)]
    for _ in range(30):
        each = chance.choice(processes)
        # Clocks differ, and some changes are not settled before the next one.
        each.now_ms += chance.randrange(50)
        host = f"h{chance.randrange(4)}.example"
        if chance.random() < 0.5:
            each.breaks.open(HostBreak(host, each.now_ms, HOUR_MS, "ann", None))
        else:
            each.breaks.close(host, each.now_ms)
        if chance.random() < 0.5:
            each.shared.settle()
    for each in processes * 2:
        each.shared.settle()
    found = [each.breaks.entries(0) for each in processes]
    assert found[0] == found[1] == found[2] == entries_in(kafka.texts, 0)


def test_texts_hold_what_a_broker_takes_and_say_where_it_is_too_much() -> None:
    entries = [
        HostBreak(f"h{n:03}.example", 1, 2, "ann", "ü" * 1_000, closed=bool(n % 2))
        for n in range(20)
    ]
    texts = texts_of(entries, PARTITIONS)
    assert sorted(texts) == list(range(PARTITIONS))
    assert all(len(text.encode()) <= MOST_BYTES for text in texts.values())
    # A close leaves out who made it, so that it takes no more than its break did.
    kept = [e._replace(reason="ü" * MOST_REASON, by="" if e.closed else "ann") for e in entries]
    assert entries_in(texts, 0) == kept
    with pytest.raises(NoRoomForBreaks, match="60 breaks are more than 3 notes"):
        texts_of(entries * 3, PARTITIONS)


def test_what_is_no_entry_is_passed_over() -> None:
    texts = {0: "no json", 1: "7", 2: '[["a",1,2,"ann",null,0],["short"],[{},{},1,2,3,4],7]'}
    assert entries_in(texts, 0) == [HostBreak("a", 1, 2, "ann", None)]


@pytest.mark.parametrize(
    "row",
    [
        f'["h",{DAY_MS + 1},{DAY_MS + 2},"x",null,0]',
        f'["h",0,{DAY_MS + 1},"x",null,0]',
        '["h",0,1e15,"x",null,0]',
        '["h",0,99999999999999999999999,"x",null,0]',
        '["h",0.0,1,"x",null,0]',
        '[null,0,1,"x",null,0]',
        '["h",0,1,[],null,0]',
        '["h",0,1,"x",{},0]',
    ],
)
def test_what_no_process_would_have_written_is_not_believed(kafka: KafkaNotes, row: str) -> None:
    assert [each.host for each in entries_in({0: f'[{row},["b",0,9,"x",null,0]]'}, 0)] == ["b"]
    kafka.texts[0] = f"[{row}]"
    one = Process(kafka)
    one.break_("a.example")
    assert one.broken() == Process(kafka).broken() == ["a.example"]


def test_one_more_is_refused_where_it_would_not_fit(kafka: KafkaNotes) -> None:
    one = Process(kafka)
    number = filled(one)
    assert len(Process(kafka).broken()) == number > 10
    assert one.shared.make_room(HostBreak("h0", 0, HOUR_MS, "ann", "r" * 150))


def filled(one: Process, by: str = "ann", reason: str | None = "r" * 150) -> int:
    """Break hosts until there is no room; how many those are."""
    number = 0
    while one.shared.make_room(each := HostBreak(f"h{number}", one.now_ms, HOUR_MS, by, reason)):
        one.breaks.open(each)
        number += 1
    one.shared.settle()
    return number


def test_closes_make_room_as_soon_as_all_have_heard_of_them(kafka: KafkaNotes) -> None:
    one, other, late = Process(kafka), Process(kafka), Process(kafka)
    number = filled(one)
    assert len(other.broken()) == len(late.broken()) == number
    one.now_ms = 1_000
    for each in range(number):
        # Whoever closes it may have a longer name than who broke it.
        one.breaks.close(f"h{each}", one.now_ms, "n" * 100)
        one.shared.settle()
    assert other.broken() == late.broken() == []
    for process in (one, other, late):
        process.now_ms = 1_000 + CLOSED_MS
    # Nearly as many anew; their instants have more digits.
    again = number - 6
    for each in range(again):
        new = HostBreak(f"x{each}", one.now_ms, HOUR_MS, "ann", "r" * 150)
        assert one.shared.make_room(new)
        assert one.breaks.open(new)
        one.shared.settle()
    assert len(other.broken()) == len(late.broken()) == len(one.broken()) == again
    writes = kafka.writes
    assert len(Process(kafka, one.now_ms).broken()) == again
    for process in (one, other, late):
        process.shared.settle()
    assert kafka.writes == writes


def test_a_close_that_kafka_has_not_taken_makes_no_room(kafka: KafkaNotes) -> None:
    one = Process(kafka)
    number = filled(one, "", None)
    for each in range(number):
        one.breaks.close(f"h{each}", 0)
    one.now_ms = 10 * CLOSED_MS
    new = HostBreak("new.example", one.now_ms, HOUR_MS, "", None)
    assert not one.shared.make_room(new)
    one.shared.settle()
    assert Process(kafka, one.now_ms).broken() == []
    assert one.shared.make_room(new)
