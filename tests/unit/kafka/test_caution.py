"""A reader copies few records at a time while a batch has unpacked to unusually much."""

from __future__ import annotations

import pytest

from belfry.kafka import caution
from belfry.kafka.caution import FEW, JUMP_BYTES, LONGEST_S, MOST, SMALL_BYTES, Caution

ALL = 8_000


class Machine:
    """Memory and clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.resident, self.now = 1_000, 0.0
        monkeypatch.setattr(caution, "resident_bytes", lambda: self.resident)
        monkeypatch.setattr(caution, "monotonic", lambda: self.now)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_who_sees_no_jump_takes_all(machine: Machine) -> None:
    reader = Caution()
    for _ in range(9):
        machine.resident += JUMP_BYTES
        assert reader.at_most(ALL) == ALL


def test_after_a_jump_few_are_taken_until_as_much_has_been_read(machine: Machine) -> None:
    reader = Caution()
    machine.resident += 2 * JUMP_BYTES
    for _ in range(2 * JUMP_BYTES // 1_000_000 + 1):
        assert reader.at_most(ALL) == FEW
        assert reader.at_most(3) == 3
        reader.took(SMALL_BYTES)
    assert reader.at_most(ALL) == ALL


def test_small_ones_are_taken_more_at_a_time_but_never_many(machine: Machine) -> None:
    reader = Caution()
    machine.resident += 2 * JUMP_BYTES
    taken = []
    for _ in range(6):
        taken.append(reader.at_most(ALL))
        reader.took(1_000)
    assert taken == [16, 32, 64, 128, 128, 128]
    assert max(taken) == MOST
    reader.took(SMALL_BYTES)
    assert reader.at_most(ALL) == FEW


@pytest.mark.parametrize("end", ["memory", "time"])
def test_a_jump_that_meant_nothing_is_forgotten(machine: Machine, end: str) -> None:
    reader = Caution()
    machine.resident += 2 * JUMP_BYTES
    assert reader.at_most(ALL) == FEW
    machine.now += LONGEST_S + 1 if end == "time" else 0
    machine.resident -= 2 * JUMP_BYTES if end == "memory" else 0
    assert reader.at_most(ALL) == FEW
    assert reader.at_most(ALL) == ALL
