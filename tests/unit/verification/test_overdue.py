"""What was due and has not fired is found, unless the log or a policy says why it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from belfry.cli.verify_memory import MemoryOnDisk
from belfry.cli.verify_state import StateFile
from belfry.engine import firing
from belfry.firing.due import Chunk, Most, ScanPosition, due_chunk
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.verification.findings import Breach
from belfry.verification.memory import Memory
from belfry.verification.overdue import owed_until
from belfry.verification.standing import LEFT_ALONE_MS, NEVER, Standing
from tests.unit.engine.driver import FIRED, HOUR, T0
from tests.unit.verification.trace import (
    MINUTE,
    MemoryInProcess,
    Recording,
    Verification,
    verified,
)

MEMORIES: tuple[Callable[[], Memory], ...] = (
    MemoryInProcess,
    lambda: MemoryOnDisk(StateFile(None, "a belfry")),
)


def waits_for_ack(**last: Any) -> Recording:
    """A serial group whose first fire is not acknowledged; the log goes on for minutes."""
    driver = Recording()
    for name in ("first", "second"):
        driver.ask(schedule_id=name, at=T0, group="g", serial=True, ack_timeout_ms=HOUR)
    driver.step(T0)
    driver.run(T0 + 1)
    driver.ask(T0 + 3 * MINUTE, schedule_id="other", at=T0 + HOUR)
    driver.step(T0 + 3 * MINUTE)
    return driver


@pytest.mark.parametrize("make", MEMORIES)
def test_a_schedule_behind_a_fire_that_is_not_acknowledged_may_wait(
    make: Callable[[], Memory],
) -> None:
    driver = waits_for_ack()
    made = verified(driver.trace, memory=make())
    assert made.findings == []
    assert made.counts.locked == 1


@pytest.mark.parametrize("make", MEMORIES)
def test_once_it_is_acknowledged_it_has_to_fire(make: Callable[[], Memory]) -> None:
    driver = waits_for_ack()
    [fire] = driver.trace.fired
    driver.ask(T0 + 3 * MINUTE, schedule_id="first", action="ACK", fire_id=fire.identity.hex())
    # Nothing fires what the lock lets go.
    driver.step(T0 + 3 * MINUTE, fire=False)
    made = verified(driver.trace, memory=make())
    [found] = made.findings
    assert found.breach is Breach.OVERDUE
    assert found.found == f"a schedule of demo, due at {T0} or later, and not fired"
    assert made.counts.locked == 0
    made.round(driver.trace)
    assert made.findings == [found], "each is told of once"
    driver.run(T0 + 3 * MINUTE)
    made.round(driver.trace)
    assert made.findings == [found]


def late(**given: Any) -> Verification:
    """Two schedules that are due, and whose owner does nothing about it while others go on."""
    driver = Recording()
    for name in ("a", "b"):
        driver.ask(schedule_id=name, at=T0 + 5)
    driver.step(T0)
    driver.ask(T0 + 3 * MINUTE, schedule_id="later", at=T0 + HOUR)
    driver.ask(T0 + 3 * MINUTE, schedule_id="young", at=T0)
    driver.step(T0 + 3 * MINUTE, fire=False)
    return verified(driver.trace, **given)


@pytest.mark.parametrize("make", MEMORIES)
def test_schedules_of_one_tenant_are_one_finding_and_young_requests_are_none(
    make: Callable[[], Memory],
) -> None:
    made = late(memory=make())
    [found] = made.findings
    assert found.found == f"2 schedules of demo, due at {T0 + 5} or later, and not fired"
    assert found.spot.offset == 0


@pytest.mark.parametrize(
    "reason", [{"held": frozenset({"demo"})}, {"floors": {FIRED + "another": -1}}]
)
def test_a_tenant_that_is_held_may_wait(reason: dict[str, Any]) -> None:
    made = late(**reason)
    assert made.findings == []
    assert made.counts.held == 2


def another_owner(driver: Recording, first_ms: int) -> None:
    """Takes over, and has its first transaction at this instant: it fires nothing."""
    driver.start(driver.rows)
    driver.owner_epoch += 1
    idle(driver, first_ms)


def idle(driver: Recording, now_ms: int) -> None:
    """A transaction that fires nothing of what is due."""
    driver.ask(now_ms, schedule_id=f"at {now_ms}", at=now_ms + HOUR)
    driver.step(now_ms, fire=False)


def test_nothing_is_overdue_before_somebody_had_a_minute_for_it() -> None:
    """Nobody ran for a night.

    epoch 1   T0            the last transaction of all; `a` is due 5 ms later
    epoch 2   a night on    the first one
              a minute on   `a` could have fired by now
    """
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.step(T0)
    morning = T0 + 9 * HOUR
    another_owner(driver, morning)
    idle(driver, morning + MINUTE - 1)
    made = verified(driver.trace)
    assert made.findings == []
    idle(driver, morning + MINUTE)
    made.round(driver.trace)
    [found] = made.findings
    assert found.breach is Breach.OVERDUE


def test_an_owner_soon_behind_another_one_tells_the_time_as_if_it_were_the_same() -> None:
    """Each owner ends within a minute, and none fires: that is no night."""
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.step(T0)
    another_owner(driver, T0 + LEFT_ALONE_MS)
    assert verified(driver.trace).findings == []
    another_owner(driver, T0 + LEFT_ALONE_MS + 5)
    [found] = verified(driver.trace).findings
    assert found.breach is Breach.OVERDUE


def test_an_owner_may_have_nothing_to_do_for_a_night() -> None:
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.step(T0)
    idle(driver, T0 + 9 * HOUR)
    [found] = verified(driver.trace).findings
    assert found.breach is Breach.OVERDUE


def test_time_is_told_by_the_partitions_that_had_owners_for_long_enough() -> None:
    back = Standing(last_ms=T0 + MINUTE - 1, owned_ms=T0)
    gone_on = Standing(last_ms=T0 - 7, owned_ms=T0 - HOUR)
    assert owed_until([back, Standing()], MINUTE) == NEVER
    assert owed_until([back, gone_on], MINUTE) == T0 - 7 - MINUTE
    unknown = Standing(last_ms=T0)
    assert owed_until([back, gone_on, unknown], MINUTE) == T0 - MINUTE
    assert owed_until([back], MINUTE - 1) == T0


def test_a_watermark_one_too_far_leaves_schedules_behind_that_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several are due at one instant, a step fires some of them, and the next owner goes on."""

    def one_too_far(rows: Any, before: ScanPosition, now_ms: int, most: Most) -> Chunk:
        chunk = due_chunk(rows, before, now_ms, most)
        return Chunk(chunk.rows, chunk.position._replace(watermark_ms=chunk.position.reached_ms))

    monkeypatch.setattr(firing, "due_chunk", one_too_far)
    driver = Recording()
    for name in "abc":
        driver.ask(schedule_id=name, at=T0 + 5)
    driver.step(T0)
    driver.step(T0 + 5, at_most=1)
    # It comes back to its own store, whose scan begins behind the watermark.
    driver.start(driver.rows)
    driver.ask(T0 + 3 * MINUTE, schedule_id="later", at=T0 + HOUR)
    driver.run(T0 + 3 * MINUTE)
    driver.step(T0 + 3 * MINUTE)
    [found] = verified(driver.trace).findings
    assert found.breach is Breach.OVERDUE
    assert found.found.startswith("2 schedules of demo, due at")


def test_a_replay_begins_with_what_its_log_still_owes() -> None:
    """What is overdue after an outage fires within the pass, and is no finding then."""
    driver = Recording()
    driver.ask(schedule_id="a", at=T0 + 5)
    driver.step(T0)
    rows = MemoryMap()
    replay = Replay(ScheduleStore(rows))
    replay.apply(driver.changelog, [*range(len(driver.changelog))], T0)
    replay.finish(T0)
    driver.start(rows)
    driver.ask(T0 + 9 * MINUTE, schedule_id="later", at=T0 + HOUR)
    driver.step(T0 + 9 * MINUTE)
    driver.run(T0 + 9 * MINUTE)
    assert verified(driver.trace).findings == []
