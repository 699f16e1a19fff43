"""A day file that is written to a file system of this host outlives a power cut, name and all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem

from belfry.outputs.day_store import DayStore
from belfry.store.layout.day_reference import DayFile


def test_a_file_and_its_folders_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = list[str](), os.fsync

    def noted(number: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        fsync(number)

    monkeypatch.setattr(os, "fsync", noted)
    store, file = DayStore(LocalFileSystem(), str(tmp_path)), DayFile(20_000, 3, b"12345678")
    store.write(file, b"x" * 100)
    path = Path(store.path_of(file))
    assert synced == [f"{path}.part", str(path.parent), str(tmp_path)]
    assert store.read(file) == b"x" * 100
