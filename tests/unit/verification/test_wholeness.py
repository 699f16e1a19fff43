"""What is missing in a partition, and what only looks so: holes that the log can explain."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.verification.rows import Logged, Sealed
from belfry.verification.standing import Cut, Standing
from belfry.verification.wholeness import Wholeness

SEALED: Final = Sealed(2, 1, 0, 0, 0, 0, b"")
# The last manifest lies here, and the end of its transaction behind it.
MANIFEST_AT: Final = 811


def cut(first: int, last: int, lying: int | None = None) -> Cut:
    """A transaction from its first record to its manifest, and how many records lie before that."""
    return Cut(
        [], Logged(last, 0, b"\0m", b""), SEALED, first, last - first if lying is None else lying
    )


class Log:
    """A log that knows its void offsets, and notes what it is asked."""

    def __init__(self, *void: int) -> None:
        self.void = {*void}
        self.asked: list[tuple[int, int]] = []

    def is_void(self, start: int, end: int) -> bool:
        self.asked.append((start, end))
        return self.void.issuperset(range(start, end))


def wholeness(log: Log, *, contiguous: bool = True, manifest_at: int = MANIFEST_AT) -> Wholeness:
    made = Wholeness(Standing(contiguous=contiguous, manifest_at=manifest_at))
    made.is_void = log.is_void
    return made


def test_a_transaction_right_behind_the_last_one_needs_no_question() -> None:
    log = Log()
    assert wholeness(log).up_to(cut(MANIFEST_AT + 2, 820))
    assert wholeness(log, manifest_at=-2).up_to(cut(0, 4))
    assert log.asked == []


def test_a_hole_is_whole_where_the_log_says_that_nothing_lay_there() -> None:
    log = Log(*range(812, 818))
    assert wholeness(log).up_to(cut(818, 820))
    assert log.asked == [(812, 818)]


@pytest.mark.parametrize("row", [812, 814, 817])
def test_a_hole_is_not_whole_where_one_offset_of_it_may_have_held_a_row(row: int) -> None:
    assert not wholeness(Log(*{*range(812, 818)} - {row})).up_to(cut(818, 820))


def test_a_hole_at_the_beginning_is_asked_about_from_the_first_offset_on() -> None:
    log = Log(0, 1, 2)
    assert wholeness(log, manifest_at=-2).up_to(cut(3, 5))
    assert log.asked == [(0, 3)]


def test_a_hole_is_asked_about_once() -> None:
    """A transaction is looked at again and again where its events are waited for."""
    log = Log()
    made = wholeness(log)
    assert [made.up_to(cut(818, 820)) for _ in range(3)] == [False] * 3
    assert len(log.asked) == 1


def test_nothing_is_asked_where_rows_are_missing_before_or_within() -> None:
    """A compacted log has a hole before each transaction."""
    log = Log(*range(812, 818))
    assert not wholeness(log, contiguous=False).up_to(cut(818, 820))
    assert not wholeness(log).up_to(cut(818, 822, lying=3))
    assert log.asked == []


def test_a_record_where_the_end_of_the_last_transaction_belongs_is_a_hole_nobody_explains() -> None:
    log = Log()
    assert not wholeness(log).up_to(cut(MANIFEST_AT + 1, 820))
    assert log.asked == []


def test_without_a_log_to_ask_a_hole_is_not_whole() -> None:
    assert not Wholeness(Standing(manifest_at=MANIFEST_AT)).up_to(cut(818, 820))
