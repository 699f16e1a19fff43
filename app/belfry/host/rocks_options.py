"""The options of RocksDB, and the memory that the stores of a process take together.

A store's rows lie in a memory table until it is full, and there may be three of them.  A worker of
64 partitions has as many stores, so tables of one size would take 64 times as much memory.
Instead, all tables together have a bound, so each table is smaller where there are many stores:

    stores      1 to 8    9 to 16    17 to 32    more
    a table       8 MB       4 MB        2 MB    1 MB

A change of the size takes a store 3 ms, because it writes its options anew.  So a worker says in
advance how many stores it is going to open, and the first ones need not shrink while the others
follow.

Blocks of files that were read are cached.  All stores have one cache in common, with 8 MB for each
store, and 16 MB at most.  An owner reads rows in order only once, and its sweeps pass over all rows
in turn, so the cache is full of blocks that are not read again, however large it is.  The system
caches the files as well.

RocksDB has a bound of its own for several stores (`WriteBufferManager`).  It makes the store that
is written to flush its table, however little is in it: where the other stores are idle and full,
each write leads to a file.  Measured: 2 234 files for 3 000 writes.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakSet

from rocksdict import BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, Options

from belfry.host import machine

# Bytes of the tables of all stores together, and of one.
MEMTABLES_BYTES: Final = 64 * 1024 * 1024
MOST_BYTES: Final = 8 * 1024 * 1024
LEAST_BYTES: Final = 1024 * 1024
# The same for cached blocks.
CACHES_BYTES: Final = 16 * 1024 * 1024
CACHE_BYTES: Final = 8 * 1024 * 1024
NAMES_FILTER: Final = 0.05
# Bytes of a block, and how many index entries follow one that has its whole key.
BLOCK_BYTES: Final = 8 * 1024
INDEX_RESTARTS: Final = 16


class StoreShares:
    """The stores that are open, and the cache that they have in common; from any thread.

    A store whose object is gone without `close` is no longer among them: RocksDB closes it.
    """

    def __init__(self) -> None:
        self._open: WeakSet[object] = WeakSet()
        self._expected = 0
        # So the capacity fits the stores that are open now, whichever thread was quicker.
        self._lock = machine.Lock()
        self.cache: Final = Cache(CACHE_BYTES)

    @property
    def each(self) -> int:
        """Bytes of one store's table; it changes when stores are opened or closed."""
        return memtable_bytes(max(len(self._open), self._expected))

    @property
    def cached_bytes(self) -> int:
        """Bytes of one store's equal part of the cache: RocksDB does not tell them by store."""
        return self.cache.get_usage() // max(1, len(self._open))

    def expect(self, stores: int) -> None:
        """Note that so many stores are going to be open."""
        self._expected = stores

    def opened(self, store: object) -> None:
        """Note one more open store."""
        with self._lock:
            self._open.add(store)
            self.cache.set_capacity(cache_bytes(len(self._open)))

    def closed(self, store: object) -> None:
        """Note that a store is closed."""
        with self._lock:
            self._open.discard(store)
            self.cache.set_capacity(cache_bytes(len(self._open)))


SHARES: Final = StoreShares()


def memtable_bytes(stores: int) -> int:
    """The size of a table beside so many stores: a power of two, so that it seldom changes."""
    each = MOST_BYTES
    while each > LEAST_BYTES and each * stores > MEMTABLES_BYTES:
        each //= 2
    return each


def cache_bytes(stores: int) -> int:
    """How many bytes of blocks so many stores may cache together."""
    return min(CACHES_BYTES, CACHE_BYTES * max(1, stores))


def store_options(cache: Cache, *, names_asked: bool = True) -> Options:
    """The options of a store with this cache, without the size of its table.

    `names_asked` says that most keys are looked up before they are written.
    """
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_max_write_buffer_number(3)
    # Rows come in by time and by name, and most leave soon: merging few large runs rewrites them
    # half as often as levels do.  A schedule's life is too short to pay for compressing it.
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_level_zero_file_num_compaction_trigger(8)
    options.set_compression_type(DBCompressionType.none())
    if names_asked:
        # Most of these keys are new. Elsewhere a filter would be filled and not used.
        options.set_memtable_whole_key_filtering(True)
        options.set_memtable_prefix_bloom_ratio(NAMES_FILTER)
    options.set_keep_log_file_num(2)
    options.set_max_open_files(256)
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_bloom_filter(10, False)
    # Indexes and filters of all files lie in memory: 3.0 bytes a schedule of 540. By RocksDB's
    # defaults (4 kB and 1) they took 5.9, which is 29 MB more for 10 000 000.
    table.set_block_size(BLOCK_BYTES)
    table.set_index_block_restart_interval(INDEX_RESTARTS)
    options.set_block_based_table_factory(table)
    return options
