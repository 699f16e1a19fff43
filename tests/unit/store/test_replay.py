"""Replay leads to what the manifests say, or to a hole that is noticed."""

from __future__ import annotations

import copy

import pytest

from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.layout.buckets import decode_waiting
from belfry.store.layout.records import UnknownFormat
from belfry.store.net import Change
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import T0, Driver


def partition() -> Driver:
    """A partition after ten transactions; 6 and 7 wait, 9 is late, the others are over."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    for number in range(8):
        driver.ask(schedule_id=f"{number}", at=T0 + number * 10)
        driver.step(T0, fire=False)
    driver.run(T0 + 55)
    driver.tenants.hold("late", "its topic is missing")
    driver.ask(tenant="late", schedule_id="9", at=T0 - 1)
    driver.step(T0 + 56)
    return driver


def replay(changes: list[Change], rows: MemoryMap | None = None, by: int = 3) -> Replay:
    store = ScheduleStore(MemoryMap() if rows is None else rows)
    found = Replay(store)
    for at in range(found.offset, len(changes), by):
        end = min(at + by, len(changes))
        found.apply(changes[at:end], range(at, end), T0 + 60)
    found.finish(T0 + 60)
    return found


def test_an_empty_changelog_leads_to_nothing() -> None:
    assert replay([]).manifest is None


@pytest.mark.parametrize("by", [1, 2, 3, 1000])
def test_replay_from_nothing_gives_the_same_store(by: int) -> None:
    driver = partition()
    rows = MemoryMap()
    found = replay(driver.changelog, rows, by)
    assert found.manifest == driver.engine.manifest
    assert found.settings == b"settings"
    # An owner alone leads to what is over one day.
    of_its_own = {keys.META_STATE, keys.META_READABLE, keys.META_ENDS}
    held, live = (
        {k: row for k, row in each.scan(b"", b"\xff") if k not in of_its_own and k[:1] != b"e"}
        for each in (rows, driver.rows)
    )
    # What left a bucket may have widened its bounds for the one, and not for the other.
    counts = [_without_bounds(each) for each in (held, live)]
    assert counts[0] == counts[1]


def _without_bounds(rows: dict[bytes, bytes]) -> dict[bytes, object]:
    return {key: decode_waiting(row)[0] if key[:1] == b"n" else row for key, row in rows.items()}


def test_names_are_asked_for_in_one_go() -> None:
    asked: list[bytes] = []

    class Asked(MemoryMap):
        def get(self, key: bytes) -> bytes | None:
            asked.append(key)
            return super().get(key)

    replay(partition().changelog, Asked(), 1000)
    assert [key for key in asked if key.startswith(b"k") and key[1:2] != b"\0"] == []


def test_a_replayed_store_fires_the_rest() -> None:
    driver = partition()
    rows = MemoryMap()
    replay(driver.changelog, rows)
    driver.tenants.hold("late", "")
    driver.start(rows)
    assert driver.run(T0 + 99) == ["9", "6", "7"]


def test_replay_goes_on_from_what_lies_on_disk() -> None:
    driver = partition()
    older = copy.deepcopy(driver.rows)
    driver.ask(schedule_id="6", action="CANCEL")
    driver.step(T0 + 57)
    found = replay(driver.changelog, older)
    assert found.manifest == driver.engine.manifest
    assert dict(older.scan(b"t", b"u")) == dict(driver.rows.scan(b"t", b"u"))


@pytest.mark.parametrize("lost", range(1, 9))
def test_a_lost_transaction_is_a_hole(lost: int) -> None:
    changes = partition().changelog
    ends = [at for at, (key, _) in enumerate(changes) if key.startswith(keys.MANIFEST_PREFIX)]
    holed = changes[: ends[lost - 1] + 1] + changes[ends[lost] + 1 :]
    with pytest.raises(HoleInChangelog, match=f"transaction {lost + 2} follows transaction {lost}"):
        replay(holed)


def test_a_lost_row_is_a_hole() -> None:
    changes = partition().changelog
    at = next(at for at, (key, _) in enumerate(changes) if key == b"demo/6")
    with pytest.raises(HoleInChangelog, match="1 schedules wait here"):
        replay([*changes[:at], *changes[at + 1 :]][:-2] + changes[-1:])


def test_half_a_transaction_is_a_hole() -> None:
    changes = partition().changelog
    with pytest.raises(HoleInChangelog, match="1 records follow the last manifest"):
        replay(changes[:-1])


def test_a_transaction_twice_is_a_hole() -> None:
    changes = partition().changelog
    with pytest.raises(HoleInChangelog):
        replay([*changes, *changes[-2:]])


def test_compaction_far_back_is_no_hole() -> None:
    driver = Driver()
    for number in range(keys.MANIFEST_SLOTS + 20):
        driver.engine.claim(None)
        if number == 3:
            driver.ask(at=T0 + 5)
            driver.engine.accept(driver.batch(), T0)
        driver.end(T0)
    last = {key: at for at, (key, _) in enumerate(driver.changelog)}
    compacted = [driver.changelog[at] for at in sorted(last.values())]
    assert len(compacted) < len(driver.changelog)
    found = replay(compacted, by=500)
    assert found.manifest == driver.engine.manifest


def test_a_record_of_another_version_stops_the_partition() -> None:
    changes = partition().changelog
    at = next(at for at, (key, _) in enumerate(changes) if key == b"demo/6")
    row = changes[at][1]
    assert row is not None
    changes[at] = (b"demo/6", b"\2" + row[1:])
    with pytest.raises(UnknownFormat):
        replay(changes)


@pytest.mark.parametrize(
    "key",
    [keys.REQUEST_PREFIX + b"demo/once", keys.ZONES_KEY, b"\0anobody/waits", b"\0x of its own"],
    ids=["an answer", "the zones", "awaited", "a name of its own"],
)
@pytest.mark.parametrize("format_", [0, 2])
def test_a_named_row_of_a_later_release_stops_the_partition_while_it_is_read(
    key: bytes, format_: int
) -> None:
    """Before the fence: whoever wrote it may still fire."""
    store = ScheduleStore(MemoryMap())
    row = bytes((format_, 8)) + bytes(60)
    changes = partition().changelog
    with pytest.raises(UnknownFormat, match="Run the version that wrote it"):
        Replay(store).apply([*changes[:-1], (key, row), changes[-1]], range(99), T0)


def test_settings_and_identity_have_formats_of_their_own() -> None:
    identity = encode_identity(Identity("c", "l", "i"))
    changes = [(keys.SETTINGS_KEY, b"{}"), (keys.IDENTITY_KEY, identity), *partition().changelog]
    found = Replay(ScheduleStore(MemoryMap()))
    found.apply(changes, range(len(changes)), T0)
    assert found.identity == Identity("c", "l", "i")


def test_a_row_that_is_no_schedules_stops_the_partition() -> None:
    changes = partition().changelog
    place = b"\1\5" + bytes(18)
    with pytest.raises(AssertionError, match="row 5 under the schedule's key"):
        replay([(b"demo/6", place), *changes])


@pytest.mark.parametrize("by", [1, 2, 4, 7])
def test_a_replay_that_was_cut_short_goes_on(by: int) -> None:
    """Wherever the crash came, the second replay ends where the first would have ended."""
    driver = partition()
    changes = driver.changelog
    for crashed_at in range(0, len(changes), by):
        rows = MemoryMap()
        first = Replay(ScheduleStore(rows))
        for at in range(0, crashed_at, by):
            end = min(at + by, len(changes))
            first.apply(changes[at:end], range(at, end), T0 + 60)
        found = replay(changes, rows, by)
        assert found.manifest == driver.engine.manifest
        for low, high in ((b"b", b"e"), (b"f", b"l"), (b"t", b"u")):
            assert dict(rows.scan(low, high)) == dict(driver.rows.scan(low, high))


def test_a_replay_goes_on_right_behind_the_last_manifest() -> None:
    """However far it has read: so the next reader knows where that manifest lies."""
    changes = partition().changelog
    found = Replay(ScheduleStore(MemoryMap()))
    assert found.manifest_at == -1
    found.apply([*changes, (b"a/unended", None)], range(len(changes) + 1), T0)
    assert (found.offset, found.manifest_at) == (len(changes), len(changes) - 1)
    found.apply([], [], T0)
    assert found.offset == len(changes)


def test_many_changes_without_a_manifest_are_not_kept_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("belfry.store.replay.MOST_BUFFERED", 2)
    driver = Driver()
    for number in range(20):
        driver.ask(schedule_id=f"{number}", at=T0 + number)
    driver.step(T0)
    driver.run(T0 + 9)
    rows = MemoryMap()
    found = replay(driver.changelog, rows, by=3)
    assert found.manifest == driver.engine.manifest
    assert dict(rows.scan(b"k", b"l")) == dict(driver.rows.scan(b"k", b"l"))
