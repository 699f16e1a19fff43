"""A day file on this host's disk outlives a power cut; one that was not written leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest
from fsspec.implementations.local import LocalFileSystem

from belfry.outputs.day_store import DayStore, NotKept
from belfry.store.layout.day_reference import DayFile

FILE: Final = DayFile(20_000, 3, b"12345678")


class Broken(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A folder that keeps what it takes, and then fails; or a bucket."""

    cachable = False

    def __init__(self, fault: str, *, bucket: bool) -> None:
        super().__init__()
        self.fault, self.async_impl = fault, bucket

    def mv(self, path: str, to: str, **more: Any) -> None:
        if self.fault == "name":
            raise OSError("no other name")
        super().mv(path, to, **more)

    def cat_file(self, path: str, *given: Any, **more: Any) -> bytes:
        if self.fault == "read":
            raise PermissionError("nothing is read here")
        return bytes(super().cat_file(path, *given, **more)) + b"more"

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        self.makedirs(path.rpartition("/")[0], exist_ok=True)
        Path(path).write_bytes(value)


@pytest.mark.parametrize(
    ("fault", "bucket", "raised"),
    [
        ("name", False, OSError),
        ("read", False, PermissionError),
        ("read", True, PermissionError),
        ("other", False, NotKept),
        ("other", True, NotKept),
    ],
)
def test_a_file_that_was_not_written_is_not_left_behind(
    tmp_path: Path, fault: str, *, bucket: bool, raised: type[Exception]
) -> None:
    """Each attempt has a name of its own, so what failed would fill the store."""
    store = DayStore(Broken(fault, bucket=bucket), str(tmp_path))
    with pytest.raises(raised):
        store.write(FILE, b"x" * 100)
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


def test_a_file_and_its_folders_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = list[str](), os.fsync

    def noted(number: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        fsync(number)

    monkeypatch.setattr(os, "fsync", noted)
    store = DayStore(LocalFileSystem(), str(tmp_path))
    store.write(FILE, b"x" * 100)
    path = Path(store.path_of(FILE))
    assert synced == [f"{path}.part", str(path.parent), str(tmp_path)]
    assert store.read(FILE) == b"x" * 100
