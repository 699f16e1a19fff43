"""What a standby holds is folded in time, and is never behind the position that its store tells."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import MagicMock

import pytest

from belfry.host.failpoints import Failpoints
from belfry.host.rocks import RocksMap
from belfry.kafka.changelog_reader import UnreadableBatch
from belfry.kafka.log_bounds import OutOfRange
from belfry.partitions.standby import Standby
from belfry.partitions.standby_upkeep import (
    EVERY_MS,
    FLUSH_EVERY_MS,
    MOST_BYTES,
    MOST_RECORDS,
    FoldRhythm,
    StandbyUpkeep,
)
from belfry.recovery.reading import ReplayProgress
from belfry.recovery.takeover import TakeOver
from belfry.store.layout import keys
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import T0, Driver
from tests.unit.recovery.test_left_to_others import Evidence, Producer
from tests.unit.recovery.test_wrong_rows import CLOCK, STAMP, ReadOn

NAMES: Final = (b"k", b"l")


def test_the_first_records_are_folded_at_once_and_the_next_when_it_is_time() -> None:
    rhythm = FoldRhythm()
    assert not rhythm.due((0, 0), 5.0)
    assert rhythm.due((1, 10), 6.0)
    assert not rhythm.due((1, 10), 6.0 + EVERY_MS - 1)
    assert rhythm.due((1, 10), 6.0 + EVERY_MS)
    assert not rhythm.due((0, 0), 6.0 + 9 * EVERY_MS)


@pytest.mark.parametrize("held", [(MOST_RECORDS, 1), (1, MOST_BYTES)], ids=["records", "bytes"])
def test_no_more_is_held_than_is_folded_in_a_moment(held: tuple[int, int]) -> None:
    rhythm = FoldRhythm()
    assert rhythm.due((1, 10), 6.0)
    assert rhythm.due(held, 6.0)
    assert not rhythm.due((held[0] - 1, held[1] - 1), 6.0)


class Following:
    """A standby's store, and a clock that a test holds."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.rows = MemoryMap()
        self.replay = Replay(ScheduleStore(self.rows))
        self.opener: Any = MagicMock()
        self.opener.clock.monotonic_ms = lambda: self.now_ms
        self.opener.clock.wall_ms = lambda: T0 + self.now_ms
        self.opener.log_ends.ends.return_value = (0, 99)
        self.warm: Any = SimpleNamespace(
            rows=MagicMock(), replay=self.replay, changelog=MagicMock()
        )
        self.upkeep = StandbyUpkeep(3, self.opener, ReplayProgress())

    def turn(self, *, caught_up: bool = True) -> list[bytes]:
        """A turn; the names that the store knows after it."""
        self.upkeep.turn(self.warm, caught_up=caught_up)
        names = [keys.name_in(key) for key, _ in self.rows.scan(*NAMES)]
        return [name for name in names if name[:1] != b"\0"]


def asked(driver: Driver, name: str) -> None:
    """One schedule more waits."""
    driver.ask(schedule_id=name, at=T0 + 60_000)
    driver.step(T0, fire=False)


def test_what_is_held_is_folded_though_nothing_more_comes() -> None:
    driver, following = Driver(), Following()
    asked(driver, "a")
    first = len(driver.changelog)
    asked(driver, "b")
    following.replay.hold(driver.changelog[:first], range(first))
    assert following.turn() == [b"demo/a"]
    following.replay.hold(driver.changelog[first:], range(first, len(driver.changelog)))
    assert following.turn() == [b"demo/a"]
    # What a crash leaves now says how far it goes, and no further.
    assert Replay(ScheduleStore(following.rows)).offset == first
    following.now_ms += EVERY_MS
    assert following.turn() == [b"demo/a", b"demo/b"]
    assert Replay(ScheduleStore(following.rows)).offset == len(driver.changelog)


def test_after_a_fold_checkpoints_may_be_made_and_memory_goes_to_disk_now_and_then() -> None:
    driver, following = Driver(), Following()
    made, flush = following.opener.checkpoint.return_value, following.warm.rows.flush
    for number in range(3):
        at = len(driver.changelog)
        asked(driver, f"{number}")
        following.replay.hold(driver.changelog[at:], range(at, len(driver.changelog)))
        following.now_ms += FLUSH_EVERY_MS / 2
        following.turn(caught_up=number > 0)
        following.turn(caught_up=True)
    assert [call.args[1] for call in made.call_args_list] == [FLUSH_EVERY_MS, FLUSH_EVERY_MS / 2]
    assert flush.call_count == 1


@pytest.mark.parametrize("more", [False, True], ids=["all was read", "more is to be read"])
def test_who_is_promoted_folds_what_it_holds_before_it_fences(tmp_path: Path, more: bool) -> None:
    """Its reader is behind those records already, so nobody reads them again."""
    driver = Driver()
    driver.engine.claim(b"settings")
    driver.end(T0)
    asked(driver, "a")
    cut = len(driver.changelog)
    asked(driver, "b")
    driver.ask(schedule_id="a", action="CANCEL")
    driver.step(T0)
    read = len(driver.changelog)
    if more:
        asked(driver, "c")
    rows = RocksMap(tmp_path / "partition-3")
    rows.write({keys.META_STAMP: STAMP.encode()})
    replay = Replay(ScheduleStore(rows))
    replay.apply(driver.changelog[:cut], range(cut), T0)
    replay.hold(driver.changelog[cut:read], range(cut, read))
    changelog: Any = ReadOn(driver.changelog)
    changelog.position = read
    seen: list[int] = []
    evidence: Any = Evidence()
    evidence.check = lambda found, _hides=None: seen.append(found.held[0])
    producer: Any = Producer()
    local: Any = SimpleNamespace(stamp=STAMP, clock=CLOCK, restored_ms=0)
    ends = Failpoints(""), lambda _event: None, lambda log: log.ends()[1]
    take_over = TakeOver(local, evidence, ReplayProgress(), *ends)
    found = take_over.run(changelog, producer, (rows, replay))
    assert seen[0] == 0
    assert found.manifest == driver.engine.manifest
    assert dict(rows.scan(b"t", b"u")) == dict(driver.rows.scan(b"t", b"u"))
    rows.close()


def test_memory_goes_to_disk_though_kafka_does_not_say_where_the_log_ends() -> None:
    driver, following = Driver(), Following()
    following.opener.log_ends.ends.side_effect = ConnectionError("nobody answers")
    asked(driver, "a")
    following.replay.hold(driver.changelog, range(len(driver.changelog)))
    following.now_ms += FLUSH_EVERY_MS
    assert following.turn() == [b"demo/a"]
    assert following.warm.rows.flush.call_count == 1


@pytest.mark.parametrize("error", [OutOfRange("it was cut off"), RuntimeError("whatever")])
def test_a_standby_that_starts_over_keeps_how_far_it_has_read(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A log that ends before what was read is found by it, and by nothing else."""
    driver, following = Driver(), Following()
    asked(driver, "a")
    following.replay.hold(driver.changelog, range(len(driver.changelog)))
    following.warm.close = lambda: None
    standby = Standby(3, following.opener, lambda _partition: None)
    standby._warm = following.warm
    monkeypatch.setattr(standby, "_follow", MagicMock(side_effect=error))
    monkeypatch.setattr("belfry.partitions.standby.PAUSE_AFTER_ERROR_S", 0.0)
    standby._turn()
    assert Replay(ScheduleStore(following.rows)).offset == len(driver.changelog)


def test_a_standby_that_is_stopped_keeps_it_too() -> None:
    driver, following = Driver(), Following()
    asked(driver, "a")
    following.replay.hold(driver.changelog, range(len(driver.changelog)))
    following.warm.close = lambda: None
    standby = Standby(3, following.opener, lambda _partition: None)
    standby._warm = following.warm
    standby.stop()
    assert Replay(ScheduleStore(following.rows)).offset == len(driver.changelog)


def test_a_batch_that_cannot_be_read_is_told_and_is_not_taken_for_a_cluster_that_is_away() -> None:
    following = Following()
    following.warm.changelog.position = 5
    following.warm.changelog.read.side_effect = UnreadableBatch("belfry.changelog/3: offset 5")
    standby = Standby(3, following.opener, lambda _partition: None)
    with pytest.raises(UnreadableBatch):
        standby._read(following.warm, MagicMock())


def test_what_stays_held_behind_a_fold_is_counted() -> None:
    driver, following = Driver(), Following()
    asked(driver, "a")
    manifest = len(driver.changelog)
    asked(driver, "b")
    rest = [driver.changelog[manifest]]
    following.replay.hold([*driver.changelog[:manifest], *rest], range(manifest + 1))
    following.replay.fold(T0)
    assert following.replay.held == (1, len(rest[0][1] or b""))
    assert following.replay.offset == manifest
