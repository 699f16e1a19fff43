"""Files that are renewed while a process runs are noticed, once, and not looked at all the time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belfry.host.file_watch import LOOK_S, FileWatch


class Seconds:
    """A clock that the test holds."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def look(self, watch: FileWatch) -> bool:
        """Whether a look shows a change, once it is time for one."""
        self.now_s += LOOK_S
        return watch.changed()


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


def test_a_change_is_told_once_and_not_before_it_is_time_to_look(
    clock: Seconds, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("one")
    watch = FileWatch([key], clock)
    assert not clock.look(watch)
    key.write_text("three")
    clock.now_s += LOOK_S - 1
    assert not watch.changed()
    clock.now_s += 1
    assert [watch.changed(), clock.look(watch)] == [True, False]


def test_a_file_that_goes_and_comes_is_told_of(clock: Seconds, tmp_path: Path) -> None:
    chain, key = tmp_path / "chain", tmp_path / "key"
    key.write_text("one")
    watch = FileWatch([chain, key], clock)
    chain.write_text("one")
    assert clock.look(watch)
    key.unlink()
    assert clock.look(watch)
    assert not clock.look(watch)


def test_a_link_that_is_turned_is_a_change(clock: Seconds, tmp_path: Path) -> None:
    """As Kubernetes does it; also where both files have one size and one time."""
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "tls.key").write_text(name[:5])
        os.utime(folder / "tls.key", (1_700_000_000, 1_700_000_000))
    (tmp_path / "..data").symlink_to("first")
    (tmp_path / "tls.key").symlink_to("..data/tls.key")
    watch = FileWatch([tmp_path / "tls.key"], clock)
    (tmp_path / "next").symlink_to("second")
    (tmp_path / "next").rename(tmp_path / "..data")
    assert clock.look(watch)


def test_without_files_nothing_changes(clock: Seconds) -> None:
    assert not clock.look(FileWatch([], clock))
