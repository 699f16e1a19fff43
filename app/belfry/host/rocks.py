"""RocksDB behind the ordered-map port.

The write-ahead log is off: the changelog is the log.  What a crash takes with it is replayed from
the changelog, from the offset that lies in the same store; memtables reach the disk in the order of
their writes, so the store is always the fold of a prefix.  Opening therefore replays nothing, and
does not hold up the other threads of the process.  A store whose disk took something not is `stuck`
until it is closed and opened again; what it has not put on disk goes as in a crash.

A block that fails its checksum must never look like an absent row.  Reads by name say so, but
RocksDB's iterator just ends there, so every store holds one key behind all others (`LAST`): a scan
that runs off the end without meeting it has met damage.  One that goes backwards has met it where
it ends before the first key of all.  A damaged store removes itself when it is
closed, and is rebuilt from the changelog.
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
    """What RocksDB says of one store; `rows` is its estimate.

    `memory_bytes` are memory tables, indexes, and an equal part of the blocks that all stores of
    the process cache.  `merge_bytes` is how much is still to be rewritten until files are merged as
    they should be.  `errors` are those of its background threads since it was opened.
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
        # By name as well: a store that exists would be opened with what its options file says,
        # which does not tell how large a filter is, so there would be none.
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
            # RocksDB writes and compacts in the background from the first moment on, and meets
            # damage there, or a disk that fails.  Left open, it would be locked for the next try.
            self.close()
            raise

    def get(self, key: bytes) -> bytes | None:
        """The value of a key, or None; no other thread runs meanwhile, as it does in `get_many`."""
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
            # RocksDB would begin behind `end`, perhaps behind `LAST`: an empty range is no damage.
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
            # A memtable takes neighbours in faster than a mixture: their place is found once.
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
        """Have another size of the memory table, which no write needs: it fails none."""
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
        """What RocksDB says of the store, None once it is closed; from any thread."""
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
        """Begin to put the memtable on disk, so that less is to be replayed."""
        try:
            self._db.flush(False)
        except Exception as error:
            raise self._meaning_of(error) from error

    def checkpoint(self, path: Path) -> None:
        """Link what is written to a folder that is not there yet.

        The memtable is flushed for it, so let one have been flushed shortly before. Other threads
        run while it is flushed, and none does while links are made: RocksDB would flush then as
        well, and would let none run.
        """
        if self._damaged:
            raise Damaged(f"{self._path} is not to be copied")
        self._db.flush(True)
        Checkpoint(self._db).create_checkpoint(str(path))

    def condemn(self, why: str) -> None:
        """Its rows were found to be wrong: closing the store removes it."""
        log.warning("local state is wrong, and will be removed", path=str(self._path), reason=why)
        self._damaged = True

    def close(self) -> None:
        """Flush and close, or close without that; what is damaged is removed instead.

        To close it once more does nothing: another store may lie at its place by then.
        """
        if not self.is_open:
            return
        db = self._db
        try:
            db.close()
        except Exception as error:  # noqa: BLE001  # what is lost is in the changelog
            if not isinstance(self._meaning_of(error), Damaged):
                log.warning("a store was closed as it is on disk", reason=str(error))
        # A store that could not be flushed stays open, and locked, until it is let go.
        del self._db, db
        SHARES.closed(self)
        if self._damaged:
            wipe(self._path)

    def _meaning_of(self, error: Exception) -> Exception:
        if not str(error).startswith("Corruption"):
            self.stuck = True
            # A new one: an error that is its own cause stays, with the store, until garbage goes.
            return type(error)(*error.args)
        self._damaged = True
        return Damaged(f"{self._path}: {error}")


def wipe(path: Path) -> None:
    """Remove a store that is not to be used."""
    rmtree(path, ignore_errors=True)


def move(path: Path, to: Path) -> None:
    """Put a store that is not open elsewhere."""
    with suppress(FileNotFoundError):  # A damaged store removed itself when it was closed.
        path.rename(to)
