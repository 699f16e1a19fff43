"""Every door holds what it promises for its seeds, and says so of an input that costs too much."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from time import sleep, thread_time

import pytest

from tests.fuzz import doors, limits
from tests.fuzz.engine_door import LOT, EngineDoor
from tests.fuzz.limits import Limited

SEEDS = Path(__file__).parents[2] / "fuzz" / "seeds"
GIVEN = [(path.parent.name, path) for path in sorted(SEEDS.glob("*/*"))]


# One for all tests: an application has an event loop.
made = cache(lambda name: doors.DOORS[name]())


def test_each_door_has_seeds() -> None:
    assert {name for name, _ in GIVEN} | {"requests"} == set(doors.DOORS)


@pytest.mark.parametrize(("name", "path"), GIVEN, ids=lambda each: getattr(each, "name", each))
def test_a_seed_comes_in(name: str, path: Path) -> None:
    door = made(name)
    # Over HTTP each 64th takes the whole way.
    for _ in range(65):
        door(path.read_bytes())


def test_a_lot_of_records_ends_and_the_next_one_begins() -> None:
    door = EngineDoor()
    for number in range(LOT + 1):
        door(b"key", b"%d" % number, None)
    assert door.taken == 1


def test_a_record_without_a_verdict_is_seen_amid_a_lot(monkeypatch: pytest.MonkeyPatch) -> None:
    door = EngineDoor()
    door(b"key", b"value", None)
    monkeypatch.setattr("belfry.engine.intake.Intake.take", lambda *_: None)
    with pytest.raises(AssertionError, match="0 verdicts"):
        door(b"key", b"value", None)


def busy(data: bytes) -> None:
    """A door that one input keeps busy for longer than any may, and another one waiting."""
    until_s = thread_time() + 0.06
    while data == b"slow" and thread_time() < until_s:
        pass
    if data == b"waits":
        sleep(0.1)


def test_an_input_that_is_slow_each_time_is_a_failure() -> None:
    limited = Limited(lambda: busy)
    for _ in range(limits.WARM + 1):
        limited(b"quick")
    with pytest.raises(AssertionError, match="ms a record for 4 bytes"):
        limited(b"slow")


def test_an_input_that_waits_for_its_turn_is_not_slow() -> None:
    limited = Limited(lambda: busy)
    for _ in range(limits.WARM + 1):
        limited(b"quick")
    limited(b"waits")
    assert limited.slowest_s < limits.MOST_S


def test_memory_that_stays_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytes] = []
    monkeypatch.setattr(limits, "SETTLED", 2)
    limited = Limited(lambda: lambda _: kept.append(bytes(range(256)) * 40_000), last=10)
    for _ in range(9):
        limited(b"")
    with pytest.raises(AssertionError, match="MB stay"):
        limited(b"")


def test_a_preview_has_the_time_of_ten_records() -> None:
    assert doors.records("bodies", b'\2{"count": 1000}') == 10
    assert {doors.records(name, b"\0{}") for name in doors.DOORS if name != "icalendars"} == {1}
    assert doors.records("bodies", b"") == 1
