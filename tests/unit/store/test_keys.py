"""Keys sort as their numbers do, and rooms of the key space do not overlap."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from belfry.schedules.rule import Rule, encode_rule
from belfry.store.layout import groups, keys
from belfry.store.layout.buckets import bucket_name, left_by_names
from belfry.store.layout.dependence import dependence_in, dependence_of
from belfry.store.layout.keys import timeline_key
from belfry.store.layout.locations import (
    IN_TIMELINE,
    Location,
    encode_location,
    timeline_keys_at,
)
from belfry.store.layout.pending import KIND_CODES, encode_pending
from tests.unit.store.test_records import ROW

T0 = 1_800_000_000_000
NOON = T0 - T0 % 60_000


def test_the_timeline_is_in_the_order_of_due_instants_and_acceptance() -> None:
    places = [(0, 0), (59_999, 1), (60_000, 0), (T0, 9), (T0, 10), (T0 + 1, 0), (T0 + 60_000, 0)]
    made = [keys.timeline_key(*place) for place in places]
    assert made == sorted(made)
    assert [keys.timeline_sort_key(key) for key in made] == places


def test_backlogs_of_tenants_with_a_common_beginning_lie_apart() -> None:
    for tenant in (b"a", b"a-", b"a.b", b"ab", b"b"):
        prefix = keys.queue_prefix(b"b", tenant)
        inside = [keys.queue_key(b"b", tenant, due, 1) for due in (0, T0, 2**62)]
        for other in (b"a", b"a-", b"a.b", b"ab", b"b"):
            start = keys.queue_prefix(b"b", other)
            found = [key for key in inside if start <= key < start[:-1] + b"\1"]
            assert found == (inside if other == tenant else [])
        assert all(key.startswith(prefix) for key in inside)
        assert [keys.queue_of(key) for key in inside] == [b"b" + tenant] * 3
        assert [keys.due_of(key) for key in inside] == [0, T0, 2**62]


@pytest.mark.parametrize(
    ("key", "start", "end"),
    [
        (keys.timeline_key(0, 0), keys.TIMELINE_PREFIX, keys.TIMELINE_END),
        (keys.timeline_key(2**32 * 60_000 - 1, 2**64 - 1), keys.TIMELINE_PREFIX, keys.TIMELINE_END),
        (keys.queue_key(b"b", b"~", 2**63 - 1, 2**64 - 1), keys.BACKLOG_PREFIX, keys.BACKLOG_END),
        (keys.queue_key(b"c", b"~", 2**63 - 1, 2**64 - 1), keys.CATCH_UP_PREFIX, keys.CATCH_UP_END),
        (keys.paused_key(b"~/~"), keys.PAUSED_PREFIX, keys.PAUSED_END),
        (keys.NAMED_PREFIX + keys.SETTINGS_KEY, keys.NAMED_PREFIX, keys.NAMED_END),
        (keys.NAMED_PREFIX + b"\xff" * 9, keys.NAMED_PREFIX, keys.NAMED_END),
    ],
)
def test_each_room_holds_its_keys(key: bytes, start: bytes, end: bytes) -> None:
    assert start <= key < end


def test_rooms_do_not_overlap() -> None:
    bounds = [
        keys.BACKLOG_PREFIX, keys.BACKLOG_END, keys.NAMED_PREFIX, keys.NAMED_END,
        keys.TIMELINE_PREFIX, keys.TIMELINE_END,
    ]  # fmt: skip
    assert bounds == sorted(bounds)
    for meta in (keys.META_STAMP, keys.META_STATE):
        assert keys.NAMED_END <= meta < keys.TIMELINE_PREFIX


def test_no_schedule_has_the_key_of_something_else() -> None:
    assert keys.request_key("demo", "r")[:1] == keys.manifest_key(1)[:1] == b"\0"
    assert keys.SETTINGS_KEY not in {keys.request_key("", ""), keys.manifest_key(0)}


def test_what_a_lock_holds_lies_in_due_order_and_no_other_lock_within() -> None:
    """The size of a lock's name lies before it, so none is the beginning of another."""
    place = bytes(7) + b"\5" + bytes(7) + b"\7"
    assert keys.locked_key(b"shop", b"gpack", 5, 7) == b"hshop\0g\4pack" + place
    assert keys.lock_of(keys.locked_key(b"shop", b"gpack", 5, 7)) == (b"shop", b"gpack")
    for lock in (b"g", b"gp", b"gpa", b"dpa"):
        inside = [keys.locked_key(b"shop", lock, due, 2**64 - 1) for due in (0, T0, 2**62)]
        assert inside == sorted(inside)
        for other in (b"g", b"gp", b"gpa", b"dpa"):
            start, end = keys.locked_prefix(b"shop", other), keys.behind_lock(b"shop", other)
            assert [start <= key < end for key in inside] == [other == lock] * 3


def test_names_of_a_tenant_lie_apart_from_those_of_others() -> None:
    start, end = keys.names_range(b"demo")
    for tenant in ("demo", "dem", "demo-", "demo.x", "demo0"):
        for schedule_id in ("a", "~", "é/1"):
            key = keys.named_key(keys.schedule_key(tenant, schedule_id))
            assert (start <= key < end) == (tenant == "demo")


def test_requests_that_wait_for_a_group_lie_between_those_of_others() -> None:
    start, end = groups.held_range(7)
    for group in (6, 7, 8):
        for offset in (0, 900, 2**64 - 1):
            assert (start <= groups.held_key(group, offset) < end) == (group == 7)


def test_a_schedule_waits_behind_the_lock_of_whom_it_waits_for() -> None:
    one, all_of = Rule("AFTER_ACK", awaited="é"), Rule("AFTER_GROUP", awaited="g")
    assert dependence_in(one) == "dé".encode()
    assert dependence_in(all_of) == b"eg"
    assert dependence_in(Rule("AFTER_ACK")) == dependence_in(Rule("EVERY", 7)) == b""
    row = ROW._replace(kind=KIND_CODES["AFTER_GROUP"], extra=encode_rule(all_of))
    assert dependence_of(encode_pending(row)) == b"eg"
    later = row._replace(extra=b"\2" + row.extra[1:])
    assert dependence_of(encode_pending(later)) == b"", "a later release has written its rule"


def test_manifests_take_turns_on_their_slots() -> None:
    slots = {keys.manifest_key(number) for number in range(keys.MANIFEST_SLOTS)}
    assert len(slots) == keys.MANIFEST_SLOTS
    assert keys.manifest_key(7) == keys.manifest_key(7 + keys.MANIFEST_SLOTS)


@pytest.mark.parametrize("spread_ms", [1, 60, 60_000, 3_600_000])
def test_places_of_many_are_those_of_each(spread_ms: int) -> None:
    """Within a minute and across minutes, of records that lie in any order."""
    random = Random(spread_ms)
    for first_ms in (0, NOON, NOON + 59_970):
        places = [
            (first_ms + random.randrange(spread_ms), random.getrandbits(64)) for _ in range(40)
        ]
        rows = [encode_location(Location(IN_TIMELINE, *place)) for place in places]
        left = timeline_keys_at(rows)
        assert left == [timeline_key(*place) for place in places]
        names = [b"t%d/%d" % (number % 3, number) for number in range(len(places))]
        each = [bucket_name(b"t%d" % (n % 3), due_ms) for n, (due_ms, _) in enumerate(places)]
        assert left_by_names(names, left) == Counter(each)
    assert timeline_keys_at([]) == []
    assert left_by_names([], []) == Counter()


def test_a_level_is_told_by_its_key_and_by_its_queue() -> None:
    for tenant in (b"a", b"shop"):
        plain, level = (keys.queue_key(b"b", tenant, T0, 7, each) for each in (b"", b"\x07"))
        assert plain == b"b" + tenant + b"\0" + plain[-16:]
        assert level == b"b" + tenant + b"\1\7" + plain[-16:]
        assert [keys.sort_key(plain), keys.sort_key(level)] == [(T0, 7)] * 2
        assert keys.queue_of(plain) == b"b" + tenant
        assert keys.queue_of(level) == b"b" + tenant + b"\1\7"
        assert keys.level_of(tenant) == (tenant, b"")
        assert keys.level_of(tenant + b"\1\7") == (tenant, b"\7")
        assert keys.queue_size_key(b"b" + tenant) == b"mlineb" + tenant
        assert keys.queue_size_key(b"b" + tenant + b"\1\7") == b"mlevelb" + tenant + b"\1\7"
        first, end = keys.queue_range(b"b", tenant, b"\7")
        assert first < level < end <= keys.queue_key(b"b", tenant, 0, 0, b"\x08")


def test_an_end_of_a_wait_is_read_as_it_was_written() -> None:
    awaited = keys.awaited_key(b"shop", b"f/1")
    assert keys.until_of(keys.until_key(T0, awaited)) == (T0, awaited)
    assert keys.awaited_names(awaited) == (b"shop/f", b"1")
    assert keys.awaited_names(keys.awaited_key(b"shop", b"f1")) == (b"shop", b"f1")
