"""What is folded in bulk is what is folded one by one, whatever the windows are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

import pytest

from belfry.store.buckets import differing
from belfry.store.layout import keys
from belfry.store.layout.buckets import BUCKETS_PREFIX, decode_waiting
from belfry.store.net import Change, net_of
from belfry.store.ordered_map import MemoryMap, Range
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.property.histories import History
from tests.unit.engine.driver import HOUR, T0, Driver

SEEDS = 40
STEPS = 60


def logged(seed: int) -> list[Change]:
    """The changelog of a random history, in which owners and their policies change."""
    history = History(seed)
    for _ in range(STEPS):
        history.go_on()
    return history.driver.changelog


class Written(MemoryMap):
    """A map that remembers what was ever written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[bytes, list[bytes | None]] = {}

    def write(self, writes: Mapping[bytes, bytes | None], cleared: Sequence[Range] = ()) -> None:
        for key, value in writes.items():
            self.told.setdefault(key, []).append(value)
        super().write(writes, cleared)


def folded(
    log: list[Change], windows: Iterator[int], rows: MemoryMap | None = None
) -> tuple[Replay, MemoryMap]:
    """A store that so many records were laid into at a time, each as they are given."""
    rows = MemoryMap() if rows is None else rows
    replay = Replay(ScheduleStore(rows))
    at = replay.offset
    while at < len(log):
        end = min(at + next(windows), len(log))
        for one in range(at, end):
            replay.hold(log[one : one + 1], [one])
        replay.fold(T0)
        at = end
    return replay, rows


def ones() -> Iterator[int]:
    while True:
        yield 1


def some(seed: int) -> Iterator[int]:
    random = Random(seed)
    while True:
        yield random.choice([1, 2, 5, 20, 100, 10_000])


def content(rows: MemoryMap) -> dict[bytes, object]:
    """All that a store holds; of a bucket how many wait, for its bounds may be wider."""
    assert list(differing(rows)) == []
    return {
        key: decode_waiting(row)[0] if key[:1] == BUCKETS_PREFIX else row
        for key, row in rows.scan(b"", b"\xff")
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_fold_in_windows_is_the_fold_one_by_one(seed: int) -> None:
    log = logged(seed)
    one, slowly = folded(log, ones())
    other, quickly = folded(log, some(seed))
    assert content(slowly) == content(quickly)
    told = [(each.manifest, each.offset, each.unreadable) for each in (one, other)]
    assert told[0] == told[1]
    for replay, rows in ((one, slowly), (other, quickly)):
        replay.finish(T0)
        assert list(differing(rows)) == []
    assert content(slowly) == content(quickly)


@pytest.mark.parametrize("seed", range(0, SEEDS, 4))
def test_a_fold_that_was_cut_short_amid_a_window_goes_on(seed: int) -> None:
    """What was held and not folded is read again, from the offset that lies with the rows."""
    log = logged(seed)
    _, whole = folded(log, some(seed))
    random = Random(seed)
    rows = MemoryMap()
    replay = Replay(ScheduleStore(rows))
    while replay.offset < len(log):
        at = replay.offset
        end = min(at + random.choice([30, 60, 200]), len(log))
        replay.hold(log[at:end], range(at, end))
        if random.random() < 0.5:
            replay.fold(T0)
            # What comes now is held, and lost by the crash.
            replay.hold(log[end : end + 9], range(end, min(end + 9, len(log))))
        replay = Replay(ScheduleStore(rows))
    assert content(rows) == content(whole)


@pytest.mark.parametrize("seed", range(0, SEEDS, 4))
def test_the_net_is_the_last_of_each_key_in_their_order(seed: int) -> None:
    log = logged(seed)
    net = net_of(log)
    rows = net.schedules + net.others
    assert dict(rows) == {k: v for k, v in log if not k.startswith(keys.MANIFEST_PREFIX)}
    assert len(dict(rows)) == len(rows)
    assert [key for key, _ in net.others if key[:1] != b"\0"] == []
    assert [key for key, _ in net.schedules if key[:1] == b"\0"] == []
    for some in (net.schedules, net.others):
        places = [max(at for at, each in enumerate(log) if each == row) for row in some]
        assert places == sorted(places)
    told = [row for key, row in log if key.startswith(keys.MANIFEST_PREFIX)]
    assert net.manifests == told


def test_what_was_born_and_died_within_a_window_never_reaches_the_store() -> None:
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    for number in range(6):
        driver.ask(schedule_id=f"{number}", at=T0 + 5, payload=b"p" * 50)
    driver.ask(schedule_id="later", at=T0 + 49 * HOUR)
    driver.step(T0, fire=False)
    driver.ask(schedule_id="gone", at=T0 + 500)
    driver.step(T0 + 1)
    driver.ask(schedule_id="gone", action="CANCEL")
    driver.step(T0 + 2)
    assert len(driver.run(T0 + 5)) == 6
    driver.ask(timestamp_ms=T0 + 48 * HOUR, schedule_id="later", at=T0 + 50 * HOUR)
    driver.step(T0 + 48 * HOUR, fire=False)
    driver.sweep(T0 + 48 * HOUR)
    rows = Written()
    folded(driver.changelog, iter([10_000]), rows)
    timeline = [key for key in rows.told if key[:1] == keys.TIMELINE_PREFIX]
    assert len(timeline) == 1
    assert not [row for told in rows.told.values() for row in told if row and b"ppp" in row]
    # Of what has been swept as well not even a deletion is written.
    assert any(row is None for _, row in driver.changelog)
    names = {keys.name_in(key) for key in rows.told if key[:1] == keys.NAMED_PREFIX}
    assert {name for name in names if name.startswith(b"demo/")} == {b"demo/later"}


def test_each_manifest_counts_however_many_a_window_holds() -> None:
    driver = Driver()
    for _ in range(keys.MANIFEST_SLOTS + 50):
        driver.engine.claim(None)
        driver.end(T0)
    replay, _ = folded(driver.changelog, iter([100_000]))
    replay.finish(T0)
    assert replay.manifest == driver.engine.manifest
