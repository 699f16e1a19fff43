"""What a worker keeps is its user's alone, and what is somebody else's is left as it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from belfry.cli.backup import _write
from belfry.devstack.stack import locked
from belfry.host.private_files import close_to_others
from belfry.host.rocks import RocksMap
from belfry.process.data_folder import only_one_in


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_that_a_worker_keeps_is_its_users(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "worker"
    with only_one_in(folder):
        rows = RocksMap(folder / "partition-0")
        rows.write({b"k": b"payload"})
        rows.close()
    found = [folder, *folder.rglob("*")]
    assert len(found) > 5
    assert {mode(each) & 0o077 for each in found} == {0}


def test_what_an_earlier_release_kept_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "worker"
    inner = folder / "partition-0"
    inner.mkdir(parents=True)
    (folder / "lock").touch()
    for each in (folder, inner):
        each.chmod(0o755)
    with only_one_in(folder):
        assert (mode(folder), mode(inner)) == (0o700, 0o700)


@pytest.mark.parametrize("given", [0o755, 0o1777])
def test_a_folder_that_others_use_is_left_and_told_of(tmp_path: Path, given: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "somebody's").mkdir()
    # As in /var.
    (folder / "lock").symlink_to(folder / "somebody's")
    for each in (folder, folder / "somebody's"):
        each.chmod(given)
    (told,) = close_to_others(folder)
    assert mode(folder) == mode(folder / "somebody's") == given
    assert f"has mode {given:04o}" in told
    assert "mode 0700" in told


def test_a_folder_of_another_user_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir(mode=0o755)

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refused)
    (told,) = close_to_others(folder)
    assert "another user's" in told


def test_the_brokers_folder_is_its_users(tmp_path: Path) -> None:
    with locked(tmp_path / "dev"):
        assert mode(tmp_path / "dev") == 0o700


@pytest.mark.parametrize("left_over", [False, True])
def test_a_backup_is_its_users(tmp_path: Path, left_over: bool) -> None:
    file = tmp_path / "belfry.jsonl"
    if left_over:
        (tmp_path / "belfry.jsonl.part").write_bytes(b"of a backup that did not end")
    _write(file, [b"new"])
    assert (mode(file), file.read_bytes()) == (0o600, b"new")
