"""The schedules of a worker as Faust's table `belfry.schedules`: a view to look at.

    app.tables["belfry.schedules"]["acme", "order-1"]     a schedule, or KeyError
    for tenant, schedule_id in table                      waiting schedules, in the order of names
    table.view.of_tenant("acme")                          the same of one tenant

The table cannot be written to, since only a request changes a schedule, and a request has an
outcome. The table does not recover either: belfry takes partitions over in an order that Faust's
recovery does not keep (`recovery/`). But it follows that: `on_recover` functions are called when
the held or the warm partitions change.

    12:00:00   owns 1 and 2, follows 3 warm           on_recover is called: held 1, 2, warm 3
    12:00:07   another worker dies; 3 is taken over   on_recover is called: held 1, 2, 3

`schedules_store.py` reads the rows.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, cast

import structlog
from faust.tables.manager import TableManager
from faust.tables.table import Table
from faust.types import TP
from mode import Service

from belfry.group.schedules_store import TABLE, HeldPartitions, Key, ReadOnlyTable, SchedulesStore
from belfry.store.lookup import ScheduleStatus

# Seconds between two looks at the held partitions.
LOOK_S: Final = 1.0

log = structlog.get_logger(__name__)


class SchedulesTable(Table[Key, ScheduleStatus]):
    """Faust's table over `SchedulesStore`."""

    def _new_store(self) -> SchedulesStore:
        return SchedulesStore("belfry://", self.app, self, loop=self.loop)

    @property
    def view(self) -> SchedulesStore:
        """Its store, for methods that Faust's tables do not have."""
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
        """Only start the store; belfry makes the changelog itself."""
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
        """Does nothing: the manager reads no changelogs that it would have to stop."""

    async def on_rebalance(
        self,
        assigned: set[TP],
        revoked: set[TP],
        newly_assigned: set[TP],
        generation_id: int = 0,
    ) -> None:
        """End Faust's part of a rebalance: belfry does the take-overs."""
        self._recovery_started.set()
        for table in self.values():
            await table.on_rebalance(assigned, revoked, newly_assigned, generation_id)
        self._shared = True

    async def wait_until_recovery_completed(self) -> bool:
        """Return at once: Faust does no recovery here."""
        return False

    def _end_rebalance(self) -> None:
        """Tell Faust that a rebalance is over, once its driver has answered the group as well."""
        if self._shared and self.app.rebalancing:
            self._shared = False
            self.app.on_rebalance_end()

    @Service.task
    async def _tell(self) -> None:
        """Call each table's functions when the held or the warm partitions have changed."""
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
