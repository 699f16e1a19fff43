"""State that may not be used is given up only where something replaces it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from belfry.recovery.local_state import LocalState
from belfry.recovery.stamp import Stamp
from belfry.store.identity import UNKNOWN_ID, Contradiction
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.schedules import ScheduleStore

NOW_MS = 10_000_000_000
HOUR_MS = 3_600_000
MINE = Stamp("cluster-a", "log-1", 3)
FOREIGN = {
    "another changelog": (Stamp("cluster-a", "log-0", 3), "changelog_lost"),
    "another cluster": (Stamp("cluster-b", "log-1", 3), "other_cluster"),
    "another partition": (Stamp("cluster-a", "log-1", 2), "changelog_lost"),
}


def local(home: Path, stamp: Stamp = MINE) -> LocalState:
    clock: Any = SimpleNamespace(wall_ms=lambda: float(NOW_MS))
    return LocalState(home / "partition-3", stamp, 12 * HOUR_MS, clock)


def kept(home: Path, stamp: Stamp, written_ms: int = NOW_MS) -> None:
    """State that a worker has left behind."""
    rows = local(home, stamp).open(lambda: True)
    store = ScheduleStore(rows)
    store.note(b"a/b", b"\x01\x02")
    store.commit(StoredState(140, written_ms, Manifest(60, 1, 9, 0, 7, 0, bytes(16))))
    rows.close()


def others(home: Path) -> list[str]:
    return [each.name for each in home.iterdir() if each.name != "partition-3"]


@pytest.mark.parametrize(("stamp", "code"), FOREIGN.values(), ids=FOREIGN)
def test_the_only_copy_stays_where_it_is(home: Path, stamp: Stamp, code: str) -> None:
    kept(home, stamp)
    for _ in range(2):
        with pytest.raises(Contradiction, match="7 schedules that wait") as stopped:
            local(home).open(lambda: False)
        assert stopped.value.code == code
    rows = local(home, stamp).open(lambda: False)
    assert rows.get(b"ka/b") == b"\x01\x02"
    rows.close()


@pytest.mark.parametrize(("stamp", "code"), FOREIGN.values(), ids=FOREIGN)
def test_what_the_changelog_replaces_is_put_aside_whole(
    home: Path, stamp: Stamp, code: str
) -> None:
    kept(home, stamp)
    rows = local(home).open(lambda: True)
    assert rows.get(b"ka/b") is None, code
    rows.close()
    (aside,) = others(home)
    assert aside.startswith("partition-3.aside-")
    (home / "partition-3").rename(home / "new")
    (home / aside).rename(home / "partition-3")
    rows = local(home, stamp).open(lambda: True)
    assert rows.get(b"ka/b") == b"\x01\x02"
    rows.close()


@pytest.mark.parametrize(("before", "now"), [(UNKNOWN_ID, "log-1"), ("log-1", UNKNOWN_ID)])
def test_state_stays_where_a_cluster_begins_or_ceases_to_tell_ids(
    home: Path, before: str, now: str
) -> None:
    kept(home, Stamp("cluster-a", before, 3))
    rows = local(home, Stamp("cluster-a", now, 3)).open(lambda: False)
    assert rows.get(b"ka/b") == b"\x01\x02"
    rows.close()
    with pytest.raises(Contradiction):
        local(home, Stamp("cluster-b", now, 3)).open(lambda: False)


def test_stale_state_goes_where_the_changelog_holds_the_rest(home: Path) -> None:
    kept(home, MINE, NOW_MS - 13 * HOUR_MS)
    local(home).open(lambda: True).close()
    assert not others(home)


def test_stale_state_that_nothing_replaces_stays(home: Path) -> None:
    kept(home, MINE, NOW_MS - 13 * HOUR_MS)
    with pytest.raises(Contradiction, match="changelog_lost"):
        local(home).open(lambda: False)


def test_what_a_standby_gives_up_is_put_aside_whole(home: Path) -> None:
    kept(home, MINE)
    local(home).give_up("transaction 39 follows transaction 40")
    assert len(others(home)) == 1
    rows = local(home).open(lambda: False)
    assert rows.get(b"ka/b") is None
    rows.close()


@pytest.mark.parametrize("stamp", [MINE, Stamp("cluster-b", "log-9", 0)])
def test_a_store_that_never_held_anything_is_nobodys(home: Path, stamp: Stamp) -> None:
    local(home, stamp).open(lambda: True).close()
    rows = local(home).open(lambda: False)
    rows.close()
    assert not others(home)


def test_the_changelog_is_not_asked_where_all_is_well(home: Path) -> None:
    kept(home, MINE)
    asked: Callable[[], bool] = lambda: pytest.fail("asked")  # noqa: E731
    local(home).open(asked).close()


SET_ASIDE = "local state is set aside"


def test_stale_state_is_gone_and_the_log_says_why(home: Path) -> None:
    kept(home, MINE, NOW_MS - 13 * HOUR_MS)
    with capture_logs() as told:
        rows = local(home).open(lambda: True)
    assert (rows.get(b"ka/b"), rows.get(keys.META_STAMP)) == (None, MINE.encode())
    rows.close()
    why = "it was last written more than 12 hours ago: tombstones may be gone"
    path = str(home / "partition-3")
    assert told == [{"event": SET_ASIDE, "log_level": "warning", "path": path, "reason": why}]


@pytest.mark.parametrize(("hours", "stays"), [(12, True), (12.001, False)])
def test_state_may_be_as_old_as_it_is_said_to(home: Path, hours: float, stays: bool) -> None:
    kept(home, MINE, NOW_MS - int(hours * HOUR_MS))
    rows = local(home).open(lambda: True)
    assert (rows.get(b"ka/b") is not None) is stays
    rows.close()


def test_what_is_put_aside_is_named_with_what_is_to_be_done(home: Path) -> None:
    kept(home, MINE)
    with capture_logs() as told:
        local(home).give_up("transaction 39 follows transaction 40")
    path = home / "partition-3"
    assert told == [
        {
            "event": SET_ASIDE,
            "log_level": "error",
            "path": str(path),
            "reason": "transaction 39 follows transaction 40",
            "kept_as": f"{path}.aside-{NOW_MS}",
            "to_do": "compare it with docs/recovery.md, and delete it when nothing is missed",
        }
    ]
    assert others(home) == [f"partition-3.aside-{NOW_MS}"]


def damage(home: Path) -> None:
    """Leave a store of which RocksDB cannot say where its files are."""
    kept(home, MINE)
    (home / "partition-3" / "CURRENT").write_text("nothing")


def test_a_store_that_cannot_be_opened_is_removed_whoever_meets_it(home: Path) -> None:
    damage(home)
    with capture_logs() as told:
        rows = local(home).open(lambda: pytest.fail("asked"))
    assert rows.get(b"ka/b") is None
    rows.close()
    (said,) = told
    assert (said["event"], said["log_level"]) == ("local state is damaged", "warning")
    assert said["path"] == str(home / "partition-3")
    assert "CURRENT" in said["reason"]
    damage(home)
    with capture_logs() as told:
        local(home).give_up("a hole")
    (said,) = told
    assert said["event"] == SET_ASIDE
    assert said["reason"].startswith("a hole (")
    assert "CURRENT" in said["reason"]
    assert not (home / "partition-3").exists()


def test_a_store_that_another_process_has_open_is_nothing_to_remove(home: Path) -> None:
    kept(home, MINE)
    holder = local(home).open(lambda: True)
    with pytest.raises(Exception, match="/LOCK:"):
        local(home).open(lambda: True)
    assert holder.get(b"ka/b") == b"\x01\x02"
    holder.close()


@pytest.mark.parametrize(
    ("stamp", "why"),
    [
        (None, "it has no stamp"),
        (MINE, "it does not say how far it goes"),
        (Stamp("cluster-b", "log-1", 3), 'it belongs to [2,"cluster-b","log-1",3]'),
    ],
)
def test_rows_of_which_nobody_says_what_they_are_are_not_used(
    home: Path, stamp: Stamp | None, why: str
) -> None:
    """They are no fold of any changelog, so nothing is worth keeping of them."""
    rows = local(home).open(lambda: True)
    told_by = None if stamp is None else stamp.encode()
    rows.write({b"ka/b": b"\x01\x02", keys.META_STAMP: told_by})
    rows.close()
    with capture_logs() as told:
        rows = local(home).open(lambda: True)
    assert rows.get(b"ka/b") is None
    rows.close()
    assert [each["reason"] for each in told] == [why]
    assert not others(home)


def test_the_only_copy_is_told_with_what_it_holds(home: Path) -> None:
    kept(home, MINE, NOW_MS - 13 * HOUR_MS)
    with pytest.raises(Contradiction) as stopped:
        local(home).open(lambda: False)
    held = f"{home / 'partition-3'} keeps 7 schedules that wait, as of transaction 60,"
    assert f"(topic log-1) holds nothing, and {held} in topic log-1:" in stopped.value.what


def test_the_only_copy_of_another_cluster_is_told_with_that_cluster(home: Path) -> None:
    kept(home, Stamp("cluster-b", "log-1", 3))
    with pytest.raises(Contradiction, match=r"transaction 60, in cluster cluster-b\."):
        local(home).open(lambda: False)


def test_the_only_copy_may_have_lost_its_stamp(home: Path) -> None:
    kept(home, MINE)
    rows = local(home).open(lambda: True)
    rows.write({keys.META_STAMP: None})
    rows.close()
    with pytest.raises(Contradiction, match=r"transaction 60, in topic \?:") as stopped:
        local(home).open(lambda: False)
    assert stopped.value.code == "changelog_lost"


def test_state_that_cannot_be_read_is_removed_and_not_kept_for_anybody(home: Path) -> None:
    kept(home, MINE)
    rows = local(home).open(lambda: True)
    state = rows.get(keys.META_STATE) or b""
    rows.write({keys.META_STATE: state[:16] + b"\x63" + state[17:]})
    rows.close()
    with capture_logs() as told:
        rows = local(home).open(lambda: True)
    assert rows.get(b"ka/b") is None
    rows.close()
    assert [each["log_level"] for each in told] == ["warning"]
    assert "starts with '63" in told[0]["reason"]
    assert not others(home)


def test_who_fetches_a_checkpoint_hears_when_to_stop_and_keeps_nothing_open(home: Path) -> None:
    kept(home, Stamp("cluster-b", "log-1", 3))
    heard: list[Any] = []

    def fetch(*given: Any) -> None:
        heard.append(given)
        raise ConnectionError("the store is away")

    checkpoints: Any = SimpleNamespace(fetch=fetch)
    changelog: Any = SimpleNamespace(holds_records=lambda: True, ends=lambda: (0, 9))
    stops = lambda: True  # noqa: E731
    state = replace(local(home), checkpoints=checkpoints)
    with pytest.raises(ConnectionError):
        state.open_newest(changelog, stops)
    ((path, stamp, stale_ms, _, ends, told),) = heard
    assert (path, stamp, stale_ms) == (home / "partition-3", MINE, 12 * HOUR_MS)
    assert (ends(), told) == ((0, 9), stops)
    local(home).open(lambda: True).close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path
