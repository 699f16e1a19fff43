"""A file of a store of objects is seen whole or not at all, whatever kind of store it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from belfry.host.object_store import NoStore, opened, put_whole


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


NAMES = ("BELFRY_DAY_STORE", "BELFRY_DAY_STORE_OPTIONS")


@pytest.mark.parametrize(
    "url",
    ["nonsense", "", "./days", "~/days", "s3:/bucket/days", "file://days", "file:days",
     "local://days", "simplecache::days"],
)  # fmt: skip
def test_a_folder_below_that_of_the_process_is_refused(url: str) -> None:
    with pytest.raises(NoStore) as told:
        opened(url, {}, NAMES)
    assert str(told.value) == (
        f"BELFRY_DAY_STORE cannot be used: it is '{url}', which is neither a URL nor an absolute"
        " path. It would be another folder for each process, below the one in which it runs. Give a"
        " URL that fsspec knows, file:///folder or s3://bucket/folder, or a path that begins with"
        " /."
    )


def test_a_password_in_a_mistyped_address_is_not_told() -> None:
    with pytest.raises(NoStore) as told:
        opened("sftp:/me:hidden@host/days", {}, NAMES)
    assert "it is an address that is not shown here, which" in str(told.value)
    assert "hidden" not in str(told.value)


@pytest.mark.parametrize("scheme", ["", "file://", "file:", "local://", "simplecache::file://"])
def test_an_absolute_folder_is_opened(scheme: str, tmp_path: Path) -> None:
    assert opened(f"{scheme}{tmp_path}/", {}, NAMES)[1] == str(tmp_path)


def test_other_schemes_are_those_of_fsspec() -> None:
    assert opened("memory://days", {}, NAMES)[1] == "/days"
    with pytest.raises(NoStore, match="Protocol not known: nosuch"):
        opened("nosuch://days", {}, NAMES)
