"""The follower of the history: what it does where its store takes no more."""

from __future__ import annotations

from pathlib import Path

from belfry.history import follower
from belfry.history.fire_hours import FireHours
from belfry.history.history_store import HistoryStore
from belfry.history.layout import HOUR_MS
from belfry.host.rocks import RocksMap
from belfry.settings import Settings


class Following(follower.Follower):
    """Meets a disk that refuses, the first time; ends the second time."""

    def __init__(self, data_dir: Path) -> None:
        settings = Settings(data_dir=data_dir)
        super().__init__(settings, b"", list, lambda _: 1_000, FireHours(lambda: 0.0))
        self.met: list[tuple[RocksMap, bool]] = []

    def _follow(self, store: HistoryStore, rows: RocksMap) -> None:
        self.met.append((rows, rows.is_open))
        if len(self.met) == 1:
            rows.stuck = True
            raise OSError("No space left on device")
        self._thread.stopping.set()


def test_a_store_that_is_stuck_is_opened_again(tmp_path: Path) -> None:
    following = Following(tmp_path)
    following.start(homes=1)
    assert following._thread.stopping.wait(20)
    following.stop()
    (first, _), (second, was_open) = following.met
    assert was_open
    assert first is not second
    assert not first.is_open
    assert not second.is_open
    assert following.store is None


def test_a_history_reaches_back_as_far_as_the_tenant_wants(tmp_path: Path) -> None:
    keep_ms = {b"week": 7 * 24 * HOUR_MS, b"for ever": 2**62}
    following = follower.Follower(
        Settings(data_dir=tmp_path), b"", list, keep_ms.__getitem__, FireHours(lambda: 1.8e12)
    )
    now_ms = 1_800_000_000_000
    assert following.reach_ms(b"week") == (now_ms - 7 * 24 * HOUR_MS, now_ms + HOUR_MS)
    assert following.reach_ms(b"for ever")[0] == 0
