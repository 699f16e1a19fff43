"""How brokers are asked again: pauses, rests and errors, in time that takes none."""

from __future__ import annotations

import asyncio
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.transactions import asking, errors
from belfry.transactions.asking import Asker, Ended, Pauses, judge, tell_gone
from belfry.transactions.brokers import Lost
from belfry.transactions.errors import Meaning
from tests.unit.transactions.conftest import SkippedTime

BEGUN_S = 500.0
DEADLINE_S = 8.0
# What an orderly stop of a broker takes to move its leaders and coordinators, and some more.
MOVES_S = 2.0


async def pauses_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch, meaning: Meaning
) -> list[tuple[float, float]]:
    """When each pause began, and how long it was, in seconds."""
    clock, found = [BEGUN_S], list[tuple[float, float]]()

    async def sleep(seconds: float) -> None:
        found.append((clock[0] - BEGUN_S, seconds))
        clock[0] += seconds

    monkeypatch.setattr(asking, "now", lambda: clock[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    pauses = Pauses(BEGUN_S + DEADLINE_S)
    while await pauses.wait(meaning):
        pass
    assert clock[0] == pytest.approx(BEGUN_S + DEADLINE_S)
    return found


async def test_who_leads_is_asked_often_while_leaders_may_be_moving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = await pauses_until_the_deadline(monkeypatch, Meaning.MOVED)
    assert [round(1000 * seconds) for _, seconds in found[:5]] == [10, 20, 40, 50, 50]
    assert all(seconds <= 0.05 for at, seconds in found if at < MOVES_S)


async def test_brokers_that_stay_away_are_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await pauses_until_the_deadline(monkeypatch, Meaning.MOVED)
    late = [seconds for at, seconds in found[:-1] if at > MOVES_S + 0.5]
    assert all(seconds == 0.2 for seconds in late)
    assert len(found) < 90


async def test_a_busy_broker_is_asked_again_within_20_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await pauses_until_the_deadline(monkeypatch, Meaning.BUSY)
    assert [round(1000 * seconds) for _, seconds in found[:7]] == [1, 2, 4, 8, 16, 20, 20]


# -- rests that brokers ask for --------------------------------------------------------------------


class Throttling:
    """Brokers that ask for a rest with each answer; `asked` is when each was asked."""

    def __init__(self, time: SkippedTime, throttle_ms: int) -> None:
        self.throttle_ms = throttle_ms
        self.asked: list[tuple[int, float]] = []
        self._time = time

    async def send(self, node: int, _request: object) -> Any:
        self.asked.append((node, self._time.now - 1_000.0))
        return SimpleNamespace(throttle_time_ms=self.throttle_ms)


async def asked_at(skipped_time: SkippedTime, throttle_ms: int, *nodes: int) -> list[float]:
    """After how many milliseconds brokers are asked that ask for such a rest."""
    brokers: Any = Throttling(skipped_time, throttle_ms)
    asker = Asker(brokers)
    for node in nodes:
        await asker.send(node, None, 2_000.0)
    assert [node for node, _ in brokers.asked] == [*nodes]
    return [round(1000 * at, 3) for _, at in brokers.asked]


@pytest.mark.parametrize("rest_ms", [1, 120, 30_000])
async def test_a_broker_has_the_rest_that_it_asks_for(
    skipped_time: SkippedTime, rest_ms: int
) -> None:
    assert await asked_at(skipped_time, rest_ms, 1, 1, 1) == [0, rest_ms, 2 * rest_ms]


async def test_a_broker_that_asks_for_no_rest_is_asked_at_once(skipped_time: SkippedTime) -> None:
    assert await asked_at(skipped_time, 0, 1, 1, 1) == [0, 0, 0]


async def test_a_rest_is_of_one_broker_alone(skipped_time: SkippedTime) -> None:
    assert await asked_at(skipped_time, 50, 1, 2, 1, 2) == [0, 0, 50, 50]


async def test_a_rest_ends_with_the_step(skipped_time: SkippedTime) -> None:
    brokers: Any = Throttling(skipped_time, 60_000)
    asker = Asker(brokers)
    await asker.send(1, None, 1_008.0)
    await asker.send(1, None, 1_000.4)
    assert skipped_time.now == pytest.approx(1_000.4)


@pytest.mark.parametrize("left_s", [-3.0, 0.0, 0.25, 8.0])
async def test_an_answer_that_does_not_come_is_lost_at_the_deadline(
    skipped_time: SkippedTime, left_s: float
) -> None:
    async def never(*_: object) -> Any:
        await asyncio.sleep(3_600)

    brokers: Any = SimpleNamespace(send=never, coordinator_of=never)
    with pytest.raises(Lost) as raised:
        await Asker(brokers).send(1, None, 1_000.0 + left_s)
    assert raised.value.sent
    # Where the time is up already a request has a millisecond.
    assert skipped_time.now == pytest.approx(1_000.0 + max(left_s, 0.001))


# -- errors of several partitions ------------------------------------------------------------------

WORST_FIRST = [
    Meaning.FENCED, Meaning.UNKNOWN, Meaning.REFUSED, Meaning.ABORT, Meaning.MOVED, Meaning.BUSY,
    Meaning.FINE,
]  # fmt: skip


def test_the_worst_error_of_a_step_decides_for_all_of_it() -> None:
    for one, other in product(errors.TABLE, repeat=2):
        meanings = {errors.TABLE[one].meaning, errors.TABLE[other].meaning}
        found = judge([0, one, other, one, 0], errors.of_partition)
        assert found.meaning is min(meanings, key=WORST_FIRST.index), (one, other)
        assert found in (errors.TABLE[one], errors.TABLE[other])


def test_nothing_is_wrong_where_nothing_was_asked() -> None:
    assert judge([], errors.of_partition) is errors.TABLE[errors.NONE]


def test_a_topic_is_gone_once_it_is_missing_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [BEGUN_S + 0.999]
    monkeypatch.setattr(asking, "now", lambda: clock[0])
    codes = {("gone", 0): errors.UNKNOWN_TOPIC, ("fired", 1): errors.NOBODY, ("fired", 0): 0}
    tell_gone(codes, BEGUN_S)
    clock[0] = BEGUN_S + 1.0
    with pytest.raises(Ended) as raised:
        tell_gone(codes, BEGUN_S)
    assert raised.value.meaning is Meaning.REFUSED
    why = errors.sentence(errors.UNKNOWN_TOPIC)
    assert raised.value.topics == {"gone": why}
    assert str(raised.value) == f"produce: {why}"
    tell_gone({("fired", 1): errors.NOBODY}, BEGUN_S)
