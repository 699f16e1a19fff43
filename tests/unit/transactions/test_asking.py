"""Pauses between the same question and its repeats, by a clock that runs only while they last."""

from __future__ import annotations

import asyncio

import pytest

from belfry.transactions import asking
from belfry.transactions.asking import Pauses
from belfry.transactions.errors import Meaning

DEADLINE_S = 8.0
# What an orderly stop of a broker takes to move its leaders and coordinators, and some more.
MOVES_S = 2.0


async def pauses_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch, meaning: Meaning
) -> list[tuple[float, float]]:
    """When each pause began, and how long it was, in seconds."""
    clock, found = [0.0], list[tuple[float, float]]()

    async def sleep(seconds: float) -> None:
        found.append((clock[0], seconds))
        clock[0] += seconds

    monkeypatch.setattr(asking, "now", lambda: clock[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    pauses = Pauses(DEADLINE_S)
    while await pauses.wait(meaning):
        pass
    assert clock[0] == pytest.approx(DEADLINE_S)
    return found


async def test_who_leads_is_asked_often_while_leaders_may_be_moving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = await pauses_until_the_deadline(monkeypatch, Meaning.MOVED)
    assert found[0][1] <= 0.01
    assert all(seconds <= 0.05 for at, seconds in found if at < MOVES_S)


async def test_brokers_that_stay_away_are_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await pauses_until_the_deadline(monkeypatch, Meaning.MOVED)
    late = [seconds for at, seconds in found[:-1] if at > MOVES_S + 0.5]
    assert all(seconds == 0.2 for seconds in late)
    assert len(found) < 90


async def test_a_busy_broker_is_asked_again_within_20_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    found = await pauses_until_the_deadline(monkeypatch, Meaning.BUSY)
    assert [round(1000 * seconds) for _, seconds in found[:7]] == [1, 2, 4, 8, 16, 20, 20]
