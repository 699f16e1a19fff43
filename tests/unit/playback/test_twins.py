"""Other ways to the same bytes: which of them are tried, and which are kept."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.playback import twins
from belfry.playback.attempts import Attempt
from belfry.playback.twins import copied, other_ways, same_rows
from belfry.store.ordered_map import MemoryMap
from tests.unit.playback.rows import WRITTEN, step

# The watermark of a step is 15 000, and it was written at 20 000.
WATERMARK: Final = 15_000
FIT: Final = Attempt(17_000, 100)
SAME, MORE, THIRD = ("as the likeliest",), ("one more is held back",), ("two more are",)
Left = tuple[object, ...] | None


class Tries:
    """Tells what attempts leave by their sizes, and keeps which were made.

    At other instants than that of the likeliest, each leaves the same as it.
    """

    def __init__(self, by_size: dict[int, Left], silent: Left = SAME) -> None:
        self.by_size = by_size
        self.silent = silent
        self.made: list[tuple[int, int]] = []
        self.seen: list[tuple[object, ...]] = [SAME]

    def __call__(self, attempt: Attempt) -> Left:
        self.made.append((attempt.now_ms, attempt.at_most if attempt.fires else 0))
        if not attempt.fires:
            return self.silent
        return self.by_size[attempt.at_most] if attempt.now_ms == FIT.now_ms else SAME

    def ways(self, fired: int = 0) -> list[tuple[int, bool]]:
        """Sizes of the ways that are kept, and whether they fire."""
        found = other_ways(FIT, step({}, fired), (50, 200, 5), self.seen, self)
        assert all(each.now_ms == FIT.now_ms for each in found)
        return [(each.at_most, each.fires) for each in found]


def test_small_sizes_come_first_and_none_behind_one_that_does_the_same() -> None:
    tries = Tries({1: None, 5: MORE, 50: THIRD, 100: SAME})
    assert tries.ways() == [(5, True), (50, True)]
    at_instant = [(FIT.now_ms, size) for size in (1, 5, 50, 100)]
    assert tries.made == [(WRITTEN, 1), *at_instant, (WATERMARK, 1), (FIT.now_ms, 0)]


def test_behind_one_that_fits_a_larger_one_may_do_more_than_the_step() -> None:
    tries = Tries({1: None, 5: MORE, 50: None})
    assert tries.ways() == [(5, True)]
    assert (FIT.now_ms, 100) not in tries.made


def test_each_other_thing_is_kept_once() -> None:
    tries = Tries({1: MORE, 5: MORE, 50: THIRD, 100: SAME}, silent=THIRD)
    assert tries.ways() == [(1, True), (50, True)]
    assert tries.seen == [SAME, MORE, THIRD]
    assert Tries({1: SAME}, silent=MORE).ways() == [(100, False)]


def test_what_fired_tells_its_instant_and_how_much_it_was_at_least() -> None:
    tries = Tries({40: MORE, 50: THIRD, 100: None, 200: SAME})
    assert tries.ways(fired=40) == [(40, True), (50, True)]
    assert tries.made == [(FIT.now_ms, size) for size in (40, 50, 100)]


def test_a_copy_has_all_rows_however_many_are_copied_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(twins, "COPIED_AT_ONCE", 2)
    rows = MemoryMap()
    rows.write({b"" if n == 0 else b"%d" % n: b"row %d" % n for n in range(5)})
    copy = copied(rows, MemoryMap())
    assert [*copy.scan(b"", b"\xff")] == [*rows.scan(b"", b"\xff")]
    assert same_rows(rows, copy)
    copy.write({b"9": b"one more"})
    assert not same_rows(rows, copy)
    assert not same_rows(copy, rows)
    rows.write({b"9": b"another"})
    assert not same_rows(rows, copy)
