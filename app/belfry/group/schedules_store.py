"""What stands behind the table of schedules: belfry's own rows, in Faust's shape of a store.

    table["acme", "order-1"] ─► whose home is it? held here? ─► the row in the local store
    for key in table         ─► each partition that is held, 500 names at a time

The rows are the fold of belfry's changelog in its local store, which the partition's thread writes.
They are read by short looks, each of which sees one instant of one partition, so what a loop over
the table yields may have fired when it is used.  Nothing is ever written, and code that tries is
told what to do instead.

Faust's recovery would ask a store how far it is, and fill it.  Here it hears how far belfry is.
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
# Names that are read at one look.
CHUNK: Final = 500
Key = tuple[str, str]
Look = Callable[[OrderedMap], Any]


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


def _key(name: bytes) -> Key:
    tenant = keys.tenant_of(name)
    return tenant.decode(), name[len(tenant) + 1 :].decode()
