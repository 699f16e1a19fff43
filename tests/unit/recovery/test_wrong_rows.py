"""Rows of a local store that contradict one another lead to a rebuild, and not to the same failure.

A bucket says how many schedules wait in a minute.  One that says too few, or nothing that can be
read, is met when a schedule leaves it: by a take-over that reads on, or by a step of the owner.  A
damaged block is met by whoever reads the rows in it first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from belfry.host import rocks
from belfry.host.failpoints import Failpoints
from belfry.host.rocks import RocksMap
from belfry.partitions.failure import Failures
from belfry.partitions.term import Owned
from belfry.recovery.local_state import LocalState
from belfry.recovery.reading import ReplayProgress
from belfry.recovery.stamp import Stamp
from belfry.recovery.takeover import TakeOver
from belfry.store.buckets import differing
from belfry.store.layout import keys
from belfry.store.layout.buckets import BUCKETS_END, BUCKETS_PREFIX, encode_bucket
from belfry.store.ordered_map import Damaged
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import T0, Driver
from tests.unit.partitions.test_failure import Log
from tests.unit.recovery.test_left_to_others import Changelog, Evidence, Producer

CLOCK: Any = SimpleNamespace(wall_ms=lambda: float(T0), monotonic_ms=float)
STAMP: Final = Stamp("cluster", "log", 3)
WRONG: Final = {"too few wait": encode_bucket(1, T0, T0), "no row of a bucket": b"wrong"}


class ReadOn(Changelog):
    """A changelog that is also read from amid on."""

    sieve = SimpleNamespace(manifest_at=-1, may_be_copies=lambda _offsets: False)

    def seek(self, offset: int, manifest_at: int = -1, known: Any = None) -> None:
        """Read on from here."""
        self.position = offset


def changes() -> tuple[Any, int]:
    """A changelog in which two of three schedules are cancelled, and where it was before that."""
    driver = Driver()
    for name in ("a", "b", "c"):
        driver.ask(schedule_id=name, at=T0 + 5_000)
    driver.step(T0, fire=False)
    before = len(driver.changelog)
    for name in ("a", "b"):
        driver.ask(schedule_id=name, action="CANCEL")
    driver.step(T0, fire=False)
    return driver.changelog, before


def take_over(home: Path, found: Any) -> RocksMap:
    """Take the partition over, up to the end of this changelog."""
    local = LocalState(home / "partition-3", STAMP, 10**9, CLOCK)
    changelog: Any = ReadOn(found)
    evidence: Any = Evidence()
    producer: Any = Producer()
    ends = Failpoints(""), lambda _event: None, lambda log: log.ends()[1]
    return TakeOver(local, evidence, ReplayProgress(), *ends).run(changelog, producer).rows


class DamagedSettings(RocksMap):
    """A store of which the block is damaged that holds the cluster's settings."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or what RocksDB's complaint comes to."""
        if key.endswith(keys.SETTINGS_KEY):
            raise self._meaning_of(Exception("Corruption: block checksum mismatch"))
        return super().get(key)


def plant(rows: RocksMap, row: bytes) -> None:
    """Make the only bucket wrong."""
    ((key, _),) = rows.scan(BUCKETS_PREFIX, BUCKETS_END)
    rows.write({key: row})


@pytest.fixture(params=list(WRONG.values()), ids=list(WRONG))
def wrong(request: pytest.FixtureRequest) -> Any:
    """A row of a bucket that is none."""
    return request.param


def test_a_take_over_that_meets_a_wrong_bucket_rebuilds_the_store(
    tmp_path: Path, wrong: bytes
) -> None:
    found, before = changes()
    rows = take_over(tmp_path, found[:before])
    plant(rows, wrong)
    rows.close()
    rows = take_over(tmp_path, found)
    assert list(differing(rows)) == []
    assert len(list(ScheduleStore(rows).all_pending())) == 1
    rows.close()


def test_damage_that_a_take_over_meets_at_its_very_end_removes_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings are read last, behind all checks; the next try has to be able to begin."""
    found, _ = changes()
    take_over(tmp_path, found).close()
    with monkeypatch.context() as patched:
        patched.setattr(rocks, "RocksMap", DamagedSettings)
        with pytest.raises(Damaged, match="checksum") as met:
            take_over(tmp_path, found)
    # While the error is held, whatever its frames hold is there, too.
    assert not (tmp_path / "partition-3").exists(), met
    rows = take_over(tmp_path, found)
    assert len(list(ScheduleStore(rows).all_pending())) == 1
    rows.close()


def test_an_owner_that_meets_a_wrong_bucket_begins_its_next_term_without_the_store(
    tmp_path: Path, wrong: bytes, made: Callable[[RocksMap], Owned]
) -> None:
    found, before = changes()
    rows = take_over(tmp_path, found[:before])
    plant(rows, wrong)
    store = ScheduleStore(rows)
    for name in (b"demo/a", b"demo/b"):
        row = store.named(name)
        assert row is not None
        store.remove(name, row)
    state = ScheduleStore(rows).state()
    assert state is not None
    with pytest.raises(Damaged, match="the bucket") as met:
        store.commit(state)
    failures, owned = Failures(Log(), CLOCK), made(rows)
    failures.ended(met.value, owned)
    owned.close()
    assert not (tmp_path / "partition-3").exists()
    rows = take_over(tmp_path, found)
    assert list(differing(rows)) == []
    rows.close()


def test_another_failure_leaves_the_store_where_it_is(
    tmp_path: Path, made: Callable[[RocksMap], Owned]
) -> None:
    rows = take_over(tmp_path, changes()[0])
    owned = made(rows)
    Failures(Log(), CLOCK).ended(ValueError("no such thing"), owned)
    owned.close()
    assert (tmp_path / "partition-3").exists()


@pytest.fixture
def made() -> Callable[[RocksMap], Owned]:
    """Makes what a term holds open, of which only the store is real."""

    def make(rows: RocksMap) -> Owned:
        nothing: Any = SimpleNamespace(
            ask_to_stop=lambda: None,
            stop=lambda: None,
            close=lambda: None,
            given_up=lambda: None,
        )
        return Owned(nothing, rows, *(nothing,) * 4, 1, None, nothing)

    return make
