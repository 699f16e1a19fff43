"""RocksDB behind the ordered-map port.

The write-ahead log is off: the changelog is the log.  Rows that a crash loses are replayed from the
changelog, from the offset in the same store; memtables reach the disk in the order of their writes,
so the store is always the fold of a prefix.  So opening replays no log of RocksDB's, and does not
hold up the other threads of the process.  A store is `stuck` after its disk has failed a write,
until it is closed and opened again; rows that are not on disk are lost then, as in a crash.

A block that fails its checksum must never look like an absent row.  Reads by name raise, but
RocksDB's iterator just ends there.  So every store has one key behind all others (`LAST`): a scan
that ends before it has met damage.  A backward scan has met damage where it ends before it has
reached the first key of all.  A damaged store removes itself when it is closed, and is rebuilt from
the changelog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import structlog
from rocksdict import Checkpoint, DbClosedError, Rdict, WriteBatch, WriteOptions

from belfry.host.rocks_options import SHARES, store_options
from belfry.store.ordered_map import Damaged, Parted, Range

LAST = b"\xff"
_MEMORY = ("size-all-mem-tables", "estimate-table-readers-mem")

log = structlog.get_logger(__name__)


class StoreFigures(NamedTuple):
    """RocksDB's figures of one store; `rows` is an estimate.

    `memory_bytes` are memory tables, indexes, and an equal part of the blocks that all stores of
    the process cache.  `merge_bytes` are the bytes that are still to be rewritten until all files
    are merged.  `errors` are those of its background threads since it was opened.
    """

    rows: int
    disk_bytes: int
    memory_bytes: int
    merge_bytes: int
    errors: int


class RocksMap:
    """An ordered map on disk."""

    def __init__(self, path: Path, *, names_asked: bool = True) -> None:
        """`names_asked` says that most keys are looked up before they are written."""
        self._path = path
        self._damaged = False
        self.stuck = False
        path.mkdir(parents=True, exist_ok=True)
        # By name as well: else an existing store gets its options file, which lacks the filter's
        # size, so it would have no filter.
        options = store_options(SHARES.cache, names_asked=names_asked)
        self._memtable_bytes = SHARES.each
        options.set_write_buffer_size(self._memtable_bytes)
        self._db = Rdict(str(path), options, column_families={"default": options})
        SHARES.opened(self)
        self._unlogged: Any = WriteOptions()
        self._unlogged.disable_wal = True  # type: ignore[method-assign,assignment]
        try:
            self.write({LAST: b""})
        except Exception:
            # RocksDB works in the background from the first moment on, and may meet damage there,
            # or a failing disk.  A store that stays open would be locked for the next try.
            self.close()
            raise

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None; other threads wait meanwhile, unlike in `get_many`."""
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise self._meaning_of(error) from error
        return value

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """The values of keys, in their order."""
        try:
            values: list[bytes | None] = list(self._db.get(list(keys)) or ())
        except Exception as error:
            raise self._meaning_of(error) from error
        return values

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from `start` (inclusive) up to `end` (exclusive, at most `LAST`), in order.

        The iterator is made here, not at the first pair: it sees the store as it is now.
        """
        if start >= end:
            # RocksDB would begin behind `end`, perhaps behind `LAST`: an empty range is not damage.
            return iter(())
        rows: Any = self._db.items(from_key=start)
        return self._until(end, rows)

    def _until(self, end: bytes, rows: Any) -> Iterator[tuple[bytes, bytes]]:
        for key, value in rows:
            if key >= end:
                return
            yield key, value
        self._damaged = True
        raise Damaged(f"{self._path}: a scan up to {end!r} ends amid the store")

    def scan_back(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from before `end` (exclusive, at most `LAST`) down to `start` (inclusive).

        The iterator is made here, not at the first pair: it sees the store as it is now.
        """
        if start >= end:
            return iter(())
        rows: Any = self._db.items(backwards=True, from_key=end)
        return self._down_to(start, end, rows)

    def _down_to(self, start: bytes, end: bytes, rows: Any) -> Iterator[tuple[bytes, bytes]]:
        lowest = end
        for key, value in rows:
            if key < start:
                return
            lowest = key
            if key < end:
                yield key, value
        everything: Any = self._db.items()
        first, _ = next(everything, (b"", b""))
        if first < lowest:
            self._damaged = True
            raise Damaged(f"{self._path}: a scan down to {start!r} ends amid the store")

    def write(self, writes: Mapping[bytes, bytes | None], cleared: Sequence[Range] = ()) -> None:
        """Clear the ranges [start, end), then put or (None) delete: all of it or nothing."""
        if self._memtable_bytes != (each := SHARES.each):
            self._resize(each)
        batch = WriteBatch(raw_mode=True)
        for start, end in cleared:
            batch.delete_range(start, end)
        put, delete = batch.put, batch.delete
        parts = writes.parts if isinstance(writes, Parted) else ((b"", writes),)
        for prefix, rows in parts:
            # A memtable takes sorted rows in faster than mixed ones: it finds their place once.
            for key in sorted(rows):
                value = rows[key]
                if value is None:
                    delete(prefix + key)
                else:
                    put(prefix + key, value)
        try:
            self._db.write(batch, self._unlogged)
        except Exception as error:
            raise self._meaning_of(error) from error

    def _resize(self, memtable_bytes: int) -> None:
        """Set another size of the memory table; a failure fails no write."""
        self._memtable_bytes = memtable_bytes
        try:
            self._db.set_options({"write_buffer_size": str(memtable_bytes)})
        except Exception as error:  # noqa: BLE001  # a full disk takes no options file
            log.warning("a memory table stays as large as it was", reason=str(error))

    @property
    def is_open(self) -> bool:
        """Whether the store has not been closed; for readers in other threads."""
        return "_db" in vars(self)

    def figures(self) -> StoreFigures | None:
        """RocksDB's figures of the store, None once it is closed; from any thread."""
        try:
            told = self._db.property_int_value
            memory = [told(f"rocksdb.{name}") or 0 for name in _MEMORY]
            return StoreFigures(
                told("rocksdb.estimate-num-keys") or 0,
                told("rocksdb.total-sst-files-size") or 0,
                sum(memory) + SHARES.cached_bytes,
                told("rocksdb.estimate-pending-compaction-bytes") or 0,
                told("rocksdb.background-errors") or 0,
            )
        except (AttributeError, DbClosedError):
            return None

    def flush(self) -> None:
        """Begin to write the memtable to disk, so that less has to be replayed."""
        try:
            self._db.flush(False)
        except Exception as error:
            raise self._meaning_of(error) from error

    def checkpoint(self, path: Path) -> None:
        """Link the written rows to a new folder, which must not exist yet.

        The memtable is flushed for it, so call it shortly after a flush. Other threads run during
        this flush, but wait while links are made. RocksDB would flush then too, so this flush comes
        first.
        """
        if self._damaged:
            raise Damaged(f"{self._path} is not to be copied")
        self._db.flush(True)
        Checkpoint(self._db).create_checkpoint(str(path))

    def condemn(self, why: str) -> None:
        """Mark the store as wrong: closing it removes it."""
        log.warning("local state is wrong, and will be removed", path=str(self._path), reason=why)
        self._damaged = True

    def close(self) -> None:
        """Flush and close, or close without a flush; a damaged store is removed instead.

        Closing it again does nothing: another store may lie at its place by then.
        """
        if not self.is_open:
            return
        db = self._db
        try:
            db.close()
        except Exception as error:  # noqa: BLE001  # lost rows are in the changelog
            if not isinstance(self._meaning_of(error), Damaged):
                log.warning("a store was closed as it is on disk", reason=str(error))
        # A store that could not be flushed stays open, and locked, until its object is gone.
        del self._db, db
        SHARES.closed(self)
        if self._damaged:
            wipe(self._path)

    def _meaning_of(self, error: Exception) -> Exception:
        if not str(error).startswith("Corruption"):
            self.stuck = True
            # A new error: one that is its own cause keeps the store until garbage collection.
            return type(error)(*error.args)
        self._damaged = True
        return Damaged(f"{self._path}: {error}")


def wipe(path: Path) -> None:
    """Remove a store that is not to be used."""
    rmtree(path, ignore_errors=True)


def move(path: Path, to: Path) -> None:
    """Move a closed store to another path."""
    with suppress(FileNotFoundError):  # A damaged store removed itself when it was closed.
        path.rename(to)
