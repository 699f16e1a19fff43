"""Steps of an engine whose fires are acknowledged."""

from __future__ import annotations

from typing import Any

from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import Driver, Shot, Step

WAIT = 30_000


def serial(driver: Driver, schedule_id: str, due_ms: int, **fields: Any) -> None:
    """Ask for a member of the group `g` that the others wait for."""
    given: dict[str, Any] = {"group": "g", "serial": True, "ack_timeout_ms": WAIT, **fields}
    driver.ask(schedule_id=schedule_id, at=due_ms, **given)


def fire_id(shot: Shot) -> str:
    return (shot.header("belfry-fire-id") or b"").decode()


def ack(driver: Driver, shot: Shot, now_ms: int, **fields: Any) -> Step:
    driver.ask(action="ACK", schedule_id=shot.id, fire_id=fire_id(shot), **fields)
    return driver.step(now_ms, fire=False)


def fires(driver: Driver, now_ms: int, at_most: int = 1_000) -> list[Shot]:
    """Step until nothing more is due."""
    found: list[Shot] = []
    while (due_ms := driver.engine.next_due_ms()) is not None and due_ms <= now_ms:
        found += driver.step(now_ms, at_most, take=0).shots
    return found


def ids(shots: list[Shot]) -> list[str]:
    return [shot.id for shot in shots]


def rebuilt(driver: Driver, now_ms: int) -> None:
    """The owner dies; the next one has nothing but the changelog."""
    rows = MemoryMap()
    replay = Replay(ScheduleStore(rows))
    replay.apply(driver.changelog, range(len(driver.changelog)), now_ms)
    replay.finish(now_ms)
    driver.start(rows)
