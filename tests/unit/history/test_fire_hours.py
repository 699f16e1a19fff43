"""Fires by the hour, counted from commits: in memory, at rest, and on their way between both."""

from __future__ import annotations

from pathlib import Path

import pytest

from belfry.history.fire_hours import FireHours
from belfry.history.fire_rows import LAST_HOUR, FireRows
from belfry.history.follower import Follower
from belfry.history.history_store import HistoryStore
from belfry.history.layout import HOUR_MS
from belfry.settings import Settings
from belfry.store.ordered_map import Damaged, MemoryMap

HOUR = 500_000
AT_MS = HOUR * HOUR_MS


class Clock:
    def __init__(self) -> None:
        self.now_ms = AT_MS

    def __call__(self) -> float:
        return self.now_ms


def test_a_step_counts_in_its_own_hour() -> None:
    """Whatever the clock says by the time of the commit."""
    clock = Clock()
    hours = FireHours(clock)
    clock.now_ms += 5 * HOUR_MS
    hours.add({"t": [0, 1_000, 1_001], "u": [5]}, AT_MS)
    hours.add({"t": [7]}, AT_MS + HOUR_MS - 1)
    hours.add({"t": [4_000], "v": []}, AT_MS + HOUR_MS)
    assert hours.of_tenant("t") == ({HOUR: (4, 3), HOUR + 1: (1, 0)}, 0)
    assert hours.of_tenant("u")[0] == {HOUR: (1, 1)}
    assert hours.of_tenant("nobody")[0] == {}


def test_what_could_not_be_written_comes_back() -> None:
    hours = FireHours(Clock())
    hours.add({"t": [0]}, AT_MS)

    def write_to_a_full_disk() -> None:
        with hours.taken() as found:
            assert found == {"t": {HOUR: (1, 1)}}
            hours.add({"t": [0], "u": [0]}, AT_MS)
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_to_a_full_disk()
    assert hours.of_tenant("t") == ({HOUR: (2, 2)}, 2)
    with hours.taken() as found:
        assert found == {"t": {HOUR: (2, 2)}, "u": {HOUR: (1, 1)}}
    assert hours.of_tenant("t") == ({}, 4)


def test_the_turn_is_odd_while_fires_go_to_the_store() -> None:
    hours = FireHours(Clock())
    with hours.taken():
        assert hours.turn % 2 == 1
    assert hours.turn == 2


def test_rows_add_up_and_are_told_by_tenant_and_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FireRows(MemoryMap())
    rows.add({"t": {HOUR: (3, 2), HOUR + 1: (1, 1)}, "t.u": {HOUR: (9, 9)}})
    rows.add({"t": {HOUR + 1: (4, 0), HOUR + 2: (1, 1)}})
    whole = {HOUR: (3, 2), HOUR + 1: (5, 1), HOUR + 2: (1, 1)}
    assert rows.of_tenant(b"t", 0, LAST_HOUR) == (whole, None)
    assert rows.of_tenant(b"t", HOUR + 1, HOUR + 1) == ({HOUR + 1: (5, 1)}, None)
    monkeypatch.setattr("belfry.history.fire_rows.ROWS", 2)
    assert rows.of_tenant(b"t", 0, LAST_HOUR).rest == HOUR + 2
    assert list(rows.tenants()) == [(b"t", HOUR), (b"t.u", HOUR)]


def test_a_new_store_has_every_hour_and_an_older_one_those_to_come() -> None:
    new, older = MemoryMap(), MemoryMap()
    HistoryStore(older).add(0, [], 1)
    for kept in (new, older):
        assert FireRows(kept).first_hour() == LAST_HOUR
        for now_ms in (HOUR * HOUR_MS + 5, (HOUR + 7) * HOUR_MS):
            FireRows(kept).begin(now_ms)
    assert FireRows(new).first_hour() == 0
    assert FireRows(older).first_hour() == HOUR + 1


class Unread(Follower):
    """Cannot read the topic; meets damage in its second turn, and ends after so many."""

    def __init__(self, data_dir: Path, hours: FireHours, turns: int) -> None:
        super().__init__(Settings(data_dir=data_dir), b"", list, lambda _: HOUR_MS, hours)
        self._left = turns
        self.first_hours: list[int] = []
        self.kept: list[dict[int, tuple[int, int]]] = []

    def _follow(self, store: HistoryStore, _rows: object) -> None:
        self.first_hours.append(store.fires.first_hour())
        self.kept.append(store.fires.of_tenant(b"t", 0, LAST_HOUR).hours)
        self._left -= 1
        if not self._left:
            self._thread.stopping.set()
        elif len(self.kept) == 2:
            raise Damaged("a scan ends amid the store")
        else:
            raise ConnectionError("there is no such topic")


def test_what_fired_is_kept_where_the_topic_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.history.follower.FLUSH_S", 0.0)
    hours = FireHours(Clock())
    follower = Unread(tmp_path, hours, turns=1)
    hours.add({"t": [0]}, AT_MS)
    follower.start(homes=1)
    follower._thread.join(20)
    assert follower.kept == [{HOUR: (1, 1)}]
    assert hours.of_tenant("t")[0] == {}
    follower.stop()


def test_after_damage_no_hour_counts_as_whole_that_was_lost(tmp_path: Path) -> None:
    follower = Unread(tmp_path, FireHours(Clock()), turns=3)
    follower.start(homes=1)
    follower._thread.join(20)
    follower.stop()
    assert follower.first_hours == [0, 0, HOUR + 1]


def test_a_store_that_takes_nothing_at_the_end_is_closed(tmp_path: Path) -> None:
    hours = FireHours(Clock())
    follower = Follower(Settings(data_dir=tmp_path), b"", list, lambda _: HOUR_MS, hours)
    follower._open()
    rows = follower._rows
    assert rows is not None
    hours.add({"t": [0]}, AT_MS)
    follower.store = HistoryStore(Full())
    follower.stop()
    assert not rows.is_open


class Full(MemoryMap):
    """A disk without room."""

    def write(self, *_: object) -> None:
        raise Exception("IO error: No space left on device")  # noqa: TRY002  # as RocksDB does


def test_the_follower_keeps_what_fired_when_it_stops_and_forgets_it_in_time(
    tmp_path: Path,
) -> None:
    clock = Clock()
    hours = FireHours(clock)
    keep_ms = 10 * HOUR_MS
    follower = Follower(Settings(data_dir=tmp_path), b"", list, lambda _: keep_ms, hours)
    store = follower.store = HistoryStore(MemoryMap())
    hours.add({"t": [0]}, AT_MS)
    clock.now_ms += 5 * HOUR_MS
    hours.add({"t": [0]}, clock.now_ms)
    follower.stop()
    assert store.fires.of_tenant(b"t", 0, LAST_HOUR).hours.keys() == {HOUR, HOUR + 5}
    clock.now_ms += 6 * HOUR_MS
    follower.sweep(store)
    assert store.fires.of_tenant(b"t", 0, LAST_HOUR).hours.keys() == {HOUR + 5}
