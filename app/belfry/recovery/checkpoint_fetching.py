"""A checkpoint brought together on this disk, file by file, and tried out before it is believed.

    the name, size and digest that the index says
      ├─ there from an earlier try            used
      ├─ a table that the own store has       linked
      └─ else                                 brought from where the checkpoint is, and compared

No file that is brought gets its name before it agrees with the index.

Two files are on their way at a time: the disk or the network brings one of them while the digest of
the other is computed, so a fetch takes as long as the slower of both and not as long as their sum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from belfry.host import machine, rocks
from belfry.recovery.checkpoint_store import sha256_of
from belfry.recovery.stamp import Stamp
from belfry.store.checkpoint import BadCheckpoint, Checkpoint, CheckpointFile
from belfry.store.layout import keys
from belfry.store.schedules import ScheduleStore

# Files of this kind are never changed once they are written, so one may be in two stores.
TABLE: Final = ".sst"
# Files that are brought at a time.
AT_ONCE: Final = 2
_PARTS: Final = count()

# Copies a file of a checkpoint to a path, from any thread; raises whatever keeps it from that.
Bring = Callable[[CheckpointFile, Path], object]


def fetched(
    bring: Bring, found: Checkpoint, to: Path, own: Path, done: Callable[[int], object]
) -> int:
    """Bring all files of a checkpoint together; how many bytes were fetched for it.

    Files of an earlier try, and tables of the `own` store, are used where they are the same; `done`
    is told of their bytes. Raises BadCheckpoint for a file that differs from the index.
    """
    to.mkdir(parents=True, exist_ok=True)
    names = {each.name for each in found.files}
    for left in to.iterdir():
        if left.name not in names:
            left.unlink()
    missing = [each for each in found.files if not _found(each, to / each.name, own / each.name)]
    done(found.size - sum(each.size for each in missing))
    _bring_all(bring, missing, to)
    return sum(each.size for each in missing)


def _found(file: CheckpointFile, to: Path, own: Path) -> bool:
    """Whether a file is here without being fetched."""
    if _is(file, to):
        return True
    to.unlink(missing_ok=True)
    if file.name.endswith(TABLE):
        with suppress(OSError):
            to.hardlink_to(own)
            if _is(file, to):
                return True
            to.unlink()
    return False


def _bring_all(bring: Bring, missing: Sequence[CheckpointFile], to: Path) -> None:
    """Bring files into a folder, some at a time; raises the first error.

    After an error no other file is begun, and those that are on their way are waited for: nobody
    writes to the folder any more when this has ended.
    """
    left, errors = deque(missing), list[Exception]()

    def work() -> None:
        while left and not errors:
            try:
                each = left.popleft()
            except IndexError:
                return  # The other one has taken the last.
            try:
                _file(bring, each, to / each.name)
            except Exception as error:  # noqa: BLE001  # raised in the thread that asked for it
                errors.append(error)

    others = [
        machine.Thread(target=work, name="belfry-checkpoint-files", daemon=True)
        for _ in range(1, min(AT_ONCE, len(missing)))
    ]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]


def _file(bring: Bring, file: CheckpointFile, to: Path) -> None:
    # A file that was given up may still be written to, so no other file ever has its name.
    part = to.with_name(f"{next(_PARTS)}.part")
    bring(file, part)
    if not _is(file, part):
        raise BadCheckpoint(f"{file.name} is not what the index says: {file.sha256}")
    part.rename(to)


def _is(file: CheckpointFile, path: Path) -> bool:
    return path.is_file() and path.stat().st_size == file.size and sha256_of(path) == file.sha256


def try_out(path: Path, found: Checkpoint) -> None:
    """Open a store and close it again; BadCheckpoint where it says other things than its index."""
    rows = rocks.RocksMap(path)
    try:
        begun, stamp = ScheduleStore(rows).replayed(), rows.get(keys.META_STAMP) or b""
    finally:
        rows.close()
    number = None if begun.manifest is None else begun.manifest.txn_seq
    said = found.offset, found.written_ms, found.pending, found.transaction
    if (begun.offset, begun.written_ms, begun.pending, number) != said:
        raise BadCheckpoint(f"the store in it goes to offset {begun.offset}, not {found.offset}")
    if not Stamp(found.cluster, found.changelog, found.partition).fits(stamp):
        raise BadCheckpoint(f"the store in it belongs to {stamp.decode(errors='replace')}")
