"""What a bulk job would meet: page by page, and what a backfill would fire.

names      a  b  c  d  e  f         f is paused, g is over, b and d are of group `eu`
minute     0  1  2  3  4  5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from belfry.schedules.bulk import BulkSpec
from belfry.schedules.rule import Rule, encode_rule
from belfry.store import job_lookup
from belfry.store.job_lookup import (
    BulkPreview,
    jobs,
    past_preview,
    preview,
    rows_of,
    wanted_by,
)
from belfry.store.layout import keys
from belfry.store.layout.jobs import JobRow, encode_job, job_key
from belfry.store.layout.locations import IN_PAUSED
from belfry.store.layout.pending import decode_pending
from belfry.store.lookup import Wanted
from belfry.store.ordered_map import MemoryMap
from tests.unit.store.test_due_lookup import DueShelf
from tests.unit.store.test_lookup import MINUTE_MS, NOW_MS

HOUR = 3_600_000


@pytest.fixture
def shelf() -> DueShelf:
    shelf = DueShelf()
    for number, name in enumerate("abcde"):
        more = {"group": b"eu"} if name in "bd" else {"event_type": b"paid"}
        shelf.add("t", name, NOW_MS + number * MINUTE_MS, held=name == "c", **more)
        shelf.add("tt", name, NOW_MS + number * MINUTE_MS)
    shelf.put("t", "f", NOW_MS + 5 * MINUTE_MS, IN_PAUSED)
    shelf.over("t", "g", NOW_MS)
    return shelf


def ids(rows: MemoryMap, wanted: Wanted, examine: int = 100) -> list[str]:
    """All that match, page by page."""
    found: list[str] = []
    after: bytes | None = None
    while True:
        page = preview(rows, wanted, after, examine, 100)
        assert page.matched == len(page.sample)
        assert page.examined <= examine
        found += page.sample
        if page.after is None:
            return found
        after = page.after


@pytest.mark.parametrize("examine", [1, 2, 3, 7, 8])
@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (BulkSpec(action="CANCEL"), "abcdef"),
        (BulkSpec(action="CANCEL", prefix="c"), "c"),
        (BulkSpec(action="CANCEL", schedule_id="d"), "d"),
        (BulkSpec(action="CANCEL", schedule_id=""), ""),
        (BulkSpec(action="CANCEL", group="eu"), "bd"),
        (BulkSpec(action="CANCEL", event_type="paid"), "ace"),
        (BulkSpec(action="CANCEL", group="eu", event_type="paid"), ""),
        (BulkSpec(action="CANCEL", state="PAUSED"), "f"),
        (BulkSpec(action="CANCEL", state="PENDING"), "abcde"),
        (BulkSpec(action="CANCEL", due_from=NOW_MS + 2 * MINUTE_MS), "cdef"),
        (BulkSpec(action="CANCEL", due_until=NOW_MS + 2 * MINUTE_MS), "ab"),
        (BulkSpec(action="CANCEL", due_from=NOW_MS + 1, due_until=NOW_MS + MINUTE_MS + 1), "b"),
    ],
)
def test_a_filter_meets_what_it_says_and_each_once(
    shelf: DueShelf, spec: BulkSpec, found: str, examine: int
) -> None:
    assert "".join(ids(shelf.rows, wanted_by(b"t", spec), examine)) == found


def test_a_filter_is_read_field_by_field() -> None:
    spec = BulkSpec(
        action="CANCEL",
        prefix="é",
        group="g",
        event_type="ü",
        due_from=1,
        due_until=2,
        state="PAUSED",
    )
    assert wanted_by(b"t", spec) == Wanted(
        b"t", "é".encode(), 1, 2, "PAUSED", b"g", "ü".encode(), exact=False
    )
    assert wanted_by(b"t", BulkSpec(action="CANCEL", schedule_id="a")) == Wanted(
        b"t", b"a", exact=True
    )


def test_a_page_says_what_it_looked_at_and_where_to_go_on(shelf: DueShelf) -> None:
    wanted = Wanted(b"t", group=b"eu")
    assert preview(shelf.rows, wanted, None, 3) == BulkPreview(1, ["b"], 3, b"kt/c")
    assert preview(shelf.rows, wanted, b"kt/c", 3) == BulkPreview(1, ["d"], 3, b"kt/f")
    assert preview(shelf.rows, wanted, b"kt/f", 3) == BulkPreview(0, [], 1, None)
    # A key of before the range changes nothing, and one of behind it ends it.
    assert preview(shelf.rows, wanted, b"ks/z", 3).after == b"kt/c"
    assert preview(shelf.rows, wanted, b"ku/", 3) == BulkPreview(0, [], 0, None)


def test_all_are_counted_and_the_first_are_shown(
    shelf: DueShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert preview(shelf.rows, Wanted(b"t"), None, 100, 2) == BulkPreview(6, ["a", "b"], 7, None)
    monkeypatch.setattr(job_lookup, "CHUNK", 2)
    assert preview(shelf.rows, Wanted(b"t"), None, 7, 3) == BulkPreview(
        6, ["a", "b", "c"], 7, b"kt/g"
    )
    for number in range(12):
        shelf.add("u", f"{number:02}", NOW_MS)
    page = preview(shelf.rows, Wanted(b"u"), None, 100)
    assert (page.matched, page.sample) == (12, [f"{number:02}" for number in range(10)])


def test_one_may_ask_for_more_than_a_filter_says(shelf: DueShelf) -> None:
    def late(row: object) -> bool:
        return getattr(row, "due_ms", 0) > NOW_MS + MINUTE_MS

    found = preview(shelf.rows, Wanted(b"t"), None, 100, also=late)
    assert found == BulkPreview(4, ["c", "d", "e", "f"], 7, None)
    found = preview(shelf.rows, Wanted(b"t", group=b"eu"), None, 100, also=late)
    assert found.sample == ["d"]


class Moving(MemoryMap):
    """A map in which the record of one schedule has moved since its place was read."""

    def get_many(self, keys_: Sequence[bytes]) -> list[bytes | None]:
        """Nothing lies where `b` was."""
        found = super().get_many(keys_)
        at_b = keys.timeline_key(NOW_MS + MINUTE_MS, 3)
        return [None if key == at_b else row for key, row in zip(keys_, found, strict=True)]


def test_what_moves_meanwhile_is_left_out(shelf: DueShelf) -> None:
    moving = Moving()
    moving.write(dict(shelf.rows.scan(b"", b"\xff")))
    assert ids(moving, Wanted(b"t", group=b"eu")) == ["d"]
    records = rows_of(moving, b"t", ["a", "b", "d", "g", "none", "f"])
    assert [decode_pending(each).name for each in records] == [b"t/a", b"t/d", b"t/f"]


def test_the_jobs_of_a_tenant_are_told_by_id() -> None:
    rows = MemoryMap()
    told = {
        ("t", "b/1"): 3,
        ("t", "a"): 2,
        ("t.x", "a"): 9,
        ("s", "z"): 9,
        ("t0", "a"): 9,
        ("tA", "a"): 9,
    }
    for (tenant, job), offset in told.items():
        row = JobRow("{}", offset, NOW_MS, (0, 7))
        rows.write({keys.named_key(job_key(tenant, job)): encode_job(row)})
    found = jobs(rows, b"t")
    assert [(name, row.offset) for name, row in found] == [("a", 2), ("b/1", 3)]
    assert found[0][1] == JobRow("{}", 2, NOW_MS, (0, 7))
    assert jobs(rows, b"u") == []


# -- what a backfill would fire ------------------------------------------------------------------


def recurring(shelf: DueShelf, name: str, due_ms: int, **more: Any) -> None:
    rule = Rule("EVERY", HOUR, **more)
    shelf.add("p", name, due_ms, kind="EVERY", extra=encode_rule(rule))


def test_occurrences_of_all_that_match_are_counted() -> None:
    shelf = DueShelf()
    recurring(shelf, "a", NOW_MS)
    shelf.add("p", "b", NOW_MS)
    recurring(shelf, "c", NOW_MS + 30 * MINUTE_MS)
    recurring(shelf, "d", NOW_MS - 9 * HOUR)
    span = (NOW_MS - 3 * HOUR, NOW_MS)
    found = past_preview(shelf.rows, Wanted(b"p"), span, None)
    assert found.page == BulkPreview(4, ["a", "b", "c", "d"], 4, None)
    # Of `a` three, 3 to 1 hours ago; of `c` three, 2.5 to 0.5 hours ago; of the others none.
    assert found.occurrences == 6
    assert (found.first_ms, found.last_ms) == (NOW_MS - 3 * HOUR, NOW_MS - 30 * MINUTE_MS)
    nothing = past_preview(shelf.rows, Wanted(b"p", prefix=b"d"), span, None)
    assert nothing == (BulkPreview(1, ["d"], 1, None), 0, None, None)


def test_a_page_of_a_backfill_ends_behind_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_lookup, "EXAMINE", 2)
    shelf = DueShelf()
    for name in "abc":
        recurring(shelf, name, NOW_MS)
    span = (NOW_MS - 3 * HOUR, NOW_MS)
    first = past_preview(shelf.rows, Wanted(b"p"), span, None)
    assert (first.page, first.occurrences) == (BulkPreview(2, ["a", "b"], 2, b"kp/b"), 6)
    rest = past_preview(shelf.rows, Wanted(b"p"), span, first.page.after)
    assert (rest.page, rest.occurrences) == (BulkPreview(1, ["c"], 1, None), 3)


def test_a_page_of_a_backfill_ends_behind_so_many_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where minutes are left out, each day is looked at; more looks than allowed end the page."""
    shelf = DueShelf()
    for name in "abc":
        recurring(shelf, name, NOW_MS, except_cron="7 1 * * SUN")
    span = (NOW_MS - 10 * 24 * HOUR, NOW_MS)
    whole = past_preview(shelf.rows, Wanted(b"p"), span, None)
    assert whole.page.examined == 3
    looks = next(iter(job_lookup._pasts(shelf.rows, Wanted(b"p"), ["a"], span))).looks
    assert looks > 1
    for most, examined in ((looks - 1, 1), (looks, 2), (2 * looks - 1, 2), (2 * looks, 3)):
        monkeypatch.setattr(job_lookup, "MOST_MOVED", most)
        page = past_preview(shelf.rows, Wanted(b"p"), span, None).page
        assert (page.examined, page.after) == (examined, b"kp/" + b"abc"[examined - 1 : examined])
