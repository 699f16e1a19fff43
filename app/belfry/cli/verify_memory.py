"""Schedules and fires that `belfry verify` remembers: rows of a file, so that memory is bounded.

A belfry with a hundred million schedules has as many fires to look for, and none of them can be
judged before the changelog says what it was. So all of it lies in tables of SQLite, by the keys
that the rules ask with:

    schedules   by partition and short name     the schedule, as the changelog has it by now
    locks       by partition and fire           the wait until a fire is acknowledged
    fires       by the id of the fire           its event; settled once a transaction has it
    told        by the id of the fire           the report of the lifecycle on it
    refused     by the source of a request      each of them once

`verify_moves.py` has the memory of moves of key groups.

Settled facts are forgotten after a while (`forget_before`); the file grows with open cases, and
with the length of the remembered past. Tests have the same in dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from belfry.cli.verify_moves import MovesOnDisk
from belfry.cli.verify_state import StateFile
from belfry.verification.findings import Spot
from belfry.verification.memory import FiredEntry, Remembered, Stands, ToldFire

# SQLite's integers have a sign; a generation is 64 bits without one.
_SIGNED: Final = 1 << 63
_FIRE: Final = "identity, schedule_id, nominal, occurrence, topic, partition, at, ms"
_TOLD: Final = "identity, schedule_id, topic, partition, at, ms"


class MemoryOnDisk:
    """Schedules, fires and the reports on them, as rows of a state file.

    Its methods are those of `belfry.verification.memory.Memory`. They run in the thread that made
    the file, and changes count only once the file is saved.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self.moves = MovesOnDisk(file)

    # -- schedules ---------------------------------------------------------------------------------

    def schedule(self, partition: int, name: int) -> Remembered | None:
        """The facts on a schedule of a partition, by its short name."""
        query = "SELECT * FROM schedules WHERE partition = ? AND name = ?"
        found = self._file.one(query, partition, name)
        return None if found is None else _remembered(found)

    def schedules(self, name: int) -> list[Remembered]:
        """The same of all partitions."""
        found = self._file.rows.execute("SELECT * FROM schedules WHERE name = ?", (name,))
        return [_remembered(row) for row in found.fetchall()]

    def put(self, partition: int, name: int, known: Remembered | None) -> None:
        """Remember a schedule, or forget it."""
        if known is None:
            query = "DELETE FROM schedules WHERE partition = ? AND name = ?"
            self._file.rows.execute(query, (partition, name))
            return
        stands, kind, due_ms, nominal_ms, life, *rest = known
        life -= 2 * _SIGNED if life >= _SIGNED else 0
        row = (partition, name, stands, kind, due_ms, nominal_ms, life, *rest, self._file.now_ms)
        places = ", ".join("?" * len(row))
        query = f"INSERT OR REPLACE INTO schedules VALUES ({places}, 0)"  # noqa: S608  # only ?
        self._file.rows.execute(query, row)

    def overdue(self, partition: int, until_ms: int) -> Iterator[tuple[int, Remembered]]:
        """Schedules that wait, should have fired by then, and were not told of; oldest first."""
        where = "stands = 0 AND told = 0 AND partition = ? AND expected <= ?"
        query = f"SELECT * FROM schedules WHERE {where} ORDER BY expected, at"  # noqa: S608  # as above
        for row in self._file.rows.execute(query, (partition, until_ms)):
            yield row[1], _remembered(row)

    def waiting(self, partition: int) -> Iterator[tuple[str, int, int]]:
        """Tenants with pending schedules in a partition: how many, and the oldest row's offset."""
        what = "tenant, count(*), min(at)"
        where = "partition = ? AND stands < 2 GROUP BY tenant"
        query = f"SELECT {what} FROM schedules WHERE {where}"  # noqa: S608  # of this module alone
        yield from self._file.rows.execute(query, (partition,))

    def tell(self, partition: int, names: Iterable[int]) -> None:
        """These were told of; each is again once it has another row."""
        query = "UPDATE schedules SET told = 1 WHERE partition = ? AND name = ?"
        self._file.rows.executemany(query, ((partition, name) for name in names))

    def lock(self, partition: int, fire: int, locks: Iterable[int]) -> None:
        """A fire, by its short name, holds these locks, and no others any more."""
        query = "DELETE FROM locks WHERE partition = ? AND fire = ?"
        self._file.rows.execute(query, (partition, fire))
        query = "INSERT OR IGNORE INTO locks VALUES (?, ?, ?)"
        self._file.rows.executemany(query, ((partition, fire, lock) for lock in locks))

    def is_locked(self, partition: int, lock: int) -> bool:
        """Whether a fire holds this lock."""
        query = "SELECT 1 FROM locks WHERE partition = ? AND lock = ?"
        return self._file.one(query, partition, lock) is not None

    def forget_partition(self, partition: int) -> None:
        """Forget all of a partition: it is read anew."""
        for table in ("schedules", "locks"):
            query = f"DELETE FROM {table} WHERE partition = ?"  # noqa: S608  # of this module alone
            self._file.rows.execute(query, (partition,))
        self.moves.forget_partition(partition)

    def last_round(self) -> int:
        """The last round of earlier runs with an open case; 1 if there is none."""
        query = "SELECT max(round) FROM {} WHERE {}"
        found = [
            self._file.one(query.format(*each))[0]
            for each in (("fires", "settled = 0"), ("told", "open = 1"))
        ]
        return max(each or 1 for each in found)

    # -- fires -------------------------------------------------------------------------------------

    def add_fire(self, fire: FiredEntry, at_round: int) -> FiredEntry | None:
        """Remember a fire; the one that has its id already, which then stays."""
        *first, spot, ms = fire
        row = (*first, *spot, ms, at_round)
        query = "INSERT OR IGNORE INTO fires VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
        if self._file.rows.execute(query, row).rowcount:
            return None
        known = self.fire(fire.identity)
        return None if known is None or known.spot == fire.spot else known

    def fire(self, identity: bytes) -> FiredEntry | None:
        """The fire of this id."""
        found = self._file.one(f"SELECT {_FIRE} FROM fires WHERE identity = ?", identity)  # noqa: S608
        return None if found is None else _fire(found)

    def fires(self, schedule_id: bytes, first: int, last: int) -> list[FiredEntry]:
        """Fires that belong to no transaction yet, of schedules of this id, by their numbers."""
        where = "settled = 0 AND schedule_id = ? AND occurrence BETWEEN ? AND ? ORDER BY occurrence"
        return self._fires(where, schedule_id, first, last)

    def extras(self, since_ms: int, until_ms: int) -> Iterator[FiredEntry]:
        """Extra fires (number -1) that belong to no transaction yet, by their timestamps.

        They are read one by one: of a long backfill there are many, and few are looked at.
        """
        where = "settled = 0 AND occurrence = -1 AND ms BETWEEN ? AND ? ORDER BY ms, identity"
        query = f"SELECT {_FIRE} FROM fires WHERE {where}"  # noqa: S608  # of this module alone
        return map(_fire, self._file.rows.execute(query, (since_ms, until_ms)))

    def settle(self, identities: Iterable[bytes]) -> None:
        """These fires belong to a transaction, or need none."""
        query = "UPDATE fires SET settled = 1 WHERE identity = ?"
        self._file.rows.executemany(query, ((each,) for each in identities))

    def lose(self, identity: bytes) -> None:
        """A transaction says that this fired, and it was reported to be in no output."""
        self._file.rows.execute("INSERT OR IGNORE INTO lost VALUES (?)", (identity,))

    def is_lost(self, identity: bytes) -> bool:
        """Whether that was reported."""
        return self._file.one("SELECT 1 FROM lost WHERE identity = ?", identity) is not None

    def unsettled(self, before_round: int) -> list[FiredEntry]:
        """Fires that came in an earlier round and still belong to no transaction."""
        return self._fires("settled = 0 AND round < ?", before_round)

    def _fires(self, where: str, *given: Any) -> list[FiredEntry]:
        """Fires for which a condition holds; it is text of this module, and never of a record."""
        query = f"SELECT {_FIRE} FROM fires WHERE {where}"  # noqa: S608  # of this module alone
        return [_fire(row) for row in self._file.rows.execute(query, given).fetchall()]

    # -- what was told and refused -----------------------------------------------------------------

    def add_told(self, told: ToldFire, at_round: int) -> ToldFire | None:
        """Remember a report on a fire; returns an earlier report on it, which then stays."""
        row = (told.identity, told.schedule_id, *told.spot, told.timestamp_ms, at_round)
        query = "INSERT OR IGNORE INTO told VALUES (?, ?, ?, ?, ?, ?, ?, 1)"
        if self._file.rows.execute(query, row).rowcount:
            return None
        query = f"SELECT {_TOLD} FROM told WHERE identity = ?"  # noqa: S608
        known = _told(self._file.one(query, told.identity))
        return None if known.spot == told.spot else known

    def told_without_fire(self, before_round: int) -> list[ToldFire]:
        """Reports of an earlier round on fires that were not seen."""
        seen = "EXISTS (SELECT 1 FROM fires WHERE fires.identity = told.identity)"
        self._file.rows.execute(f"UPDATE told SET open = 0 WHERE open = 1 AND {seen}")  # noqa: S608
        query = f"SELECT {_TOLD} FROM told WHERE open = 1 AND round < ?"  # noqa: S608
        return [_told(row) for row in self._file.rows.execute(query, (before_round,)).fetchall()]

    def forget_told(self, identities: Iterable[bytes]) -> None:
        """Report these no more."""
        query = "DELETE FROM told WHERE identity = ?"
        self._file.rows.executemany(query, ((each,) for each in identities))

    def add_once(self, what: str, spot: Spot, timestamp_ms: int) -> tuple[Spot, int] | None:
        """Remember a record that may come once, such as a refusal; an earlier place and time."""
        query = "INSERT OR IGNORE INTO refused VALUES (?, ?, ?, ?, ?)"
        if self._file.rows.execute(query, (what, *spot, timestamp_ms)).rowcount:
            return None
        query = "SELECT topic, partition, at, ms FROM refused WHERE origin = ?"
        *known, ms = self._file.one(query, what)
        return None if Spot(*known) == spot else (Spot(*known), ms)

    def forget_before(self, ms: int) -> None:
        """Forget facts that were matched, or gone, before this instant."""
        for query in (
            "DELETE FROM told WHERE ms < ? AND open = 0",
            "DELETE FROM fires WHERE ms < ? AND settled = 1",
            "DELETE FROM refused WHERE ms < ?",
            "DELETE FROM schedules WHERE touched < ? AND stands = 3",
        ):
            self._file.rows.execute(query, (ms,))
        self.moves.forget_before(ms)


def _remembered(row: Any) -> Remembered:
    """A row as a value; the generation gets its 64th bit back."""
    _, _, stands, kind, due_ms, nominal_ms, life, *rest, _, _ = row
    life += 2 * _SIGNED if life < 0 else 0
    return Remembered(Stands(stands), kind, due_ms, nominal_ms, life, *rest)


def _fire(row: Any) -> FiredEntry:
    """A row as a fire."""
    identity, schedule_id, nominal_ms, occurrence, topic, partition, offset, ms = row
    spot = Spot(topic, partition, offset)
    return FiredEntry(identity, schedule_id, nominal_ms, occurrence, spot, ms)


def _told(row: Any) -> ToldFire:
    """A row as the report on a fire."""
    identity, schedule_id, topic, partition, offset, ms = row
    return ToldFire(identity, schedule_id, Spot(topic, partition, offset), ms)
