"""Reads the lifecycle topic into the store: those partitions that this worker answers for.

Partition *p* of the lifecycle topic is followed by the worker that holds the home *p* mod homes.
So the history of a schedule need not be at the worker that holds its partition, but exactly one
worker follows each record.  This thread opens the store, looks which homes are held, and gives a
reader (`lifecycle_reader.py`) its turns.  After each batch it rests for as long as the batch took,
50 ms at most, so that it does not delay firing.

A partition counts as followed once it has been read up to its end of when it was assigned
(`backlog.py`).  An earlier caller is told to ask again, and gets no answer with a hole.

    lifecycle   ─► a batch of up to 1 000 ─► the store, with the offset behind it ─► rest
    each 0.5 s     which homes are held here? ─► partitions assigned anew
    each 20 s      flush, with the fires of each hour (`fire_hours.py`)
    each 60 s      drop records whose time is over

A damaged store is thrown away and read again, as far back as the topic reaches; fires are counted
anew from the next full hour on.  Firing never waits for this thread.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

import structlog

from belfry.history.backlog import Backlog
from belfry.history.fire_hours import FireHours
from belfry.history.history_store import HistoryStore
from belfry.history.layout import HOUR_MS
from belfry.history.lifecycle_reader import LifecycleReader
from belfry.host.background import Background
from belfry.host.passing import PassThrough, at_once
from belfry.host.rocks import RocksMap, wipe
from belfry.kafka.followed_topic import FollowedTopic
from belfry.settings import ServerSettings
from belfry.store.ordered_map import Damaged

# Seconds between looks at the held homes, between sweeps, and between flushes.
LOOK_S: Final = 0.5
SWEEP_S: Final = 60.0
FLUSH_S: Final = 20.0
# The longest rest after a batch, and after a small answer of a partition, which is a batch too.
REST_S: Final = 0.05
SIP_S: Final = 0.1
# The clock of the worker that wrote a record may be ahead of this one.
AHEAD_MS: Final = HOUR_MS

log = structlog.get_logger(__name__)


class Follower:
    """Keeps a store up to date in a thread of its own."""

    def __init__(
        self,
        settings: ServerSettings,
        head: bytes,
        held: Callable[[], list[int]],
        retention_ms: Callable[[bytes], int],
        fire_hours: FireHours,
        through: PassThrough = at_once,
    ) -> None:
        """`held` are the homes of this worker, `retention_ms` is how long records are kept.

        `head` stands before a body of this release: such a record is kept without being decoded.
        Records pass `through` an agent.  The counts of this worker's fires are in `fire_hours`
        until they are in the store.
        """
        self.fire_hours = fire_hours
        self._through = through
        self._topic = settings.topic("lifecycle")
        self._path = settings.data_dir / "history"
        self._homes = 1
        self._head = head
        self._held = held
        self._retention_ms = retention_ms
        self._now_ms = fire_hours.now_ms
        self._properties = settings.kafka_properties()
        self._rows: RocksMap | None = None
        # Whether a store was thrown away, and with it the counts of past hours.
        self._lost = False
        self.store: HistoryStore | None = None
        self.partitions = 0
        self._backlog = Backlog()
        self._swept = self._flushed = monotonic()
        self._thread = Background("history", self._turn, log, "the history is not followed")

    def start(self, homes: int) -> None:
        """Begin to follow; `homes` is the number of homes of all schedules."""
        self._homes = homes
        self._thread.start()

    def stop(self) -> None:
        """Stop, and close the store."""
        self._thread.stop()
        try:
            if self.store is not None:
                self._keep_fires(self.store)
        except Exception as error:  # noqa: BLE001  # RocksDB has no class for a full disk
            log.warning("the latest counts of fires are not kept", reason=str(error))
        finally:
            self._close()

    @property
    def followed(self) -> frozenset[int]:
        """The partitions that this worker answers for."""
        return self._backlog.passed

    def home_of(self, partition: int) -> int:
        """The home whose holder follows a partition of the topic: *p* mod homes."""
        return partition % self._homes

    def reach_ms(self, tenant: bytes) -> tuple[int, int]:
        """The range in which there may be records of a tenant, epoch ms.

        Its end lies an hour ahead, because the clocks of other workers may be ahead.
        """
        now_ms = int(self._now_ms())
        return max(0, now_ms - self._retention_ms(tenant)), now_ms + AHEAD_MS

    def _turn(self) -> None:
        try:
            if self._rows is None:
                self._open()
            store, rows = self.store, self._rows
            assert store is not None
            assert rows is not None
            # Here as well: so counts of fires do not pile up where the topic cannot be read.
            self._chores(store, rows)
            self._follow(store, rows)
        except Damaged as error:
            log.warning("the history is damaged and is read anew", reason=str(error))
            self._drop()
        except Exception:
            if self._rows is not None and self._rows.stuck:
                self._close()
            raise

    def _open(self) -> None:
        """Open the store, an empty one in place of a damaged one."""
        try:
            self._rows = RocksMap(self._path, names_asked=False)
        except Damaged:
            self._drop()
            self._rows = RocksMap(self._path, names_asked=False)
        self.store = HistoryStore(self._rows)
        self.store.fires.begin(self._now_ms(), lost=self._lost)
        self._lost = False

    def _drop(self) -> None:
        """Throw the store away; its counts of fires cannot be read again from a topic."""
        self._close()
        wipe(self._path)
        self._lost = True

    def _close(self) -> None:
        self.store, rows, self._rows = None, self._rows, None
        if rows is not None:
            rows.close()

    def _follow(self, store: HistoryStore, rows: RocksMap) -> None:
        topic = FollowedTopic(self._properties, self._topic, SIP_S)
        reader = LifecycleReader(topic, self._backlog, self._head)
        try:
            self.partitions = reader.partitions = len(topic.partitions())
            looked = 0.0
            while not self._thread.stopping.is_set():
                if monotonic() - looked >= LOOK_S:
                    looked = monotonic()
                    self._look(reader, store)
                    self._chores(store, rows)
                self._take(reader, store)
        finally:
            reader.close()

    def _look(self, reader: LifecycleReader, store: HistoryStore) -> None:
        """Read the partitions that belong to the homes that are held now."""
        held = set(self._held())
        wanted = frozenset(p for p in range(reader.partitions) if self.home_of(p) in held)
        reader.assign(wanted, store)
        reader.ask_ends(store)
        reader.count()
        self.partitions = reader.partitions

    def _take(self, reader: LifecycleReader, store: HistoryStore) -> None:
        """One batch into the store, by way of the agent, and a rest."""
        batch = reader.batch()
        if batch is None:
            return
        stopping = self._thread.stopping
        if not batch.records or self._through(self._topic, batch.partition, batch.offset, stopping):
            began = monotonic()
            reader.keep(batch, store)
            stopping.wait(min(monotonic() - began, REST_S))

    def _chores(self, store: HistoryStore, rows: RocksMap) -> None:
        now = monotonic()
        if now - self._flushed >= FLUSH_S:
            self._flushed = now
            self._keep_fires(store)
            rows.flush()
        if now - self._swept >= SWEEP_S:
            self._swept = now
            self.sweep(store)

    def _keep_fires(self, store: HistoryStore) -> None:
        with self.fire_hours.taken() as counted:
            store.fires.add(counted)

    def sweep(self, store: HistoryStore) -> None:
        """Drop records that are too old, once they reach back a hundredth of the time too far.

        So a hundred thousand tenants do not each cause a deletion every minute.
        """
        for tenant, first_hour in store.fires.tenants():
            keep_hours = self._retention_ms(tenant) // HOUR_MS
            before = int(self._now_ms()) // HOUR_MS - keep_hours
            if first_hour < before - keep_hours // 100:
                store.fires.forget(tenant, before)
        for tenant, first_ms in store.tenants():
            keep_ms = self._retention_ms(tenant)
            before_ms = int(self._now_ms()) - keep_ms
            if first_ms < before_ms - keep_ms // 100:
                store.forget(tenant, before_ms)
