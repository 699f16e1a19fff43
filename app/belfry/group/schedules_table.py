"""The schedules of a worker as Faust's table `belfry.schedules`: a view, for whoever looks.

    app.tables["belfry.schedules"]["acme", "order-1"]     a schedule, or KeyError
    for tenant, schedule_id in table                      what waits here, in the order of names
    table.view.of_tenant("acme")                          the same of one tenant

The rows are belfry's: its changelog's fold in its own local store.  Nothing is set by the table,
since a schedule changes by a request alone, which has an outcome.  Nothing is recovered by it
either: belfry takes partitions over by an order that Faust's recovery does not keep
(`recovery/`).  The table is told of that: `on_recover` functions are called when the partitions
that are held, or followed warm, are others than before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, NoReturn, cast

import structlog
from faust.stores.base import Store
from faust.tables.manager import TableManager
from faust.tables.table import Table
from faust.types import TP
from mode import Service

from belfry.store.committed import Committed
from belfry.store.layout import keys
from belfry.store.layout.locations import is_location
from belfry.store.lookup import ScheduleStatus, standing_of
from belfry.store.ordered_map import OrderedMap

TABLE: Final = "belfry.schedules"
LOOK_S: Final = 1.0
CHUNK: Final = 500
Key = tuple[str, str]
Look = Callable[[OrderedMap], Any]

log = structlog.get_logger(__name__)


class ReadOnlyTable(TypeError):
    """The table was to be changed."""

    def __init__(self) -> None:
        super().__init__(
            f"{TABLE} is a view: a schedule changes by a request, such as `belfry schedule create`"
        )


class HeldPartitions(NamedTuple):
    """What a worker holds: partitions it owns and follows warm, homes, and reads of its rows."""

    held: Callable[[], list[int]]
    warm: Callable[[], list[int]]
    home_of: Callable[[str, str], int]
    read: Callable[[int, Look], Any]
    now_ms: Callable[[], float]


class SchedulesStore(Store[Key, ScheduleStatus]):
    """Faust's store over the rows of the partitions that this worker owns."""

    held: HeldPartitions | None = None

    def __getitem__(self, key: Key) -> ScheduleStatus:
        tenant, schedule_id = key
        held = self._held()
        home = held.home_of(tenant, schedule_id)
        if home not in held.held():
            raise KeyError(key)
        name = keys.schedule_key(tenant, schedule_id)
        found: ScheduleStatus | None = held.read(
            home, lambda rows: standing_of(rows, name, int(held.now_ms()))
        )
        if found is None or found.pending is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]  # any object may be asked for
        except (KeyError, TypeError, ValueError):
            return False
        return True

    def __iter__(self) -> Iterator[Key]:
        return self._some(lambda rows, after: Committed(rows).names(after, CHUNK))

    def __len__(self) -> int:
        held = self._held()
        return sum(
            sum(held.read(each, lambda rows: Committed(rows).waiting_by_tenant()).values())
            for each in held.held()
        )

    def of_tenant(self, tenant: str) -> Iterator[Key]:
        """The schedules of a tenant that wait here."""
        name = tenant.encode()
        return self._some(lambda rows, after: Committed(rows).names_of(name, after, CHUNK))

    def _some(self, names: Callable[[OrderedMap, bytes | None], Any]) -> Iterator[Key]:
        """What waits, a few names at a time, so that no look holds up who writes."""
        held = self._held()
        for partition in held.held():
            after: bytes | None = None
            while True:
                since = after
                rows = held.read(partition, lambda map_: list(names(map_, since)))  # noqa: B023
                for name, row in rows:
                    if is_location(row):
                        yield _key(name)
                if len(rows) < CHUNK:
                    break
                after = rows[-1][0]

    def _held(self) -> HeldPartitions:
        if self.held is None:
            raise LookupError(f"{TABLE} has rows in a worker that runs alone: `belfry worker`")
        return self.held

    def __setitem__(self, key: Key, value: ScheduleStatus) -> NoReturn:
        raise ReadOnlyTable

    def __delitem__(self, key: Key) -> NoReturn:
        raise ReadOnlyTable

    def clear(self) -> None:
        """Refused: schedules change by requests."""
        raise ReadOnlyTable

    # -- what Faust's recovery would ask; belfry's own does the work -----------------------------

    def persisted_offset(self, tp: TP) -> int | None:
        """The changelog's offset up to which the rows of a partition go; None where not held."""
        held = self._held()
        if tp.partition not in held.held():
            return None
        state = held.read(tp.partition, lambda rows: Committed(rows).state())
        return None if state is None else int(state.changelog_offset)

    async def need_active_standby_for(self, tp: TP) -> bool:
        """Whether this worker has no copy of a partition's rows."""
        held = self._held()
        return tp.partition not in (*held.held(), *held.warm())

    def apply_changelog_batch(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: the changelog is replayed by belfry, which checks it for holes."""
        raise ReadOnlyTable

    def reset_state(self) -> None:
        """Local state is belfry's to throw away."""

    async def backup_partition(self, tp: Any, *_: Any, **__: Any) -> None:
        """Nothing: `belfry recover` and the changelog are what brings state back."""

    def restore_backup(self, tp: Any, *_: Any, **__: Any) -> None:
        """Nothing: `belfry recover` and the changelog are what brings state back."""


class SchedulesTable(Table[Key, ScheduleStatus]):
    """Faust's table over that store."""

    def _new_store(self) -> SchedulesStore:
        return SchedulesStore("belfry://", self.app, self, loop=self.loop)

    @property
    def view(self) -> SchedulesStore:
        """Its store, for what Faust's tables do not have."""
        return cast("SchedulesStore", self.data)

    def connect(self, held: HeldPartitions) -> None:
        """Show the rows of the partitions that a worker holds."""
        self.view.held = held

    def on_key_set(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: schedules change by requests."""
        raise ReadOnlyTable

    def on_key_del(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: schedules change by requests."""
        raise ReadOnlyTable

    def on_clear(self) -> NoReturn:
        """Refused: schedules change by requests."""
        raise ReadOnlyTable

    async def on_start(self) -> None:
        """Start the store alone; belfry makes its changelog itself."""
        await self.add_runtime_dependency(self.data)


class BelfryTables(TableManager):
    """Faust's manager of tables, which neither reads changelogs nor waits for a recovery."""

    _shared = False

    async def on_start(self) -> None:
        """Register the tables; the conductor waits for that."""
        self._tables_finalized.set()
        for table in self.values():
            await table.maybe_start()
        self._tables_registered.set()

    async def on_stop(self) -> None:
        """Stop the tables."""
        for table in self.values():
            await table.stop()

    def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Nothing is read, so nothing is stopped."""

    async def on_rebalance(
        self,
        assigned: set[TP],
        revoked: set[TP],
        newly_assigned: set[TP],
        generation_id: int = 0,
    ) -> None:
        """The group has shared anew: take-overs are belfry's, so Faust's part ends here."""
        self._recovery_started.set()
        for table in self.values():
            await table.on_rebalance(assigned, revoked, newly_assigned, generation_id)
        self._shared = True

    async def wait_until_recovery_completed(self) -> bool:
        """There is no recovery of Faust's to wait for."""
        return False

    def _end_rebalance(self) -> None:
        """Tell Faust that a rebalance is over, once its driver has answered the group as well."""
        if self._shared and self.app.rebalancing:
            self._shared = False
            self.app.on_rebalance_end()

    @Service.task
    async def _tell(self) -> None:
        """Tell each table when other partitions are held, or followed warm, than before."""
        before: tuple[set[TP], set[TP]] = set(), set()
        while not self.should_stop:
            await self.sleep(LOOK_S)
            self._end_rebalance()
            for table in self.values():
                now = _held_by(table)
                if now != before:
                    before = now
                    self.actives_ready, self.standbys_ready = bool(now[0]), bool(now[1])
                    await table.on_recovery_completed(*now)
                    log.info(
                        "table follows take-overs",
                        table=table.name,
                        held=sorted(each.partition for each in now[0]),
                        warm=sorted(each.partition for each in now[1]),
                    )


def _held_by(table: Any) -> tuple[set[TP], set[TP]]:
    held: HeldPartitions | None = table.data.held
    if held is None:
        return set(), set()
    topic = table.changelog_topic.get_topic_name()
    return {TP(topic, p) for p in held.held()}, {TP(topic, p) for p in held.warm()}


def _key(name: bytes) -> Key:
    tenant = keys.tenant_of(name)
    return tenant.decode(), name[len(tenant) + 1 :].decode()


def schedules_table(app: Any, changelog: str) -> SchedulesTable:
    """The table of an application."""
    table = SchedulesTable(
        app,
        name=TABLE,
        help="The schedules that wait in the partitions of this worker; to be read alone.",
        changelog_topic=app.topic(changelog, acks=False),
        key_type=bytes,
        value_type=bytes,
    )
    app.tables.add(table)
    return table
