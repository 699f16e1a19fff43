"""Where checkpoints are kept: a folder of any file system that fsspec knows, such as a bucket.

    s3://bucket/belfry/                                   BELFRY_CHECKPOINT_STORE
      <cluster id>/<changelog's topic id>/3/              one partition
        indexes/00000000000000081234-5f0c….checkpoint     written last: before it there is nothing
        files/<SHA-256 of the file>                       once, where two checkpoints share it

Names say which partition they are of, so workers of several belfrys may share a folder.  The reader
judges the files (`store/checkpoint.py`): nothing here is believed.

Errors are raised as the file system raises them; the caller goes on without a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

from belfry.host import object_store
from belfry.host.object_store import modified_ms
from belfry.settings import Settings
from belfry.store.checkpoint import (
    MOST_BYTES,
    BadCheckpoint,
    Checkpoint,
    IndexKeys,
    decode_index,
)

INDEX: Final = ".checkpoint"
# More indexes than that are not read: two are kept, and a few more while several are at work.
MOST_INDEXES: Final = 20

_NAMES: Final = ("BELFRY_CHECKPOINT_STORE", "BELFRY_CHECKPOINT_OPTIONS")


class CheckpointFolder:
    """The checkpoints of one partition of one changelog."""

    def __init__(self, files: Any, path: str) -> None:
        """`files` is a file system of fsspec."""
        self._files = files
        self._path = path

    def indexes(self) -> dict[str, bytes]:
        """Indexes by name, the newest few of them; whose they are is not judged."""
        found = [
            name
            for name, entry in sorted(self._entries("indexes").items())
            if name.endswith(INDEX) and (entry.get("size") or 0) <= MOST_BYTES
        ]
        newest = found[-MOST_INDEXES:]
        return {name: self._files.cat_file(f"{self._path}/indexes/{name}") for name in newest}

    def put_index(self, name: str, index: bytes) -> None:
        """Write an index, behind all files that it names."""
        object_store.put_whole(self._files, f"{self._path}/indexes/{name}", index)

    def put_file(self, sha256: str, local: Path) -> None:
        """Copy a file there, under its digest."""
        self._files.makedirs(f"{self._path}/files", exist_ok=True)
        self._files.put_file(str(local), f"{self._path}/files/{sha256}")

    def get_file(self, sha256: str, local: Path) -> None:
        """Copy a file here; FileNotFoundError if there is no such file."""
        self._files.get_file(f"{self._path}/files/{sha256}", str(local))

    def modified_ms(self) -> dict[str, float]:
        """When each stored file was written, epoch ms, by digest; those that tell no time are left
        out.
        """
        entries = self._entries("files")
        told = {name: modified_ms(each) for name, each in entries.items()}
        return {name: at for name, at in told.items() if at is not None}

    def remove(self, indexes: Iterable[str], sha256s: Iterable[str]) -> None:
        """Remove indexes, and then files."""
        paths = [f"{self._path}/indexes/{name}" for name in indexes]
        for path in paths + [f"{self._path}/files/{each}" for each in sha256s]:
            try:
                self._files.rm_file(path)
            except FileNotFoundError:
                continue  # Another worker has been quicker.

    def _entries(self, kind: str) -> dict[str, dict[str, Any]]:
        path = f"{self._path}/{kind}"
        self._files.invalidate_cache(path)
        try:
            found = self._files.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {each["name"].rstrip("/").rpartition("/")[2]: each for each in found}


class CheckpointStore:
    """All checkpoints of a belfry; any thread may ask."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        """`options` are those of fsspec for the file system that the URL names.

        Raises NoStore where there is no such file system. Nobody is asked yet.
        """
        self._files, self._path = object_store.opened(url, options, _NAMES)

    def folder(self, cluster: str, changelog: str, partition: int) -> CheckpointFolder:
        """The checkpoints of a partition of the changelog with this topic id."""
        path = f"{self._path}/{cluster}/{changelog}/{partition}"
        return CheckpointFolder(self._files, path)


def checkpoint_store(settings: Settings) -> CheckpointStore | None:
    """The store that is set, None where none is; raises NoStore."""
    if settings.checkpoint_store is None:
        return None
    return CheckpointStore(settings.checkpoint_store, settings.checkpoint_options)


def believed(
    found: dict[str, bytes], by: IndexKeys, refused: Callable[[str, str], object]
) -> dict[str, Checkpoint]:
    """Checkpoints by name whose indexes are whole and a worker's; `refused` is told of the others,
    each with why.
    """
    told: dict[str, Checkpoint] = {}
    for name, index in found.items():
        try:
            told[name] = decode_index(index, by)
        except BadCheckpoint as error:
            refused(name, str(error))
    return told


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hex digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
