"""Ends: which rows a step lays, in which order they are taken, and what is left of them.

written at T0, kept for 100 ms    a b        over at T0+100
written at T0, kept for 200 ms    c          over at T0+200
written before, over by T0        d          over at T0, the end of an hour
"""

from __future__ import annotations

import pytest

from belfry.store.ends import HOUR_MS, EndsOfStep
from belfry.store.layout import keys
from belfry.store.layout.ends import (
    BY_CLOCK,
    BY_REQUESTS,
    MOST_NAMES,
    EndsRow,
    decode_ends,
    encode_ends,
    ends_key,
    kept_ms_of,
    kept_since_ms,
    time_of,
)
from belfry.store.layout.jobs import KEPT_MS, JobRow, encode_job
from belfry.store.layout.pending import encode_pending
from belfry.store.layout.records import (
    ENDED_FIRED,
    ENDS,
    FORMAT,
    Marker,
    encode_marker,
    encode_size,
)
from belfry.store.layout.verdicts import REQUEST_ID_MS, VerdictRow, encode_verdict
from belfry.store.ordered_map import Damaged, MemoryMap
from tests.unit.store.test_records import ROW

T0 = HOUR_MS * 500_000


def told(rows: dict[bytes, bytes | None]) -> dict[bytes, EndsRow | None]:
    return {key: None if row is None else decode_ends(row) for key, row in rows.items()}


class Store:
    """Rows of ends, and the steps that change them."""

    def __init__(self) -> None:
        self.rows = MemoryMap()
        self.ends = EndsOfStep(self.rows)

    def commit(self, offset: int, now_ms: int) -> dict[bytes, bytes | None]:
        """The step ends, and its changes are written."""
        writes = self.ends.rows_after(offset, now_ms)
        self.rows.write(writes, self.ends.cleared)
        self.ends.clear()
        return writes

    def left(self) -> list[EndsRow]:
        return [decode_ends(row) for _, row in self.rows.scan(b"e", b"f")]


def test_names_lie_by_when_they_are_over_and_by_the_time_that_they_go_by() -> None:
    store = Store()
    store.ends.kept[100] += [b"a", b"b"]
    store.ends.kept[KEPT_MS].append(b"job")
    store.ends.kept[200].append(b"c")
    assert told(store.commit(17, T0)) == {
        ends_key(BY_REQUESTS, T0 + 100, 17, 0): EndsRow(T0, [b"a", b"b"]),
        ends_key(BY_CLOCK, T0 + KEPT_MS, 17, 1): EndsRow(T0, [b"job"]),
        ends_key(BY_REQUESTS, T0 + 200, 17, 2): EndsRow(T0, [b"c"]),
    }
    assert store.ends.kept == {}
    assert store.commit(18, T0 + 1) == {}


def test_what_is_kept_on_is_put_together_by_hours() -> None:
    """It was written before, so it is over at the end of the hour in which its time is up."""
    store = Store()
    store.ends.keep_on(b"a", T0 - 50, 51)
    store.ends.keep_on(b"b", T0 - 70, 72)
    store.ends.keep_on(b"c", T0 - 10, 10)
    store.ends.keep_on(b"job", T0 + 1 - KEPT_MS, KEPT_MS)
    store.ends.kept[60].append(b"d")
    assert told(store.commit(17, T0)) == {
        ends_key(BY_REQUESTS, T0 + 60, 17, 0): EndsRow(T0, [b"d"]),
        ends_key(BY_REQUESTS, T0 + HOUR_MS, 17, 1): EndsRow(T0 - 50, [b"a", b"b"]),
        ends_key(BY_REQUESTS, T0, 17, 2): EndsRow(T0 - 10, [b"c"]),
        ends_key(BY_CLOCK, T0 + HOUR_MS, 17, 3): EndsRow(T0 + 1 - KEPT_MS, [b"job"]),
    }
    assert store.commit(18, T0 + 1) == {}


def test_no_row_has_more_names_than_a_sweep_reads_at_once() -> None:
    store = Store()
    names = [b"%d" % number for number in range(2 * MOST_NAMES + 1)]
    store.ends.kept[100] += names
    written = told(store.commit(17, T0))
    assert list(written) == [ends_key(BY_REQUESTS, T0 + 100, 17, number) for number in range(3)]
    parts = [row.names for row in written.values() if row is not None]
    assert parts == [names[:MOST_NAMES], names[MOST_NAMES : 2 * MOST_NAMES], names[-1:]]


def filled() -> Store:
    """The rows of the sketch above."""
    store = Store()
    store.ends.kept[100] += [b"a", b"b"]
    store.ends.kept[200].append(b"c")
    store.ends.keep_on(b"d", T0 - 1, 1)
    store.commit(17, T0)
    return store


def test_those_that_are_over_are_taken_in_their_order_and_no_others() -> None:
    store = filled()
    assert list(store.ends.take(BY_REQUESTS, T0 - 1, 9)) == []
    assert list(store.ends.take(BY_REQUESTS, T0 + 99, 9)) == [EndsRow(T0 - 1, [b"d"])]
    assert list(store.ends.take(BY_REQUESTS, T0 + 100, 9)) == [EndsRow(T0, [b"a", b"b"])]
    assert list(store.ends.take(BY_REQUESTS, T0 + 100, 9)) == []
    assert list(store.ends.take(BY_CLOCK, T0 + 900, 9)) == []
    store.commit(18, T0 + 900)
    assert store.left() == [EndsRow(T0, [b"c"])]
    assert list(store.ends.take(BY_REQUESTS, T0 + 200, 9)) == [EndsRow(T0, [b"c"])]


def test_the_first_step_of_a_changelog_is_no_millisecond_early() -> None:
    store = Store()
    store.ends.kept[1].append(b"a")
    store.commit(0, T0)
    assert list(store.ends.take(BY_REQUESTS, T0, 9)) == []
    assert list(store.ends.take(BY_REQUESTS, T0 + 1, 9)) == [EndsRow(T0, [b"a"])]


def test_a_step_that_is_rolled_back_has_taken_nothing() -> None:
    store = filled()
    before = list(store.ends.take(BY_REQUESTS, T0 + 200, 9))
    store.ends.kept[5].append(b"e")
    store.ends.keep_on(b"f", T0, 5)
    store.ends.begin_anew()
    store.ends.clear()
    assert store.commit(18, T0) == {}
    assert list(store.ends.take(BY_REQUESTS, T0 + 200, 9)) == before
    assert [row.names for row in before] == [[b"d"], [b"a", b"b"], [b"c"]]


@pytest.mark.parametrize(
    ("at_most", "taken", "left"),
    [
        (1, [[b"d"]], [[b"a", b"b"], [b"c"]]),
        (2, [[b"d"], [b"a"]], [[b"b"], [b"c"]]),
        (3, [[b"d"], [b"a", b"b"]], [[b"c"]]),
        (4, [[b"d"], [b"a", b"b"], [b"c"]], []),
    ],
)
def test_no_more_names_are_taken_than_were_asked_for(
    at_most: int, taken: list[list[bytes]], left: list[list[bytes]]
) -> None:
    store = filled()
    found = list(store.ends.take(BY_REQUESTS, T0 + 200, at_most))
    assert [row.names for row in found] == taken
    store.commit(18, T0 + 300)
    assert [row.names for row in store.left()] == left
    # What is left keeps its instants, and is what comes next.
    again = list(store.ends.take(BY_REQUESTS, T0 + 200, 9))
    assert [row.names for row in again] == left
    assert {row.newest_ms for row in again} <= {T0}


def test_what_comes_before_all_that_was_taken_is_taken_next() -> None:
    store = filled()
    list(store.ends.take(BY_REQUESTS, T0 + 200, 9))
    store.ends.kept[3].append(b"early")
    store.commit(18, T0)
    assert list(store.ends.take(BY_REQUESTS, T0 + 200, 9)) == [EndsRow(T0, [b"early"])]


def test_ends_are_whole_where_they_go_up_to_the_state() -> None:
    store = Store()
    assert store.ends.are_whole(None)
    assert not store.ends.are_whole(17)
    store.commit(17, T0)
    assert not store.ends.are_whole(17), "nobody has said that each row is led to"
    store.ends.whole = True
    assert store.commit(18, T0) == {keys.META_ENDS: encode_size(18)}
    assert store.ends.are_whole(18)
    assert not store.ends.are_whole(17)
    assert not store.ends.are_whole(19)
    assert store.ends.are_whole(None)


def test_to_begin_anew_leaves_nothing_of_before() -> None:
    store = filled()
    store.ends.kept[KEPT_MS].append(b"job")
    store.commit(18, T0)
    store.rows.write({b"d\xff": b"before", b"f": b"behind"})
    store.ends.begin_anew()
    store.ends.kept[5].append(b"new")
    store.commit(19, T0)
    assert store.left() == [EndsRow(T0, [b"new"])]
    assert [store.rows.get(b"d\xff"), store.rows.get(b"f")] == [b"before", b"behind"]
    assert store.ends.cleared == []


def test_a_row_that_is_none_is_damage_with_its_place() -> None:
    store = Store()
    key = ends_key(BY_REQUESTS, T0, 1, 0)
    store.rows.write({key: b"\1"})
    with pytest.raises(Damaged) as told_:
        list(store.ends.take(BY_REQUESTS, T0, 1))
    assert str(told_.value).startswith(f"the names at {key!r} cannot be read: ")
    assert len(str(told_.value)) > len(f"the names at {key!r} cannot be read: None")


def test_a_row_has_frozen_bytes() -> None:
    assert ends_key(BY_CLOCK, 1, 2, 3).hex() == "6501" + f"{1:016x}{2:016x}{3:04x}"
    row = bytes((FORMAT, ENDS, 0, 0)) + (7).to_bytes(8, "big") + b"a/b\xffc/d"
    assert encode_ends(7, [b"a/b", b"c/d"]) == row


def test_what_is_kept_says_since_when_and_for_how_long() -> None:
    marker = encode_marker(Marker(ENDED_FIRED, T0 + 5, T0, 1, 3, 1))
    verdict = encode_verdict(VerdictRow("ACCEPTED", T0 + 6, T0, 1, ""))
    job = encode_job(JobRow("{}", 1, T0, (0, 1), ended_ms=T0 + 7))
    assert [kept_since_ms(row) for row in (verdict, job)] == [T0 + 6, T0 + 7]
    assert kept_since_ms(marker) == T0 + 5
    assert kept_since_ms(encode_job(JobRow("{}", 1, T0, (0, 1)))) is None
    assert kept_since_ms(encode_pending(ROW)) is None
    assert [kept_ms_of(job), kept_ms_of(verdict)] == [KEPT_MS, REQUEST_ID_MS]
    assert [time_of(KEPT_MS), time_of(REQUEST_ID_MS), time_of(5)] == [
        BY_CLOCK,
        BY_REQUESTS,
        BY_REQUESTS,
    ]
