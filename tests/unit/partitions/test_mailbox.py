"""Small batches that wait go together, and what does not belong together stays apart."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.partitions.mailbox import SMALL, Mailbox
from belfry.wire.batch import SourceBatch


def batch(start: int, records: int, *, gap: int = 0, size: int = 0) -> SourceBatch:
    """A batch of so many records from an offset on, and offsets without a record behind them."""
    given: list[Any] = [(start + n, 0, b"k", b"v", []) for n in range(records)]
    return SourceBatch(start, start + records + gap, given, size=size)


def box(*batches: SourceBatch, most: int = 8_000, most_bytes: int = 1_000) -> Mailbox:
    """A mailbox into which these have come."""
    found = Mailbox(most, most_bytes)
    term = found.begin_term()
    for each in batches:
        found.deliver(term, each)
    return found


def always(_records: object) -> bool:
    """Nothing has to be asked for."""
    return True


def taken(found: Mailbox) -> list[tuple[int, int, int, int]]:
    """Start, next position, records and parts of all that comes out."""
    out = []
    while (each := found.next(always)) is not None:
        out.append((each.start, each.next_position, len(each.records), each.parts))
    return out


def test_small_batches_go_together() -> None:
    found = box(batch(7, 2, gap=1), batch(10, 3), batch(13, 0, gap=4)).next(always)
    assert found is not None
    assert (found.start, found.next_position, found.parts) == (7, 17, 3)
    assert [record[0] for record in found.records] == [7, 8, 10, 11, 12]


def test_a_large_one_goes_alone() -> None:
    found = box(batch(0, SMALL), batch(SMALL, 1), batch(SMALL + 1, SMALL))
    assert taken(found) == [(0, SMALL, SMALL, 1), (SMALL, 2 * SMALL + 1, SMALL + 1, 2)]


def test_no_more_than_a_transaction_may_take_in() -> None:
    found = box(batch(0, 6), batch(6, 4), batch(10, 6), batch(16, 5), most=10)
    assert taken(found) == [(0, 10, 10, 2), (10, 16, 6, 1), (16, 21, 5, 1)]


def test_no_more_bytes_than_a_transaction_may_take_in() -> None:
    found = box(batch(0, 1, size=600), batch(1, 1, size=400), batch(2, 1, size=1), most_bytes=1_000)
    assert taken(found) == [(0, 2, 2, 2), (2, 3, 1, 1)]


def test_what_is_left_of_a_batch_comes_out_before_what_follows_it() -> None:
    found = box(batch(0, 6), batch(6, 5), batch(11, 1), most=10)
    first = found.next(always)
    assert first is not None
    found.put_back(first._replace(start=4, records=first.records[4:]))
    assert taken(found) == [(4, 12, 8, 3)]


def test_the_first_of_a_batch_come_out_before_the_rest_which_counts_for_it() -> None:
    mail = Mailbox(1_000, 1_000_000)
    term = mail.begin_term()
    records = tuple((offset, 0, None, b"", None) for offset in range(5, 15))
    mail.deliver(term, SourceBatch(3, 20, records, 2))
    whole = mail.next(lambda _: True)
    assert whole is not None
    first = mail.first_of(whole, 4)
    assert (first.start, first.next_position, len(first.records), first.parts) == (3, 9, 4, 0)
    rest = mail.next(lambda _: True)
    assert rest is not None
    assert (rest.start, rest.next_position, len(rest.records), rest.parts) == (9, 20, 6, 2)


def test_a_gap_stays_one() -> None:
    """The engine notices it by the start, which a joined batch would not show."""
    assert taken(box(batch(0, 2), batch(5, 2))) == [(0, 2, 2, 1), (5, 7, 2, 1)]


def test_what_came_in_an_earlier_term_does_not_come_out() -> None:
    found = box(batch(0, 2), batch(5, 2))
    assert found.next(always) is not None
    term = found.begin_term()
    assert found.next(always) is None
    found.deliver(term - 1, batch(0, 2))
    found.deliver(term, batch(0, 3))
    assert taken(found) == [(0, 3, 3, 1)]


def test_whether_something_has_come_can_be_seen() -> None:
    found = box()
    seen = [found.any]
    assert found.next(always) is None
    found.deliver(1, batch(0, 2))
    seen.append(found.any)
    first = found.next(always)
    assert first is not None
    seen.append(found.any)
    found.put_back(first)
    assert [*seen, found.any] == [False, True, False, True]


@pytest.mark.parametrize("late", [0, 2])
def test_what_waits_for_its_schema_keeps_nobody_waiting(late: int) -> None:
    found = box(batch(0, 2), batch(2, 2), batch(4, 2))

    def ready(records: Any) -> bool:
        return bool(records[0][0] != late)

    first = found.next(ready)
    assert first is not None
    assert (first.start, first.next_position) == (0, 2)
    second = found.next(ready)
    assert second is not None
    assert second.start == 2
