"""The store behind the table of schedules: belfry's own rows, by Faust's interface of a store.

    table["acme", "order-1"] ─► its home; is that held here? ─► the row in the local store
    for key in table         ─► each partition that is held, 500 names at a time

The rows are the fold of belfry's changelog in its local store, which the partition's thread writes.
They are read by short looks, each of which sees one instant of one partition, so a schedule from a
loop over the table may have fired when it is used. The store never writes, and code that tries gets
an error that says what to do instead.

Faust's recovery would ask a store for its progress, and fill it. Here it gets belfry's progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, NoReturn

from faust.stores.base import Store
from faust.types import TP

from belfry.store.committed import Committed
from belfry.store.layout import keys
from belfry.store.layout.locations import is_location
from belfry.store.lookup import ScheduleStatus, standing_of
from belfry.store.ordered_map import OrderedMap

TABLE: Final = "belfry.schedules"
# The most names of one look.
CHUNK: Final = 500
Key = tuple[str, str]
Look = Callable[[OrderedMap], Any]


class ReadOnlyTable(TypeError):
    """Code tried to change the table."""

    def __init__(self) -> None:
        super().__init__(
            f"{TABLE} is a view: a schedule changes by a request, such as `belfry schedule create`"
        )


class HeldPartitions(NamedTuple):
    """A worker's partitions: owned and warm ones, the number of homes, and reads of their rows."""

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
        """The waiting schedules of a tenant in these partitions."""
        name = tenant.encode()
        return self._some(lambda rows, after: Committed(rows).names_of(name, after, CHUNK))

    def _some(self, names: Callable[[OrderedMap, bytes | None], Any]) -> Iterator[Key]:
        """Waiting schedules, a few names at a time, so that no look delays the writer."""
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
        """The changelog's offset up to which the rows of a partition go; None if it is not held."""
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
        """Does nothing: only belfry removes local state."""

    async def backup_partition(self, tp: Any, *_: Any, **__: Any) -> None:
        """Does nothing: `belfry recover` and the changelog bring state back."""

    def restore_backup(self, tp: Any, *_: Any, **__: Any) -> None:
        """Does nothing: `belfry recover` and the changelog bring state back."""


def _key(name: bytes) -> Key:
    tenant = keys.tenant_of(name)
    return tenant.decode(), name[len(tenant) + 1 :].decode()
