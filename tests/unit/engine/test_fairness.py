"""A crowd of one tenant keeps nobody waiting, and its own events keep their order."""

from __future__ import annotations

import pytest

from belfry.engine.queues import SHORT_STEP
from belfry.firing.hot_tenants import HOT_FROM
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import EffectivePolicy, Level
from belfry.tenants.policy import TenantPolicy
from tests.unit.engine.driver import T0, Driver, Watched

MANY = 3 * HOT_FROM
CHUNK = 4_000


def crowded() -> Driver:
    """Many events of `crowd` and ten of `quiet`, due in the same second."""
    driver = Driver(level=Level.FAILURES)
    due = T0 + 600_000
    for number in range(MANY):
        driver.ask(tenant="crowd", schedule_id=f"c{number}", at=due + number * 1_000 // MANY)
        if number % 1_000 == 0:
            driver.step(T0)
    for number in range(10):
        driver.ask(tenant="quiet", schedule_id=f"q{number}", at=due + 900 + number)
    driver.step(T0)
    return driver


def fired(driver: Driver, now_ms: int) -> list[str]:
    """Ids in the order of their fires, until nothing is due."""
    return driver.run(now_ms, CHUNK)


def test_ten_events_pass_a_crowd() -> None:
    driver = crowded()
    ids = fired(driver, T0 + 601_000)
    assert len(ids) == len(set(ids)) == MANY + 10
    last_quiet = max(ids.index(f"q{number}") for number in range(10))
    # Two short steps beyond those that were in the timeline before the crowd was noticed.
    assert last_quiet < HOT_FROM + 2 * SHORT_STEP < MANY
    crowd = [each for each in ids if each[0] == "c"]
    assert crowd == sorted(crowd, key=lambda each: int(each[1:]))
    assert driver.engine.pending == 0


def test_nothing_of_a_crowd_fires_early() -> None:
    driver = crowded()
    early = fired(driver, T0 + 600_500)
    assert 0 < len(early) <= MANY // 2 + MANY // 500
    assert driver.engine.next_due_ms() == T0 + 600_501


@pytest.mark.parametrize("lost", [False, True], ids=["from disk", "from the changelog"])
def test_a_crowd_survives_a_new_owner(lost: bool) -> None:
    driver = crowded()
    first = fired(driver, T0 + 600_300)
    rows = driver.rows
    if lost:
        rows = MemoryMap()
        replay = Replay(ScheduleStore(rows))
        end = len(driver.changelog)
        replay.apply(driver.changelog, range(end), T0)
        replay.finish(T0)
    driver.start(rows)
    rest = fired(driver, T0 + 601_000)
    assert len(set(first) | set(rest)) == len(first) + len(rest) == MANY + 10


def test_a_rolled_back_step_of_a_crowd_is_done_again() -> None:
    driver = crowded()
    driver.step(T0 + 600_400, CHUNK, commit=False)
    driver.step(T0 + 600_400, CHUNK)
    driver.step(T0 + 600_800, CHUNK, commit=False)
    done = set(driver.run(T0 + 601_000, CHUNK))
    assert driver.engine.pending == 0
    assert len(done) >= MANY + 10 - CHUNK


def test_a_crowd_that_is_cancelled_leaves_nothing() -> None:
    driver = crowded()
    for number in range(MANY):
        driver.ask(tenant="crowd", schedule_id=f"c{number}", action="CANCEL")
    driver.step(T0 + 1)
    assert driver.engine.pending == 10
    assert fired(driver, T0 + 601_000) == [f"q{number}" for number in range(10)]


def test_the_larger_priority_goes_first() -> None:
    driver = Driver(level=Level.FAILURES)
    for name, priority in (("low", -2), ("middle", -1)):
        driver.tenants.follow(EffectivePolicy(TenantPolicy(name, priority=priority)))
        for number in range(10):
            driver.ask(tenant=name, schedule_id=f"{name}{number}", at=T0 + 5)
    driver.ask(tenant="plain", schedule_id="plain", at=T0 + 6)
    driver.step(T0)
    first = driver.step(T0 + 10, at_most=8).ids
    rest = driver.run(T0 + 10, at_most=8)
    everything = first + rest
    assert set(first) <= {"plain", *(f"middle{n}" for n in range(10))}
    lows = [everything.index(f"low{n}") for n in range(10)]
    assert min(lows) > max(everything.index(f"middle{n}") for n in range(10))


def test_a_tenant_fires_at_its_rate() -> None:
    driver = Driver(level=Level.FAILURES)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("slow", max_fires_per_second=10.0)))
    for number in range(30):
        driver.ask(tenant="slow", schedule_id=f"s{number}", at=T0 + 1_000)
    driver.ask(tenant="quick", schedule_id="q", at=T0 + 1_000)
    driver.step(T0)
    fires: list[tuple[int, str]] = []
    now = T0 + 1_000
    while driver.engine.pending:
        fires += [(now, each) for each in driver.run(now)]
        due = driver.engine.next_due_ms()
        assert due is None or due > now, "a tenant over its rate must not keep the loop busy"
        now = due if due is not None else now + 1
    assert (T0 + 1_000, "q") in fires
    slow = [at for at, each in fires if each[0] == "s"]
    assert len(slow) == 30
    assert 2_800 <= slow[-1] - slow[0] <= 3_100


def test_a_rate_counts_events_that_waited_before_the_policy() -> None:
    driver = Driver(level=Level.FAILURES)
    for number in range(20):
        driver.ask(tenant="slow", schedule_id=f"s{number}", at=T0 + 1_000)
    driver.step(T0)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("slow", max_fires_per_second=10.0)))
    assert len(driver.run(T0 + 1_000)) <= 2
    assert len(driver.run(T0 + 1_500)) <= 6
    driver.tenants.follow(EffectivePolicy(TenantPolicy("slow")))
    driver.run(T0 + 1_501)
    assert driver.engine.pending == 0


def test_what_recurs_in_a_queued_tenants_group_misses_nothing() -> None:
    """Each occurrence is put back amid rows that are due later, and still comes first."""
    driver = Driver(level=Level.FAILURES)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("slow", max_fires_per_second=10_000.0)))
    driver.ask(
        tenant="slow", schedule_id="r", kind="EVERY", interval_ms=100, start_at=T0 + 100,
        group="g", max_fires=5,
    )  # fmt: skip
    for number in range(5):
        driver.ask(tenant="slow", schedule_id=f"s{number}", at=T0 + 450 + number, group="g")
    driver.step(T0)
    ids = [each for now in range(T0, T0 + 600, 50) for each in driver.run(now)]
    assert ids == ["r"] * 4 + [f"s{number}" for number in range(5)] + ["r"]
    assert driver.engine.pending == 0


def test_a_late_step_keeps_that_order() -> None:
    driver = Driver(level=Level.FAILURES)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("slow", max_fires_per_second=10_000.0)))
    driver.ask(
        tenant="slow", schedule_id="r", kind="EVERY", interval_ms=100, start_at=T0 + 100,
        group="g", max_fires=5,
    )  # fmt: skip
    for number in range(5):
        driver.ask(tenant="slow", schedule_id=f"s{number}", at=T0 + 450 + number, group="g")
    driver.step(T0)
    assert driver.run(T0 + 600) == ["r"] * 4 + [f"s{number}" for number in range(5)] + ["r"]


def test_a_step_that_fires_all_that_is_due_of_a_queued_tenant_leaves_nothing_due() -> None:
    """A loop that asks when to come back is not told of an instant that is over."""
    driver = Driver(level=Level.FAILURES)
    driver.tenants.follow(EffectivePolicy(TenantPolicy("slow", max_fires_per_second=10_000.0)))
    driver.ask(tenant="slow", schedule_id="s0", at=T0 + 1)
    # The only one that waits in the timeline.
    driver.ask(tenant="quick", schedule_id="q", at=T0 + 900)
    driver.step(T0)
    assert driver.run(T0 + 100) == ["s0"]
    for number in range(2, 7):
        driver.ask(tenant="slow", schedule_id=f"s{number}", at=T0 + number * 100)
    driver.step(T0 + 100)
    assert driver.step(T0 + 340).ids == ["s2", "s3"]
    assert driver.engine.next_due_ms() == T0 + 341
    # Half of its room is left to the timeline.
    assert driver.step(T0 + 640, at_most=2).ids == ["s4"]
    assert (driver.engine.next_due_ms() or 0) <= T0 + 640
    assert driver.step(T0 + 640).ids == ["s5", "s6"]
    assert (driver.engine.next_due_ms() or 0) > T0 + 640


def test_a_new_owner_does_not_read_the_crowd() -> None:
    driver = crowded()
    rows = Watched(driver.rows)
    driver.start(rows)
    assert 0 < rows.read < 50
    assert len(fired(driver, T0 + 601_000)) == MANY + 10
