"""N at once: a group waits while so many of its fires are to be acknowledged."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.store.layout.keys import awaited_key
from belfry.store.lock_lookup import locks
from tests.unit.engine.acknowledging import ack, fire_id, rebuilt
from tests.unit.engine.driver import T0, Driver

WAIT = 30_000


def begun(*members: tuple[str, int], **fields: Any) -> Driver:
    """Members of the group `g` by name, each with how many it allows; due second by second."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    for second, (name, at_once) in enumerate(members):
        given = {"concurrency": at_once or None, "ack_timeout_ms": WAIT, "group": "g", **fields}
        driver.ask(schedule_id=name, at=T0 + second * 1_000, **given)
    driver.step(T0 - 1, fire=False)
    return driver


# due   0     1     2     3     4            ack of c2     ack of c1, c3
# ──────●─────●─────●─────┬─────┬────────────●─────────────●──►
#       c1    c2    c3    c4    c5 wait      c4 fires      c5 fires
def test_three_are_out_and_each_acknowledgement_lets_one_more_out() -> None:
    driver = begun(*((f"c{number}", 3) for number in range(1, 6)))
    shots = driver.step(T0 + 9_000).shots
    assert [shot.id for shot in shots] == ["c1", "c2", "c3"]
    assert driver.run(T0 + 9_000) == []
    ack(driver, shots[1], T0 + 9_001)
    assert driver.run(T0 + 9_001) == ["c4"]
    ack(driver, shots[0], T0 + 9_002)
    ack(driver, shots[2], T0 + 9_002)
    assert driver.run(T0 + 9_002) == ["c5"]


def test_the_strictest_of_those_that_are_out_counts() -> None:
    driver = begun(("a", 3), ("b", 1), ("c", 3))
    shots = driver.step(T0 + 9_000).shots
    assert [shot.id for shot in shots] == ["a", "b"]
    ack(driver, shots[0], T0 + 9_001)
    assert driver.run(T0 + 9_001) == []
    ack(driver, shots[1], T0 + 9_002)
    assert driver.run(T0 + 9_002) == ["c"]


def test_members_without_a_number_wait_and_take_no_place() -> None:
    driver = begun(("a", 2), ("n", 0), ("b", 2), ("m", 0), ("c", 2))
    shots = driver.step(T0 + 9_000).shots
    assert [shot.id for shot in shots] == ["a", "n", "b"]
    ack(driver, shots[2], T0 + 9_001)
    assert driver.run(T0 + 9_001) == ["m", "c"]


def test_a_time_out_makes_room_as_well() -> None:
    driver = begun(("a", 2), ("b", 2), ("c", 2), ("d", 2))
    assert driver.run(T0) == ["a"]
    assert driver.run(T0 + 5_000) == ["b"]
    assert driver.run(T0 + WAIT - 1) == []
    assert driver.run(T0 + WAIT) == ["c"]
    assert driver.run(T0 + 5_000 + WAIT) == ["d"]


def test_a_new_owner_counts_what_is_out() -> None:
    driver = begun(("a", 2), ("b", 2), ("c", 2))
    shots = driver.step(T0 + 9_000).shots
    rebuilt(driver, T0 + 9_000)
    assert driver.run(T0 + 9_000) == []
    found, _ = locks(driver.rows, b"demo", None, limit=9)
    assert {held.fire_id.decode() for held in found} == {fire_id(shot) for shot in shots}
    assert driver.rows.get(b"k" + awaited_key(b"demo", found[0].fire_id)) is not None
    ack(driver, shots[0], T0 + 9_001)
    assert driver.run(T0 + 9_001) == ["c"]


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"concurrency": 0, "group": "g"}, "bad_concurrency", "concurrency 0 is not allowed: 1 to"),
        ({"concurrency": 256, "group": "g"}, "bad_concurrency", "1 to 255 fires of the group"),
        ({"concurrency": 2, "group": "g", "serial": True}, "bad_concurrency", "leave serial out"),
        ({"concurrency": 2}, "no_group", "concurrency lets a group wait"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], code: str, said: str) -> None:
    driver = Driver()
    driver.ask(at=T0, **fields)
    (told,) = driver.step(T0, fire=False).effects.lifecycle
    assert (str(told.outcome), told.code) == ("REJECTED", code)
    assert said in (told.reason or "")
