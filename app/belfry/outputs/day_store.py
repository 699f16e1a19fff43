"""Day files in their store: written whole and read back once, read whole, listed and removed.

    <folder>/2027-03-01/3-5f0c1b22a9e04d17.day      day, partition, a random number

A name is used once, so no file is ever written twice, and each file is whole: an object store takes
an object whole or not at all, and in other file systems a file is written under another name and
then renamed. A file is read back before a row refers to it: so a folder that does not give back the
same bytes is found in time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

from belfry.host import machine, object_store
from belfry.host.object_store import modified_ms
from belfry.settings import Settings
from belfry.store.layout.day_reference import DAY_MS, DayFile, Reference, digest_of

# An answer is waited for this long; then the question counts as failed, and its thread is left.
ANSWER_S: Final = 60.0
NAMES: Final = ("BELFRY_DAY_STORE", "BELFRY_DAY_STORE_OPTIONS")
_NAME: Final = re.compile(r"(\d{1,5})-([0-9a-f]{16})\.day")
# The ending of a file's name while it is written, if that takes another name.
_PART: Final = ".part"
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH: Final = date(1970, 1, 1).toordinal()
_Answer = TypeVar("_Answer")


class NotKept(Exception):
    """The bytes that were read back are not those that were written."""


class StoredDayFile(NamedTuple):
    """A file as it is listed; `stored_ms` is by the store's clock, None if that is unknown."""

    file: DayFile
    size: int
    stored_ms: float | None


class UnfinishedFile(NamedTuple):
    """A file that a worker is writing, or that a kill has left behind; `stored_ms` as above."""

    path: str
    size: int
    stored_ms: float | None


class Asked(Generic[_Answer]):
    """A question to the store, in a thread that does not keep the process from ending."""

    def __init__(self, ask: Callable[[], _Answer], most_s: float = ANSWER_S) -> None:
        self.answer: _Answer | None = None
        self.error: Exception | None = None
        self._ask = ask
        self._done = machine.Event()
        self._most_s = most_s
        self._until_s = machine.monotonic() + most_s
        machine.Thread(target=self._run, name="belfry-day-store", daemon=True).start()

    def over(self) -> bool:
        """Whether there is an answer, or an error, or the time to wait is over."""
        if self._done.is_set():
            return True
        late = machine.monotonic() >= self._until_s
        if late and self.error is None:
            self.error = TimeoutError(f"the store has not answered within {self._most_s:g} s")
        return late

    @property
    def ended(self) -> bool:
        """Whether its thread has come to its end, waited for or not."""
        return self._done.is_set()

    def _run(self) -> None:
        try:
            answer = self._ask()
        except Exception as error:  # noqa: BLE001  # told where the answer is read
            self.error = error
        else:
            self.answer = answer
        self._done.set()


class DayStore:
    """Day files of all partitions; any thread may call it, and may wait for the store."""

    def __init__(self, files: Any, path: str) -> None:
        """`files` is a file system of fsspec, `path` the folder in it."""
        self._files = files
        self._path = path

    def write(self, file: DayFile, data: bytes) -> None:
        """Store a file, and see that it is there; raises whatever the file system raises.

        No row refers to a file that failed, and the next attempt has another name. So the rest of
        it is removed: a store that takes files and gives none back would fill up otherwise.
        """
        path = self.path_of(file)
        try:
            if self._files.async_impl:
                self._files.pipe_file(path, data)
            else:
                self._write_aside(path, data)
            if self.read(file) != data:
                raise NotKept(f"{path} was written, and other bytes are read there")
        except Exception:
            for left in (path,) if self._files.async_impl else (path, path + _PART):
                with suppress(Exception):
                    self._files.rm_file(left)
            raise

    def read(self, file: DayFile) -> bytes:
        """All of a file; raises whatever the file system raises."""
        return bytes(self._files.cat_file(self.path_of(file)))

    def payloads(self, references: Sequence[Reference]) -> list[bytes]:
        """The payloads themselves, in their order; raises `NotKept` if one has other bytes."""
        paths = [self.path_of(each.file) for each in references]
        starts = [each.offset for each in references]
        ends = [each.offset + each.size for each in references]
        found = list(map(bytes, self._files.cat_ranges(paths, starts, ends, on_error="raise")))
        for path, reference, payload in zip(paths, references, found, strict=True):
            if (reference.size, reference.digest) != (len(payload), digest_of(payload)):
                raise NotKept(f"{path} does not hold at {reference.offset} what was put there")
        return found

    def all(self) -> Iterator[StoredDayFile]:
        """All day files, day by day."""
        for day, each in self._entries():
            if named := _NAME.fullmatch(_last(each)):
                file = DayFile(day, int(named[1]), bytes.fromhex(named[2]))
                yield StoredDayFile(file, each.get("size") or 0, modified_ms(each))

    def unfinished(self) -> Iterator[UnfinishedFile]:
        """Files that are being written, or were when a worker was killed; none in a bucket."""
        for day, each in () if self._files.async_impl else self._entries():
            name = _last(each)
            if name.endswith(_PART) and _NAME.fullmatch(name.removesuffix(_PART)):
                path = f"{self._folder_of(day)}/{name}"
                yield UnfinishedFile(path, each.get("size") or 0, modified_ms(each))

    def remove(self, file: DayFile | UnfinishedFile) -> None:
        """Remove a file; no error if another process has removed it before."""
        with suppress(FileNotFoundError):
            path = file.path if isinstance(file, UnfinishedFile) else self.path_of(file)
            self._files.rm_file(path)

    def path_of(self, file: DayFile) -> str:
        """The path of a file."""
        return f"{self._folder_of(file.day)}/{file.partition}-{file.number.hex()}.day"

    def _folder_of(self, day: int) -> str:
        at = datetime.fromtimestamp(day * DAY_MS / 1000, UTC)
        return f"{self._path}/{at:%Y-%m-%d}"

    def _write_aside(self, path: str, data: bytes) -> None:
        """Write a file whole under another name; it is on the disk before it gets its own name."""
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        part = path + _PART
        with self._files.open(part, "wb") as out:
            out.write(data)
            out.flush()
            with suppress(Exception):
                os.fsync(out.fileno())
        self._files.mv(part, path)
        with suppress(Exception):
            # Rows refer to it soon, so its name has to outlive a power cut as well.
            _sync_folders(path)

    def _entries(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """All files in the folders of days, each with its day."""
        for folder in sorted(self._listed(self._path), key=_last):
            name = _last(folder)
            if folder.get("type") != "directory" or not _DAY.fullmatch(name):
                continue
            if (day := _day_of(name)) is None:
                continue
            for each in self._listed(f"{self._path}/{name}"):
                if each.get("type") == "file":
                    yield day, each

    def _listed(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        self._files.invalidate_cache(path)
        with suppress(FileNotFoundError):
            found = self._files.ls(path, detail=True)
        return found


def day_store(settings: Settings) -> DayStore | None:
    """The store of the settings, None if no store is set; raises `NoStore`."""
    if settings.day_store is None:
        return None
    return DayStore(*object_store.opened(settings.day_store, settings.day_store_options, NAMES))


def _sync_folders(path: str) -> None:
    """Sync a name to the disk, and that of its folder; raises if no disk of this host has it."""
    for folder in (path.rpartition("/")[0], path.rpartition("/")[0].rpartition("/")[0]):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _last(entry: dict[str, Any]) -> str:
    return str(entry["name"]).rstrip("/").rpartition("/")[2]


def _day_of(text: str) -> int | None:
    with suppress(ValueError):
        return date.fromisoformat(text).toordinal() - _EPOCH
    return None
