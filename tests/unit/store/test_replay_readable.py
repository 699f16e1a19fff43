"""A replay notices what this version cannot fire, before anybody is fenced."""

from __future__ import annotations

from belfry.store.layout import keys
from belfry.store.net import Change
from belfry.store.ordered_map import MemoryMap
from belfry.store.readable import reads
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import T0, Driver
from tests.unit.engine.unreadable import (
    ZONES,
    newer_rule,
    pending,
    zone_known,
    zoned_rule,
)

__all__ = ["zone_known"]


def read(changes: list[Change], rows: MemoryMap) -> Replay:
    """A replay of all that a changelog holds, from where the store stands."""
    found = Replay(ScheduleStore(rows))
    start = found.offset
    found.apply(changes[start:], range(start, len(changes)), T0)
    return found


def changelog() -> Driver:
    """A partition with one schedule by the clock of a zone."""
    driver = Driver()
    driver.ask(kind="CRON", cron="0 9 * * *", timezone="Europe/Paris")
    driver.ask(schedule_id="b", at=T0 + 5)
    driver.step(T0, fire=False)
    return driver


def test_a_rule_of_a_newer_release_is_noticed() -> None:
    driver = changelog()
    newer = pending(newer_rule(), "new", T0 + 9)
    driver.engine._store.keep_in_timeline(b"demo/new", newer, T0 + 9, 0)
    driver.engine.claim(None)
    driver.end(T0)
    found = read(driver.changelog, MemoryMap())
    assert list(found.unreadable) == [b"demo/new"]
    assert "Run the version that wrote it" in found.unreadable[b"demo/new"]
    found.finish(T0)


def test_a_zone_that_is_missing_is_noticed(zone_known: ZONES) -> None:
    changes = changelog().changelog
    assert read(changes, MemoryMap()).unreadable == {}
    zone_known(False)
    assert list(read(changes, MemoryMap()).unreadable) == [b"demo/a"]


def test_what_lies_on_disk_is_looked_through_by_who_reads_something_else(
    zone_known: ZONES,
) -> None:
    driver, rows = changelog(), MemoryMap()
    read(driver.changelog, rows).finish(T0)
    assert rows.get(keys.META_READABLE) == reads()
    zone_known(False)
    found = Replay(ScheduleStore(rows))
    assert list(found.unreadable) == [b"demo/a"]
    # It is not forgotten by the next records, nor by the next process.
    driver.ask(schedule_id="c", at=T0 + 7)
    driver.step(T0, fire=False)
    assert list(read(driver.changelog, rows).unreadable) == [b"demo/a"]
    assert rows.get(keys.META_READABLE) is None
    assert list(Replay(ScheduleStore(rows)).unreadable) == [b"demo/a"]
    driver.ask(action="CANCEL")
    driver.step(T0, fire=False)
    assert read(driver.changelog, rows).unreadable == {}


def test_a_replay_that_was_cut_short_has_looked_through_what_it_laid() -> None:
    driver, rows = changelog(), MemoryMap()
    read(driver.changelog, rows)
    assert rows.get(keys.META_READABLE) == reads()


def test_what_was_looked_through_is_not_looked_through_again() -> None:
    driver, rows = changelog(), MemoryMap()
    read(driver.changelog, rows).finish(T0)
    key = next(key for key, _ in rows.scan(keys.TIMELINE_PREFIX, keys.TIMELINE_END))
    rows.write({key: pending(zoned_rule()[:6], "a", T0)})
    assert Replay(ScheduleStore(rows)).unreadable == {}
    rows.write({keys.META_READABLE: b"of another"})
    assert list(Replay(ScheduleStore(rows)).unreadable) == [b"demo/a"]


def test_a_store_that_begins_empty_is_not_looked_through_later() -> None:
    """An owner's rows are never read by a replay: a checkpoint of them says who can read them."""
    rows = MemoryMap()
    Replay(ScheduleStore(rows)).finish(T0)
    assert rows.get(keys.META_READABLE) == reads()


def test_an_owner_with_nothing_to_read_says_that_it_can_read_what_is_there() -> None:
    """What it adds may be more than the release before can read, which then looks through it."""
    driver, rows = changelog(), MemoryMap()
    read(driver.changelog, rows).finish(T0)
    rows.write({keys.META_READABLE: b"of the release before"})
    Replay(ScheduleStore(rows)).finish(T0)
    assert rows.get(keys.META_READABLE) == reads()


def test_an_owner_that_cannot_read_all_with_nothing_to_read_says_nothing(
    zone_known: ZONES,
) -> None:
    driver, rows = changelog(), MemoryMap()
    read(driver.changelog, rows).finish(T0)
    zone_known(False)
    Replay(ScheduleStore(rows)).finish(T0)
    assert rows.get(keys.META_READABLE) is None
