"""After the acknowledgement of another schedule: due once it is there, exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.engine.after_acks import GRACE_MS
from belfry.engine.dependents import MOST_WAITING
from belfry.schedules.triggers.acknowledged import FAR_MS
from belfry.store.layout.pending import decode_pending
from tests.unit.engine.acknowledging import WAIT, ack, fires, ids, rebuilt, serial
from tests.unit.engine.driver import T0, Driver, Shot

LATEST = T0 + 90_000


def begun(**fields: Any) -> Driver:
    """`x`, due in a second, and `y` after its acknowledgement."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    serial(driver, "x", T0 + 1_000)
    after(driver, "y", **fields)
    assert driver.step(T0, fire=False).outcomes == ["ACCEPTED", "ACCEPTED"]
    return driver


def after(driver: Driver, schedule_id: str, **fields: Any) -> int:
    given = {"kind": "AFTER_ACK", "after_ack": "x", **fields}
    return driver.ask(schedule_id=schedule_id, **given)


def fired(driver: Driver, now_ms: int = T0 + 1_000) -> Shot:
    """Let `x` fire, and nothing else."""
    (shot,) = fires(driver, now_ms)
    assert shot.id == "x"
    return shot


def due_of(driver: Driver, schedule_id: str) -> int:
    name = f"demo/{schedule_id}".encode()
    store = driver.engine._store
    row = store.named(name)
    assert row is not None
    return decode_pending(store.pending_at(name, row)).due_ms


# x ─────●═══════● ACK
# y              ● fires, by the arrival of the ACK
def test_it_fires_when_the_fire_is_acknowledged_and_not_before() -> None:
    driver = begun()
    assert driver.engine.next_due_ms() == T0 + 1_000
    shot = fired(driver)
    assert fires(driver, T0 + 20_000) == []
    assert ack(driver, shot, T0 + 20_000, timestamp_ms=T0 + 19_000).outcomes == ["UPDATED"]
    (found,) = fires(driver, T0 + 20_000)
    assert (found.id, found.header("belfry-scheduled-at")) == ("y", b"2027-01-15T08:00:19.000Z")
    assert driver.run(T0 + 999_000) == []


def test_the_verdict_names_no_instant_as_long_as_none_is_known() -> None:
    driver = Driver()
    serial(driver, "x", T0 + 1_000)
    after(driver, "y")
    after(driver, "z", latest_at=LATEST)
    told = driver.step(T0, fire=False).effects.lifecycle
    assert [each.due_at for each in told] == [T0 + 1_000, None, LATEST]


def test_it_waits_its_delay_and_its_jitter_behind_the_acknowledgement() -> None:
    driver = begun(ack_delay_ms=5_000, jitter_ms=10_000)
    ack(driver, fired(driver), T0 + 3_000, timestamp_ms=T0 + 3_000)
    due_ms = driver.engine.next_due_ms()
    assert due_ms is not None
    assert T0 + 8_000 < due_ms < T0 + 18_000
    assert driver.run(due_ms - 1) == []
    assert driver.run(due_ms) == ["y"]


def test_a_timeout_is_no_acknowledgement() -> None:
    driver = begun()
    fired(driver)
    assert driver.run(T0 + 1_000 + WAIT) == []
    assert due_of(driver, "y") == FAR_MS


# x ─●══ time-out            ┌ z fires
# ─────────────────── LATEST ●
def test_at_the_latest_it_fires_all_the_same() -> None:
    driver = begun()
    after(driver, "z", latest_at=LATEST, ack_delay_ms=1_000)
    driver.step(T0, fire=False)
    fired(driver)
    assert driver.run(LATEST - 1) == []
    assert driver.engine.next_due_ms() == LATEST
    assert driver.run(LATEST) == ["z"]


def test_an_acknowledgement_with_its_delay_is_never_behind_the_latest_instant() -> None:
    driver = begun(latest_at=LATEST, ack_delay_ms=600_000)
    ack(driver, fired(driver), T0 + 2_000)
    assert due_of(driver, "y") == LATEST


def test_a_bound_that_is_rolled_back_is_met_again() -> None:
    driver = begun(latest_at=LATEST)
    fired(driver)
    driver.run(LATEST - 1)
    driver.step(LATEST, take=0, commit=False)
    assert driver.run(LATEST) == ["y"]


def test_each_is_let_go_once_where_several_are_due_by_then() -> None:
    """A bound of each of them finds all of them; the backlog counts them, and is empty then."""
    driver = begun(latest_at=LATEST)
    after(driver, "z", latest_at=LATEST + 1)
    driver.step(T0, fire=False, commit=False)
    driver.step(T0, fire=False)
    fired(driver)
    assert driver.step(LATEST + 1, take=0).ids == []
    assert driver.step(LATEST + 2, take=0).ids == ["y", "z"]
    assert driver.engine.next_due_ms() is None


def test_an_acknowledgement_of_before_does_not_count() -> None:
    driver = Driver()
    driver.ask(schedule_id="x", kind="EVERY", interval_ms=10_000, overlap="SKIP")
    driver.step(T0, fire=False)
    (shot,) = fires(driver, T0 + 10_000)
    ack(driver, shot, T0 + 11_000)
    after(driver, "y")
    driver.step(T0 + 11_000, fire=False)
    assert driver.run(T0 + 19_999) == []
    # The next occurrence of what recurs is the one that counts.
    (again,) = fires(driver, T0 + 20_000)
    ack(driver, again, T0 + 21_000)
    assert driver.run(T0 + 21_000) == ["y"]
    (third,) = fires(driver, T0 + 30_000)
    ack(driver, third, T0 + 31_000)
    assert driver.run(T0 + 31_000) == []


def test_a_fire_that_is_out_already_may_be_waited_for() -> None:
    driver = begun()
    shot = fired(driver)
    after(driver, "z")
    assert driver.step(T0 + 2_000, fire=False).outcomes == ["ACCEPTED"]
    ack(driver, shot, T0 + 3_000)
    assert driver.run(T0 + 3_000) == ["y", "z"]


def test_a_request_and_the_acknowledgement_of_one_step_meet() -> None:
    driver = begun()
    shot = fired(driver)
    after(driver, "z")
    driver.ask(action="CANCEL", schedule_id="y")
    ack(driver, shot, T0 + 3_000)
    assert driver.run(T0 + 3_000) == ["z"]


@pytest.mark.parametrize("taken_over", [False, True], ids=["rolled back", "taken over"])
def test_it_fires_once_over_roll_backs_and_take_overs(taken_over: bool) -> None:
    driver = begun()
    shot = fired(driver)
    if taken_over:
        rebuilt(driver, T0 + 2_000)
    driver.ask(
        action="ACK", schedule_id="x", fire_id=(shot.header("belfry-fire-id") or b"").decode()
    )
    driver.step(T0 + 3_000, fire=False, commit=False)
    assert due_of(driver, "y") == FAR_MS
    driver.step(T0 + 3_000, fire=False)
    if taken_over:
        rebuilt(driver, T0 + 3_000)
    assert driver.run(T0 + 3_000) == ["y"]
    if taken_over:
        rebuilt(driver, T0 + 4_000)
    assert driver.run(T0 + 999_000) == []


def test_a_new_owner_knows_the_bounds() -> None:
    driver = begun(latest_at=LATEST)
    fired(driver)
    rebuilt(driver, T0 + 2_000)
    driver.run(T0 + 60_000)
    assert driver.engine.next_due_ms() == LATEST
    assert driver.run(LATEST) == ["y"]


# -- what becomes of it where nobody can acknowledge any more --------------------------------------


def test_it_is_given_up_a_minute_after_nothing_is_left_of_whom_it_waits_for() -> None:
    driver = begun()
    after(driver, "z", latest_at=T0 + 900_000)
    driver.ask(action="CANCEL", schedule_id="x")
    driver.step(T0, fire=False)
    for second in range(3):
        assert driver.sweep(T0 + second * 1_000).lifecycle == []
    told = driver.sweep(T0 + 1_000 + GRACE_MS).lifecycle
    assert [(each.schedule_id, str(each.outcome), each.code) for each in told] == [
        ("y", "MISSED", "never_acknowledged")
    ]
    # What has a last instant waits for it.
    assert driver.run(T0 + 900_000) == ["z"]
    driver.ask(action="CANCEL", schedule_id="y")
    assert driver.step(T0 + 900_000).outcomes == ["TOO_LATE"]


def test_it_is_not_given_up_while_a_fire_is_to_be_acknowledged_or_who_comes_back_in_time() -> None:
    driver = begun()
    shot = fired(driver)
    rebuilt(driver, T0 + 1_500)
    for second in range(2, 20):
        driver.sweep(T0 + second * 1_000)
    driver.run(T0 + 1_000 + WAIT)
    driver.sweep(T0 + 40_000)
    driver.sweep(T0 + 41_000)
    serial(driver, "x", T0 + 70_000)
    driver.step(T0 + 60_000, fire=False)
    for second in range(60, 240):
        driver.sweep(T0 + second * 1_000)
    assert due_of(driver, "y") == FAR_MS
    assert shot.id == "x"


# -- what is refused ------------------------------------------------------------------------------


def test_nobody_to_be_acknowledged_is_refused_unless_it_is_bounded() -> None:
    driver = Driver()
    driver.ask(schedule_id="plain", at=T0 + 1_000)
    after(driver, "a", after_ack="nobody")
    after(driver, "b", after_ack="plain")
    after(driver, "c", after_ack="nobody", latest_at=LATEST)
    step = driver.step(T0, fire=False)
    assert step.codes == ["unknown_awaited", "unknown_awaited"]
    assert step.outcomes == ["ACCEPTED", "REJECTED", "REJECTED", "ACCEPTED"]


def test_a_circle_is_refused() -> None:
    driver = begun(group="y", serial=True)
    after(driver, "z", after_ack="y", group="z", serial=True)
    assert driver.step(T0, fire=False).outcomes == ["ACCEPTED"]
    after(driver, "x", after_ack="z", group="g", serial=True)
    after(driver, "y", after_ack="y")
    step = driver.step(T0, fire=False)
    assert step.codes == ["circular_wait", "bad_after_ack"]
    assert due_of(driver, "x") == T0 + 1_000


def test_so_many_may_wait_for_one() -> None:
    driver = begun()
    for number in range(MOST_WAITING):
        after(driver, f"w{number}")
    step = driver.step(T0, fire=False)
    assert step.codes == ["too_many_waiting"]
    # One that waits already may be changed.
    after(driver, "y", payload=b"other")
    assert driver.step(T0, fire=False).outcomes == ["UPDATED"]
    ack(driver, fired(driver), T0 + 2_000)
    assert len(driver.run(T0 + 2_000)) == MOST_WAITING


def test_a_tenant_that_is_spread_is_told_so() -> None:
    driver = Driver(partitions=1)
    driver.apply(spread=2)
    after(driver, "y", latest_at=LATEST)
    assert driver.step(T0, fire=False).codes == ["wait_of_spread_tenant"]


# -- changes while it waits ------------------------------------------------------------------------


def test_the_same_again_changes_nothing_and_another_payload_goes_on_waiting() -> None:
    driver = begun(payload=b"a")
    after(driver, "y", payload=b"a")
    after(driver, "y", payload=b"b")
    assert driver.step(T0, fire=False).outcomes == ["UNCHANGED", "UPDATED"]
    ack(driver, fired(driver), T0 + 2_000)
    (shot,) = fires(driver, T0 + 2_000)
    assert shot.value == b"b"


def test_who_was_acknowledged_keeps_the_instant_and_waits_anew_for_another() -> None:
    driver = begun(ack_delay_ms=60_000)
    ack(driver, fired(driver), T0 + 2_000, timestamp_ms=T0 + 2_000)
    after(driver, "y", ack_delay_ms=60_000, payload=b"b")
    driver.step(T0 + 2_000, fire=False)
    assert due_of(driver, "y") == T0 + 62_000
    serial(driver, "x", T0 + 50_000)
    after(driver, "y", ack_delay_ms=30_000, payload=b"b")
    driver.step(T0 + 2_000, fire=False)
    assert due_of(driver, "y") == FAR_MS


def test_a_paused_one_hears_no_acknowledgement() -> None:
    driver = begun()
    after(driver, "z")
    driver.ask(action="PAUSE", schedule_id="y")
    driver.step(T0, fire=False)
    ack(driver, fired(driver), T0 + 2_000)
    assert driver.run(T0 + 2_000) == ["z"]
    rebuilt(driver, T0 + 2_000)
    driver.ask(action="RESUME", schedule_id="y")
    serial(driver, "x", T0 + 3_000)
    assert driver.step(T0 + 2_500, fire=False).outcomes == ["RESUMED", "ACCEPTED"]
    ack(driver, fired(driver, T0 + 3_000), T0 + 4_000)
    assert driver.run(T0 + 4_000) == ["y"]


def test_a_trigger_fires_besides_and_a_cancel_ends_the_wait() -> None:
    driver = begun()
    driver.ask(action="TRIGGER", schedule_id="y")
    assert driver.step(T0, fire=False).ids == ["y"]
    driver.ask(action="CANCEL", schedule_id="y")
    assert driver.step(T0, fire=False).outcomes == ["CANCELLED"]
    ack(driver, fired(driver), T0 + 2_000)
    assert driver.run(T0 + 999_000) == []


def test_an_import_waits_on_or_has_had_its_acknowledgement() -> None:
    driver = begun()
    stood = {"occurrence": 0, "version": 3, "paused": False}
    after(driver, "w", action="CREATE", standing={**stood, "next_at": FAR_MS})
    after(driver, "h", action="CREATE", standing={**stood, "next_at": T0 + 500}, ack_delay_ms=9)
    assert driver.step(T0, fire=False).outcomes == ["ACCEPTED", "ACCEPTED"]
    assert driver.run(T0 + 500) == ["h"]
    ack(driver, fired(driver), T0 + 2_000)
    assert ids(fires(driver, T0 + 2_000)) == ["y", "w"]


def test_a_new_owner_knows_that_a_fire_is_still_to_be_acknowledged() -> None:
    driver = begun()
    serial(driver, "x", T0 + 1_000, ack_timeout_ms=900_000)
    driver.step(T0, fire=False)
    shot = fired(driver)
    rebuilt(driver, T0 + 2_000)
    for second in range(3, 200):
        driver.sweep(T0 + second * 1_000)
    ack(driver, shot, T0 + 200_000)
    assert driver.run(T0 + 200_000) == ["y"]
