"""Which events a canary asks for: each once, and late where another one could not."""

from __future__ import annotations

from belfry.canary.rows import CanaryRows
from belfry.canary.slots import AHEAD_MS, HOUR_MS, HourRow, Probe

SECOND_MS = 1_000
BEGAN_MS = 500_000 * HOUR_MS + 100 * SECOND_MS


def slots(asked: tuple[list[Probe], int]) -> tuple[list[int], int]:
    """The slots, counted from `BEGAN_MS`, and how many are owed."""
    return [each.slot - BEGAN_MS // SECOND_MS for each in asked[0]], asked[1]


def ask(rows: CanaryRows, second: float) -> tuple[list[int], int]:
    """Ask for partition 3, so many seconds after the beginning."""
    found = rows.to_ask(3, SECOND_MS, BEGAN_MS + int(second * 1000))
    for each in found[0]:
        rows.mark(each, "asked")
    return slots(found)


def heard(first: int, last: int, *bits: str) -> HourRow:
    """A row of another process that has these bits from one slot to another."""
    row = HourRow(3, 500_000, SECOND_MS, 4)
    for name in bits:
        setattr(row, name, sum(1 << 100 + each for each in range(first, last + 1)))
    return row


def test_an_owner_asks_once_in_each_slot() -> None:
    rows = CanaryRows("belfry.slo", 4, "one")
    asked = [ask(rows, tenths / 10) for tenths in range(0, 40, 4)]
    assert [each for each in asked if each != ([], 0)] == [([n], 1) for n in range(4)]
    # One that was held up asks late, too.
    assert ask(rows, 6.5) == ([4, 5, 6], 3)


def test_the_first_one_ever_owes_nothing_of_before() -> None:
    assert ask(CanaryRows("belfry.slo", 4, "one"), 20.0) == ([20], 1)


def test_a_new_owner_asks_late_for_what_is_not_due_yet() -> None:
    rows = CanaryRows("belfry.slo", 4, "two")
    rows.known.add(heard(0, 10, "asked", "registered"))
    # Nobody asked for 11 to 20; 16 is due at 21.
    assert ask(rows, 20.5) == ([16, 17, 18, 19, 20], 10)
    assert ask(rows, 20.9) == ([], 0)
    assert ask(rows, 21.0) == ([21], 1)


def test_a_new_owner_asks_again_for_what_nobody_noted_as_accepted() -> None:
    rows = CanaryRows("belfry.slo", 4, "two")
    rows.known.add(heard(0, 10, "asked"))
    rows.known.add(heard(0, 8, "registered"))
    assert ask(rows, 11.2) == ([9, 10, 11], 1)


def test_what_was_due_at_the_take_over_was_missed() -> None:
    rows = CanaryRows("belfry.slo", 4, "two")
    rows.known.add(heard(0, 10, "asked"))
    seconds = 11 + AHEAD_MS / 1000
    assert 11 not in ask(rows, seconds)[0]
    assert rows.known.row(3, 500_000, SECOND_MS).asked >> 111 & 1 == 0
