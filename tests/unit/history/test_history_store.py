"""The history at rest: by time, by schedule, counted by the hour, and forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from belfry.history import counters, layout
from belfry.history import history_store as shelf
from belfry.history.history_store import HistoryEntry, HistoryStore, Walk, page
from belfry.history.layout import DAY_MS, HOUR_MS, SortKey, after
from belfry.schedules.outcomes import Outcome
from belfry.store.ordered_map import MemoryMap
from belfry.wire.lifecycle import LifecycleEvent, decode_lifecycle, encode_lifecycle
from belfry.wire.lifecycle_heads import headline

NOW_MS = 1_800_000_000_000
ALWAYS = {0, 1}
END_MS = NOW_MS + 100 * DAY_MS


def note(
    offset: int, schedule_id: str, at_ms: int, outcome: Outcome = Outcome.ACCEPTED, **more: int
) -> HistoryEntry:
    event = LifecycleEvent(
        tenant=str(more.pop("tenant", "t")),
        schedule_id=schedule_id,
        outcome=outcome,
        request_id="r" if outcome is Outcome.ACCEPTED else None,
        fire_id=None if outcome is Outcome.ACCEPTED else "f",
        version=3,
        at=at_ms,
        due_at=more.get("due_at"),
    )
    body = encode_lifecycle(event)
    return HistoryEntry(offset, headline(body), body)


@pytest.fixture
def store() -> HistoryStore:
    """Two schedules over three days and two partitions."""
    store = HistoryStore(MemoryMap())
    for day in range(3):
        at_ms = NOW_MS + day * DAY_MS
        store.add(0, [note(day, "a", at_ms), note(day + 10, "a/b", at_ms)], day + 1)
        store.add(1, [note(day, "b", at_ms)], day + 1)
    return store


@pytest.mark.parametrize(
    ("tenant", "at_ms"), [("t", layout.LAST_MS + 1), ("t", 2**62), ("t\0u", NOW_MS), ("", NOW_MS)]
)
def test_what_keys_have_no_room_for_is_passed_over(tenant: str, at_ms: int) -> None:
    """Others may write to the topic; the reader goes on behind such a record."""
    store = HistoryStore(MemoryMap())
    head = note(0, "a", NOW_MS).head._replace(tenant=tenant.encode(), at_ms=at_ms)
    store.add(0, [HistoryEntry(0, head, b""), note(1, "a", layout.LAST_MS)], 2)
    assert store.position(0) == 2
    assert [*store.tenants()] == [(b"t", layout.LAST_MS)]
    start = SortKey(layout.LAST_MS, 0, 0)
    found = store.of_schedule(b"t", b"a", start, layout.LAST_MS + 1)
    assert ids(found) == [("a", layout.LAST_MS)]


def test_a_number_of_more_than_64_bits_is_no_event() -> None:
    """Of a megabyte of them one would take minutes."""
    before, instant = b"\2t\2a" + bytes(4), b"\x80" * 9 + b"\1"
    assert headline(before + instant + b"\0").at_ms == 2**62
    with pytest.raises(IndexError):
        headline(before + b"\x80" + instant + b"\0")


def all_of(walk: Walk) -> list[tuple[SortKey, bytes]]:
    return page(walk, 1_000_000).found


def ids(walk: Walk) -> list[tuple[str, int]]:
    return [(decode_lifecycle(body).schedule_id, place.at_ms) for place, body in all_of(walk)]


def hours(
    store: HistoryStore, from_ms: int, until_ms: int, partitions: set[int]
) -> dict[int, list[int]]:
    return store.statistics(b"t", from_ms, until_ms, partitions).hours


class Counting(MemoryMap):
    """Counts scans, and rows that are taken backwards."""

    scans = taken = 0

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        self.scans += 1
        return super().scan(start, end)

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        for pair in super().scan_back(start, end):
            self.taken += 1
            yield pair


def test_a_schedule_has_its_own_history_over_all_days(store: HistoryStore) -> None:
    start = SortKey(NOW_MS - DAY_MS, 0, 0)
    found = ids(store.of_schedule(b"t", b"a", start, END_MS))
    assert found == [("a", NOW_MS + day * DAY_MS) for day in range(3)]
    assert ids(store.of_schedule(b"t", b"a", SortKey(NOW_MS + 1, 0, 0), NOW_MS + 2 * DAY_MS)) == [
        ("a", NOW_MS + DAY_MS)
    ]
    assert ids(store.of_schedule(b"other", b"a", start, END_MS)) == []


def test_a_schedules_newest_records_come_first_and_none_is_left_out(store: HistoryStore) -> None:
    start, end = SortKey(NOW_MS - DAY_MS, 0, 0), SortKey(END_MS, 0, 0)
    oldest_first = all_of(store.of_schedule(b"t", b"a", start, END_MS))
    assert all_of(store.newest_of_schedule(b"t", b"a", start, end)) == oldest_first[::-1]
    found: list[tuple[SortKey, bytes]] = []
    rest: SortKey | None = SortKey(END_MS, 0, 0)
    while rest is not None:
        some, rest = page(store.newest_of_schedule(b"t", b"a", start, after(rest)), 1, 2)
        found += some
    assert found == oldest_first[::-1]
    between = store.newest_of_schedule(b"t", b"a", SortKey(NOW_MS + 1, 0, 0), oldest_first[2][0])
    assert all_of(between) == oldest_first[1:2]
    assert all_of(store.newest_of_schedule(b"other", b"a", start, end)) == []


@pytest.mark.parametrize("examine", range(1, 7))
@pytest.mark.parametrize("limit", [1, 2, 9])
def test_a_page_back_that_ends_between_two_days_repeats_nothing(limit: int, examine: int) -> None:
    store, day_ms = HistoryStore(MemoryMap()), NOW_MS // DAY_MS * DAY_MS
    store.add(0, [note(0, "a", day_ms), note(1, "a", day_ms), note(2, "a", day_ms + 5)], 3)
    store.add(1, [note(0, "a", day_ms - DAY_MS), note(1, "a", day_ms - 1)], 2)
    start, found = SortKey(0, 0, 0), list[SortKey]()
    rest: SortKey | None = SortKey(day_ms + DAY_MS, 0, 0)
    for _ in range(20):
        assert rest is not None
        walk = store.newest_of_schedule(b"t", b"a", start, after(rest))
        some, rest = page(walk, limit, examine)
        found += [place for place, _ in some]
        if rest is None:
            break
    assert [(place.at_ms - day_ms, place.partition, place.offset) for place in found] == [
        (5, 0, 2), (0, 0, 1), (0, 0, 0), (-1, 1, 1), (-DAY_MS, 1, 0)
    ]  # fmt: skip


def test_the_newest_page_of_a_long_history_reads_no_more_than_it_shows() -> None:
    rows = Counting()
    store = HistoryStore(rows)
    store.add(0, [note(n, "a", NOW_MS + n * 1_000) for n in range(5_000)], 5_000)
    rows.taken = 0
    end = SortKey(NOW_MS + DAY_MS, 0, 0)
    newest = page(store.newest_of_schedule(b"t", b"a", SortKey(0, 0, 0), end), 10)
    assert [place.offset for place, _ in newest.found] == list(range(4_999, 4_989, -1))
    assert newest.rest == SortKey(NOW_MS + 4_989_000, 0, 4_989)
    assert rows.taken <= 12


def test_a_tenants_history_goes_on_behind_a_place(store: HistoryStore) -> None:
    found = all_of(store.of_tenant(b"t", SortKey(0, 0, 0), END_MS, ALWAYS))
    assert [place for place, _ in found] == sorted(place for place, _ in found)
    assert len(found) == 9
    rest = all_of(store.of_tenant(b"t", after(found[3][0]), END_MS, ALWAYS))
    assert rest == found[4:]


@pytest.mark.parametrize(("limit", "examine"), [(1, 100), (2, 100), (100, 1), (100, 2), (3, 4)])
def test_pages_are_bounded_and_leave_nothing_out(
    store: HistoryStore, limit: int, examine: int
) -> None:
    def of_tenant(start: SortKey) -> Walk:
        return store.of_tenant(b"t", start, END_MS, {1})

    def of_schedule(start: SortKey) -> Walk:
        return store.of_schedule(b"t", b"a", start, NOW_MS + 3 * DAY_MS)

    for walk in (of_tenant, of_schedule):
        found: list[tuple[SortKey, bytes]] = []
        rest: SortKey | None = SortKey(0, 0, 0)
        while rest is not None:
            some, rest = page(walk(rest), limit, examine)
            assert len(some) <= min(limit, examine)
            found += some
        assert found == all_of(walk(SortKey(0, 0, 0)))
        assert len(found) == 3


def test_rows_that_are_not_shown_end_a_page_too(store: HistoryStore) -> None:
    some, rest = page(store.of_tenant(b"t", SortKey(0, 0, 0), END_MS, set()), 100, 5)
    assert some == []
    assert rest is not None
    assert page(store.of_tenant(b"t", rest, END_MS, set()), 100, 5) == ([], None)


def test_a_full_page_that_nothing_follows_is_the_last(store: HistoryStore) -> None:
    assert page(store.of_schedule(b"t", b"a", SortKey(0, 0, 0), END_MS), 3).rest is None
    assert page(store.of_tenant(b"t", SortKey(0, 0, 0), END_MS, {0}), 6).rest is None


def test_days_before_the_first_record_are_not_looked_through() -> None:
    rows = Counting()
    store = HistoryStore(rows)
    assert ids(store.of_schedule(b"t", b"a", SortKey(0, 0, 0), NOW_MS)) == []
    store.add(0, [note(0, "a", NOW_MS)], 1)
    rows.scans = 0
    found = ids(store.of_schedule(b"t", b"a", SortKey(0, 0, 0), NOW_MS + DAY_MS))
    assert found == [("a", NOW_MS)]
    assert rows.scans <= 3


def test_counters_come_by_whole_hours_however_many(
    store: HistoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add(1, [note(n, "c", NOW_MS + n * HOUR_MS) for n in range(30)], 30)
    whole = hours(store, 0, END_MS, ALWAYS)
    monkeypatch.setattr(shelf, "COUNT_ROWS", 3)
    found: dict[int, list[int]] = {}
    rest_ms: int | None = 0
    while rest_ms is not None:
        some, rest_ms, _ = store.statistics(b"t", rest_ms, END_MS, ALWAYS)
        assert len(some) <= 4
        assert not some.keys() & found.keys()
        found |= some
    assert found == whole


def test_what_another_worker_follows_now_is_not_told(store: HistoryStore) -> None:
    found = ids(store.of_tenant(b"t", SortKey(0, 0, 0), END_MS, {1}))
    assert {name for name, _ in found} == {"b"}
    assert hours(store, 0, END_MS, {1})[NOW_MS // HOUR_MS * HOUR_MS][0] == 1


def test_positions_go_on_where_the_records_end(store: HistoryStore) -> None:
    assert (store.position(0), store.position(1), store.position(2)) == (3, 3, None)


@pytest.mark.parametrize("limit", [1, 7, 64, 1_000])
def test_records_of_one_instant_share_rows_and_come_one_by_one(limit: int) -> None:
    """Rows of many records: whole by time and by schedule, from any place on."""
    rows = MemoryMap()
    store, outcomes = HistoryStore(rows), (Outcome.ACCEPTED, Outcome.FIRED, Outcome.CANCELLED)
    told = [
        note(n, f"s{n % 7}", NOW_MS + n // 150, outcomes[n % 3], tenant=n % 2, due_at=NOW_MS)
        for n in range(0, 900, 3 if limit == 7 else 1)
    ]
    store.add(0, told[: len(told) // 2], 450)
    store.add(0, told[len(told) // 2 :], 900)
    store.add(1, told[:9], 9)
    by_time = sum(key.startswith(b"h") for key, _ in rows.scan(b"a", b"z"))
    assert by_time < len(told) / 5
    for tenant in (b"0", b"1"):
        wanted = [
            (SortKey(each.head.at_ms, partition, each.offset), each.body)
            for partition, notes in ((0, told), (1, told[:9]))
            for each in notes
            if each.head.tenant == tenant
        ]
        wanted.sort()
        some = [each for each in wanted if decode_lifecycle(each[1]).schedule_id == "s3"]
        assert of_pages(partial(by_time_of, store, tenant, ALWAYS), limit) == wanted
        alone = of_pages(partial(by_time_of, store, tenant, {1}), limit)
        assert alone == [each for each in wanted if each[0].partition == 1]
        assert of_pages(partial(by_id_of, store, tenant, b"s3"), limit) == some
        back = store.newest_of_schedule(tenant, b"s3", SortKey(0, 0, 0), SortKey(END_MS, 0, 0))
        assert all_of(back) == some[::-1]
    (counted,) = hours_of(store, b"0")
    (other,) = hours_of(store, b"1")
    shown = counters.shown(
        [sum(pair) for pair in zip(counted, other, strict=True)], fires_told=True
    )
    kinds = Counter(each.head.outcome for each in [*told, *told[:9]])
    assert shown["fires"] == shown["within_1s"] == kinds[Outcome.FIRED]
    assert shown["accepted"] == kinds[Outcome.ACCEPTED] + kinds[Outcome.CANCELLED]


def test_nothing_comes_of_a_place_amid_a_row_that_lies_behind_the_end() -> None:
    store = HistoryStore(MemoryMap())
    store.add(0, [note(n, "a", NOW_MS) for n in range(9)], 9)
    for end_ms, found in ((NOW_MS, 0), (NOW_MS - 1, 0), (NOW_MS + 1, 4)):
        assert len(all_of(store.of_tenant(b"t", SortKey(NOW_MS, 0, 5), end_ms, ALWAYS))) == found


def by_time_of(store: HistoryStore, tenant: bytes, partitions: set[int], start: SortKey) -> Walk:
    return store.of_tenant(tenant, start, END_MS, partitions)


def by_id_of(store: HistoryStore, tenant: bytes, schedule_id: bytes, start: SortKey) -> Walk:
    return store.of_schedule(tenant, schedule_id, start, END_MS)


def of_pages(walk_from: Callable[[SortKey], Walk], limit: int) -> list[tuple[SortKey, bytes]]:
    """All that pages of so many rows show, one after the other."""
    found: list[tuple[SortKey, bytes]] = []
    rest: SortKey | None = SortKey(0, 0, 0)
    for _ in range(3_000):
        assert rest is not None
        some, rest = page(walk_from(rest), limit, limit)
        found += some
        if rest is None:
            break
    return found


def hours_of(store: HistoryStore, tenant: bytes) -> list[list[int]]:
    return list(store.statistics(tenant, NOW_MS, NOW_MS + 1, ALWAYS).hours.values())


def test_rows_of_an_older_release_are_read_beside_those_of_this_one() -> None:
    """It kept each record under a key of its own, and nothing under the key by schedule."""
    rows = MemoryMap()
    store = HistoryStore(rows)
    old, new = [note(n, "a", NOW_MS) for n in (1, 2)], [note(n, "a", NOW_MS) for n in (3, 4, 5)]
    for each in old:
        place = layout.pack_place(NOW_MS, 0, each.offset)
        by_time, by_day = layout.prefixes(b"t", NOW_MS // DAY_MS)
        rows.write({by_time + place: each.body, by_day + b"a\0" + place: b""})
    store.add(0, new, 6)
    wanted = [(SortKey(NOW_MS, 0, each.offset), each.body) for each in [*old, *new]]
    for limit in (1, 2, 9):
        assert of_pages(partial(by_time_of, store, b"t", ALWAYS), limit) == wanted
        assert of_pages(partial(by_id_of, store, b"t", b"a"), limit) == wanted


@pytest.mark.parametrize("limit", [1, 7, 64, 1_000])
@pytest.mark.parametrize("cuts", [(200,), (30, 100), (64, 90, 91, 150)])
def test_a_topic_that_is_read_anew_in_other_batches_tells_each_record_once(
    limit: int, cuts: tuple[int, ...]
) -> None:
    """Where a log has lost its end, it is read again from its begin."""
    store = HistoryStore(MemoryMap())
    told = [note(n, f"s{n % 3}", NOW_MS + n // 150) for n in range(200)]
    for begin, end in (
        (0, 130),
        (130, 170),
        (170, 200),
        *zip((0, *cuts), (*cuts, 200), strict=False),
    ):
        store.add(0, told[begin:end], end)
    wanted = [(SortKey(each.head.at_ms, 0, each.offset), each.body) for each in told]
    some = [each for each in wanted if decode_lifecycle(each[1]).schedule_id == "s1"]
    assert of_pages(partial(by_time_of, store, b"t", ALWAYS), limit) == wanted
    assert of_pages(partial(by_id_of, store, b"t", b"s1"), limit) == some


def test_counters_tell_requests_fires_and_how_late() -> None:
    store = HistoryStore(MemoryMap())
    fired = [
        note(n, "a", NOW_MS + late, Outcome.FIRED, due_at=NOW_MS)
        for n, late in enumerate([0, 1000, 1001])
    ]
    refused = note(9, "a", NOW_MS, Outcome.CONFLICT)
    store.add(0, [*fired, note(3, "a", NOW_MS, Outcome.MISSED), note(4, "a", NOW_MS), refused], 5)
    (counted,) = hours(store, NOW_MS, NOW_MS + 1, ALWAYS).values()
    shown = counters.shown(counted, fires_told=True)
    assert (shown["requests"], shown["accepted"], shown["fires"], shown["missed"]) == (2, 1, 3, 1)
    assert shown["success_rate"] == 0.75
    assert shown["share_within_1s"] == round(2 / 3, 6)
    assert counters.shown(counters.empty(), fires_told=True)["success_rate"] is None
    untold = counters.shown(counted, fires_told=False)
    assert untold == {**shown, "success_rate": None, "share_within_1s": None}


def test_what_is_too_old_is_forgotten_and_others_stay(store: HistoryStore) -> None:
    store.add(0, [note(50, "a", NOW_MS, tenant="u")], 51)  # type: ignore[arg-type]
    assert dict(store.tenants()) == {b"t": NOW_MS, b"u": NOW_MS}
    before_ms = NOW_MS + 2 * DAY_MS
    store.forget(b"t", before_ms)
    assert dict(store.tenants()) == {b"t": before_ms, b"u": NOW_MS}
    assert ids(store.of_schedule(b"t", b"a", SortKey(0, 0, 0), END_MS)) == [("a", before_ms)]
    assert min(hours(store, 0, END_MS, ALWAYS)) >= before_ms // HOUR_MS * HOUR_MS
    assert ids(store.of_tenant(b"u", SortKey(0, 0, 0), END_MS, ALWAYS)) == [("a", NOW_MS)]


def test_heads_are_read_as_the_whole_record_is() -> None:
    for outcome in Outcome:
        given = note(1, "ü" * 100, NOW_MS, outcome, due_at=NOW_MS - 5)
        assert given.head == (b"t", ("ü" * 100).encode(), outcome, NOW_MS, NOW_MS - 5)


def test_an_end_of_a_delivery_that_is_cut_off_is_kept_and_counts_no_retries() -> None:
    """Whoever may write to the topic can leave one there; the history goes on behind it."""
    store = HistoryStore(MemoryMap())
    whole = note(0, "a", NOW_MS, Outcome.FAILED)
    head = whole.body[: len(whole.body) - 4]
    store.add(0, [HistoryEntry(0, headline(head), head)], 1)
    counted = store.statistics(b"t", NOW_MS, NOW_MS + 1, ALWAYS)
    assert store.position(0) == 1
    assert counted.retries == {}
    assert [each[counters.NAMES.index("failed")] for each in counted.hours.values()] == [1]
