"""Copies of a partition's state in the data directories of stopped workers.

A worker keeps one store for each partition, and puts one aside that it may not use.  Both are
copies, whole as of some manifest:

    DATA_DIR/partition-3                  what the worker had in use
    DATA_DIR/partition-3.aside-…          what it has put aside
    DATA_DIR/lock                         held while a recovery looks, so that no worker starts

Copies are opened for reading alone: a recovery may have to be tried again, with another one.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from rocksdict import AccessType, Options, Rdict

from belfry.recovery.partition_evidence import CannotRecover, Copy
from belfry.recovery.stamp import stamp_of
from belfry.store.layout import keys
from belfry.store.layout.manifests import NOTHING
from belfry.store.ordered_map import Range
from belfry.store.replay import Replay
from belfry.store.schedules import ScheduleStore


class ReadOnlyRows:
    """A local store opened for reading alone: nothing in it changes, not even where it is hurt."""

    def __init__(self, path: Path) -> None:
        self._path = path
        access = AccessType.read_only()
        self._db = Rdict(str(path), Options(raw_mode=True), access_type=access)

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        value: bytes | None = self._db.get(key)
        return value

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """The values of keys, in their order."""
        return list(self._db.get(list(keys)) or ())

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from `start` (inclusive) up to `end` (exclusive), in order.

        Raises CannotRecover where the store ends before `end`. RocksDB's iterator stops at a
        damaged block without an error, and keys behind all ranges that are scanned show that it has
        not.
        """
        rows: Any = self._db.items(from_key=start)
        for key, value in rows:
            if key >= end:
                return
            yield key, value
        raise CannotRecover(f"{self._path} is damaged: a scan ends amid the store.")

    def write(self, _writes: Any, _cleared: Sequence[Range] = ()) -> None:
        """Never called: a recovery reads."""
        raise AssertionError("a copy is only read")

    def close(self) -> None:
        """Close it."""
        self._db.close()


def copies_in(data_dir: Path, partition: int) -> Iterator[Copy]:
    """Copies of a partition's state in a data directory, those that were put aside included."""
    name = f"partition-{partition}"
    for path in sorted([data_dir / name, *data_dir.glob(f"{name}.aside-*")]):
        if (path / "CURRENT").exists():
            copy = _copy(path, in_use=path.name == name)
            if copy is not None:
                yield copy


def _copy(path: Path, *, in_use: bool) -> Copy | None:
    """A local store that is the checked fold of some changelog, or None."""
    with closing(ReadOnlyRows(path)) as rows:
        store = ScheduleStore(rows)
        state = store.state()
        stamp = rows.get(keys.META_STAMP)
        if state is None or stamp is None:
            # A replay that was under way: not checked, so no state to go on with.
            begun = store.replayed()
            assert begun.manifest is None or stamp is not None or begun is NOTHING
            return None
        cluster, changelog = stamp_of(stamp)
        identity = Replay(store).identity
        return Copy(
            path,
            cluster,
            changelog,
            state.changelog_offset,
            state.written_ms,
            state.manifest,
            identity,
            in_use,
        )


@contextmanager
def held(data_dirs: Iterable[Path]) -> Iterator[None]:
    """Hold data directories, so that no worker writes to them; CannotRecover where one does."""
    with ExitStack() as undo:
        for data_dir in data_dirs:
            if not data_dir.is_dir():
                raise CannotRecover(f"There is no data directory {data_dir}.")
            lock = undo.enter_context((data_dir / "lock").open("a+"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CannotRecover(
                    f"{data_dir} is in use by a worker: stop that one first (SIGTERM, so that it"
                    " puts all that it knows on the disk)."
                ) from None
        yield
