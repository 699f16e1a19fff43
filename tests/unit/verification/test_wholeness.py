"""What is missing in a partition, and what only looks so: holes that the log can explain."""

from __future__ import annotations

from typing import Final

import pytest

from belfry.verification.rows import Logged, Sealed
from belfry.verification.standing import Cut, Standing, cut_of
from belfry.verification.wholeness import MOST_TRUSTED, Wholeness

SEALED: Final = Sealed(2, 1, 0, 0, 0, 0, b"")
# The last manifest lies here, and the end of its transaction behind it.
MANIFEST_AT: Final = 811


def cut(*offsets: int) -> Cut:
    """A transaction of records at these offsets, the last of which is its manifest."""
    return cut_of([Logged(offset, 0, b"a row", b"") for offset in offsets], SEALED)


class Log:
    """A log that knows its void offsets, and notes what it is asked."""

    def __init__(self, *void: int) -> None:
        self.void = {*void}
        self.asked: list[tuple[int, int]] = []

    def is_void(self, start: int, end: int) -> bool:
        self.asked.append((start, end))
        return self.void.issuperset(range(start, end))


class Read:
    """A partition that is read transaction by transaction."""

    def __init__(
        self, log: Log, *, contiguous: bool = True, manifest_at: int = MANIFEST_AT
    ) -> None:
        ends = int(manifest_at >= 0)
        self.standing = Standing(contiguous=contiguous, manifest_at=manifest_at, ends=ends)
        self.wholeness = Wholeness(self.standing)
        self.wholeness.is_void = log.is_void

    def is_whole(self, *offsets: int) -> bool:
        """Whether nothing is missing up to this transaction, which is then the last one."""
        read, standing = cut(*offsets), self.standing
        standing.contiguous = self.wholeness.up_to(read)
        standing.ends, standing.manifest_at = self.wholeness.ends, read.last.offset
        standing.trusted = self.wholeness.trusted
        return standing.contiguous


def test_transactions_with_an_end_each_need_no_question() -> None:
    log = Log()
    begun = Read(log, manifest_at=-2)
    assert all(begun.is_whole(*each) for each in [(0, 1, 2), (4,), (6, 7)])
    assert log.asked == []


@pytest.mark.parametrize(
    "transactions",
    [
        # The end of the last one lies behind the next manifest, with the end of that one.
        [(812, 813), (816, 817), (819,)],
        # Within the next one.
        [(812, 814), (816,)],
        # Two late, and then one.
        [(812,), (815, 816), (818,), (820,)],
        # One of two.
        [(812,), (814,), (817,)],
    ],
)
def test_ends_that_come_late_need_no_question(transactions: list[tuple[int, ...]]) -> None:
    """The next transaction may be faster than the brokers' words to one another."""
    log = Log()
    read = Read(log)
    assert [read.is_whole(*each) for each in transactions] == [True] * len(transactions)
    assert log.asked == []


def test_many_manifests_of_one_transaction_excuse_no_rows() -> None:
    """A mirror carries many of a source's transactions in one, with one end for all."""
    log = Log()
    read = Read(log, manifest_at=-2)
    assert all(read.is_whole(offset) for offset in range(9))
    assert read.is_whole(10, 11), "the one end"
    assert not read.is_whole(15), "three offsets are missing"
    assert log.asked == [(12, 15)]


def test_a_hole_is_whole_where_the_log_says_that_nothing_lay_there() -> None:
    log = Log(*range(812, 818))
    read = Read(log)
    assert read.is_whole(818, 819)
    assert log.asked == [(812, 818)]
    assert read.is_whole(821)
    assert not read.is_whole(824), "there is one end, and two offsets are missing"


def test_behind_a_hole_that_the_log_explained_one_end_is_to_come() -> None:
    """Those of transactions before lie in the hole, as an owner's that a kill has ended do."""
    read = Read(Log(*range(813, 818)))
    assert read.is_whole(812), "two ends are to come"
    assert read.is_whole(818, 819)
    assert not read.is_whole(822), "there is one end, and two offsets are missing"


@pytest.mark.parametrize("row", [812, 814, 817])
def test_a_hole_is_not_whole_where_one_offset_of_it_may_have_held_a_row(row: int) -> None:
    read = Read(Log(*{*range(812, 818)} - {row}))
    assert not read.is_whole(818, 819)
    assert not read.is_whole(821), "what is missing stays missing"


def test_a_hole_within_a_transaction_is_asked_about_as_well() -> None:
    log = Log(815, 816, 817)
    assert not Read(log).is_whole(812, 815, 818)
    assert log.asked == [(813, 815)]
    log = Log(812, 813, 815)
    assert Read(log).is_whole(814, 816)
    assert log.asked == [(812, 814), (815, 816)]


def test_a_hole_at_the_beginning_is_asked_about_from_the_first_offset_on() -> None:
    log = Log(0, 1, 2)
    assert Read(log, manifest_at=-2).is_whole(3, 4, 5)
    assert log.asked == [(0, 3)]
    assert not Read(Log(), manifest_at=-2).is_whole(1, 2)


def test_a_hole_is_asked_about_once() -> None:
    """A transaction is looked at again and again where its events are waited for."""
    log = Log()
    made = Read(log).wholeness
    assert [made.up_to(cut(818, 820)) for _ in range(3)] == [False] * 3
    assert len(log.asked) == 1


def test_nothing_is_asked_behind_rows_that_are_missing() -> None:
    """A compacted log has a hole before each transaction."""
    log = Log(*range(812, 818))
    assert not Read(log, contiguous=False).is_whole(818, 820)
    assert log.asked == []


def test_without_a_log_to_ask_a_hole_is_not_whole() -> None:
    assert not Wholeness(Standing(manifest_at=MANIFEST_AT, ends=1)).up_to(cut(818, 820))


# -- holes that were taken for ends ----------------------------------------------------------------


def test_the_log_is_asked_once_about_holes_that_were_taken_for_ends() -> None:
    log = Log(812, 815)
    read = Read(log)
    assert read.is_whole(813, 814)
    assert read.is_whole(816)
    assert log.asked == []
    assert read.wholeness.is_sure()
    assert log.asked == [(815, 816), (812, 813)], "the latest one first"
    assert read.wholeness.is_sure()
    assert len(log.asked) == 2


def test_a_row_that_was_taken_for_an_end_is_missing() -> None:
    read = Read(Log())
    first = cut(813, 814)
    assert read.wholeness.up_to(first)
    assert not read.wholeness.is_sure()
    assert not read.wholeness.up_to(first)


def test_a_row_that_was_taken_for_an_end_leaves_an_end_too_many() -> None:
    """At 812 was a row; both ends lie in the next hole."""
    log = Log(815, 816)
    read = Read(log)
    assert read.is_whole(813, 814)
    assert not read.is_whole(817)
    assert log.asked == [(815, 817), (812, 813)]


def test_no_more_is_asked_than_about_the_latest_holes() -> None:
    ends = range(812, 812 + 10 * MOST_TRUSTED, 2)
    log = Log(*ends)
    read = Read(log)
    assert all(read.is_whole(end + 1) for end in ends)
    assert read.wholeness.is_sure()
    assert log.asked == [(end, end + 1) for end in ends[: -MOST_TRUSTED - 1 : -1]]
