"""A file of a store of objects is seen whole or not at all, whatever kind of store it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from belfry.host.object_store import put_whole


class Half(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A file system that has written half of a file when `seen` looks, or the disk is full."""

    cachable = False

    def __init__(self, looked_at: Path, *, bucket: bool = False, full: bool = False) -> None:
        super().__init__()
        self.async_impl, self.looked_at, self.full = bucket, looked_at, full
        self.seen: list[bytes | None] = []

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Write half, let a reader look, and write the rest."""
        with Path(path).open("wb") as out:
            out.write(value[: len(value) // 2])
            out.flush()
            self.seen.append(self.looked_at.read_bytes() if self.looked_at.exists() else None)
            if self.full:
                raise OSError(28, "No space left on device")
            out.write(value[len(value) // 2 :])


def test_a_reader_sees_nothing_of_a_file_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "indexes" / "7.checkpoint"
    files = Half(path)
    put_whole(files, str(path), b"all of it")
    assert files.seen == [None]
    assert path.read_bytes() == b"all of it"
    assert list(path.parent.iterdir()) == [path]


def test_a_reader_sees_the_file_of_before_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "7.checkpoint"
    path.write_bytes(b"before")
    files = Half(path)
    put_whole(files, str(path), b"all of it")
    assert files.seen == [b"before"]
    assert path.read_bytes() == b"all of it"


def test_what_could_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "7.checkpoint"
    with pytest.raises(OSError, match="No space left"):
        put_whole(Half(path, full=True), str(path), b"all of it")
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_is_given_an_object_once(tmp_path: Path) -> None:
    """It shows none before all of it is there, and another name would cost two requests more."""
    path = tmp_path / "7.checkpoint"
    files = Half(path, bucket=True)
    put_whole(files, str(path), b"all of it")
    assert files.seen == [b"al" + b"l "]
    assert list(tmp_path.iterdir()) == [path]
