"""What `belfry verify` remembers, in a file of SQLite, so that what lies in memory stays bounded.

All that one pass does is one transaction of the file, with how far each topic was read.  So a pass
that is cut short has not been, and the next one goes on from where the last whole one ended.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import orjson

from belfry.cli.failures import CommandError
from belfry.verification.findings import Spot
from belfry.verification.memory import FiredEntry, Remembered, Stands, ToldFire
from belfry.verification.rows import Sealed
from belfry.verification.standing import Standing

if TYPE_CHECKING:
    from pathlib import Path

# It stands in the file; one of another format is refused.
FORMAT: Final = 1
# KiB of the file that SQLite keeps in memory.
CACHE_KIB: Final = 64 * 1024
# SQLite's integers have a sign; a generation is 64 bits without one.
_SIGNED: Final = 1 << 63
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS schedules (
    partition INT, name INT, stands INT, kind INT, due INT, nominal INT, life INT, version INT,
    occurrence INT, at INT, touched INT, PRIMARY KEY (partition, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS schedules_by_name ON schedules (name);
CREATE INDEX IF NOT EXISTS gone_schedules ON schedules (touched) WHERE stands = 3;
CREATE TABLE IF NOT EXISTS fires (
    identity BLOB PRIMARY KEY, schedule_id BLOB, nominal INT, occurrence INT, topic TEXT,
    partition INT, at INT, ms INT, round INT, settled INT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS open_fires ON fires (schedule_id, occurrence) WHERE settled = 0;
CREATE INDEX IF NOT EXISTS open_extras ON fires (ms) WHERE settled = 0 AND occurrence = -1;
CREATE INDEX IF NOT EXISTS open_rounds ON fires (round) WHERE settled = 0;
CREATE TABLE IF NOT EXISTS lost (identity BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS told (
    identity BLOB PRIMARY KEY, schedule_id BLOB, topic TEXT, partition INT, at INT, ms INT,
    round INT, open INT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS open_told ON told (round) WHERE open = 1;
CREATE TABLE IF NOT EXISTS refused (
    origin TEXT PRIMARY KEY, topic TEXT, partition INT, at INT, ms INT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (
    topic TEXT, partition INT, at INT, PRIMARY KEY (topic, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS floors (topic TEXT PRIMARY KEY, ms INT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS standings (partition INT PRIMARY KEY, standing TEXT);
"""
_FIRE: Final = "identity, schedule_id, nominal, occurrence, topic, partition, at, ms"
_TOLD: Final = "identity, schedule_id, topic, partition, at, ms"


class MemoryOnDisk:
    """A memory in a file; without one in a temporary file that is gone afterwards.

    `now_ms` is when rows are touched, in epoch ms, which the owner sets. Methods run in the thread
    that made it, as `sqlite3` asks. Nothing counts before `save`.
    """

    def __init__(self, path: Path | None, world: str) -> None:
        """`world` names cluster and topics; raises `CommandError` for a file of another one."""
        self.now_ms = 0
        try:
            self._file = sqlite3.connect("" if path is None else path, isolation_level=None)
            self._file.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.executescript(_TABLES)
        except sqlite3.Error as error:
            raise CommandError(
                f"{path} cannot be used to remember: {error}. Name a file that an earlier"
                " `belfry verify` made, or one that does not exist yet."
            ) from None
        self._check(path, f"format {FORMAT} of {world}")
        self._file.execute("BEGIN")

    def _check(self, path: Path | None, world: str) -> None:
        """Refuse a file that remembers another cluster or changelog; a new file is told which it
        is.
        """
        found = self._one("SELECT value FROM facts WHERE name = 'world'")
        if found is None:
            self._file.execute("INSERT INTO facts VALUES ('world', ?)", (world,))
        elif found[0] != world:
            raise CommandError(
                f"{path} remembers {found[0]}, and this is {world}. Name another file for each"
                " belfry, and remove the one of a belfry whose topics were made anew."
            )

    def save(self) -> None:
        """A pass is over: keep what it did."""
        self._file.execute("COMMIT")
        self._file.execute("BEGIN")

    def close(self) -> None:
        """Close the file; what was not saved has not been."""
        self._file.close()

    def _one(self, query: str, *given: Any) -> Any:
        """The first row of an answer, or None."""
        return self._file.execute(query, given).fetchone()

    # -- how far it was read -----------------------------------------------------------------------

    def positions(self, topic: str) -> dict[int, int]:
        """The next offset of each partition of a topic."""
        query = "SELECT partition, at FROM positions WHERE topic = ?"
        return dict(self._file.execute(query, (topic,)).fetchall())

    def put_position(self, topic: str, partition: int, offset: int) -> None:
        """A partition was read up to there."""
        query = "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)"
        self._file.execute(query, (topic, partition, offset))

    def floors(self) -> dict[str, int]:
        """Up to which instant records of topics may be gone."""
        return dict(self._file.execute("SELECT topic, ms FROM floors").fetchall())

    def raise_floor(self, topic: str, ms: int) -> None:
        """Records of a topic up to this instant may be gone."""
        query = "INSERT INTO floors VALUES (?, ?) ON CONFLICT DO UPDATE SET ms = max(ms, ?)"
        self._file.execute(query, (topic, ms, ms))

    def standing(self, partition: int) -> Standing:
        """Where the verification of a partition stands."""
        found = self._one("SELECT standing FROM standings WHERE partition = ?", partition)
        if found is None:
            return Standing()
        stored = orjson.loads(found[0])
        if stored["sealed"] is not None:
            *numbers, digest = stored["sealed"]
            stored["sealed"] = Sealed._make((*numbers, bytes.fromhex(digest)))
        stored["jobs"] = {key: tuple(at) for key, at in stored.get("jobs", {}).items()}
        return Standing(**stored)

    def put_standing(self, partition: int, standing: Standing) -> None:
        """The verification of a partition stands there."""
        stored = asdict(standing)
        if standing.sealed is not None:
            stored["sealed"] = [*standing.sealed[:-1], standing.sealed.digest.hex()]
        query = "INSERT OR REPLACE INTO standings VALUES (?, ?)"
        self._file.execute(query, (partition, orjson.dumps(stored).decode()))

    # -- schedules ---------------------------------------------------------------------------------

    def schedule(self, partition: int, name: int) -> Remembered | None:
        """What is known of a schedule of a partition, by its short name."""
        query = "SELECT * FROM schedules WHERE partition = ? AND name = ?"
        found = self._one(query, partition, name)
        return None if found is None else _remembered(found)

    def schedules(self, name: int) -> list[Remembered]:
        """The same of all partitions."""
        found = self._file.execute("SELECT * FROM schedules WHERE name = ?", (name,))
        return [_remembered(row) for row in found.fetchall()]

    def put(self, partition: int, name: int, known: Remembered | None) -> None:
        """Remember a schedule, or forget it."""
        if known is None:
            query = "DELETE FROM schedules WHERE partition = ? AND name = ?"
            self._file.execute(query, (partition, name))
            return
        stands, kind, due_ms, nominal_ms, life, *rest = known
        life -= 2 * _SIGNED if life >= _SIGNED else 0
        row = (partition, name, stands, kind, due_ms, nominal_ms, life, *rest, self.now_ms)
        query = "INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._file.execute(query, row)

    def forget_partition(self, partition: int) -> None:
        """Forget all of a partition: it is read anew."""
        self._file.execute("DELETE FROM schedules WHERE partition = ?", (partition,))

    # -- fires -------------------------------------------------------------------------------------

    def add_fire(self, fire: FiredEntry, at_round: int) -> FiredEntry | None:
        """Remember a fire; the one that has its id already, which then stays."""
        *first, spot, ms = fire
        row = (*first, *spot, ms, at_round)
        query = "INSERT OR IGNORE INTO fires VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
        if self._file.execute(query, row).rowcount:
            return None
        known = self.fire(fire.identity)
        return None if known is None or known.spot == fire.spot else known

    def fire(self, identity: bytes) -> FiredEntry | None:
        """The fire of this id."""
        found = self._one(f"SELECT {_FIRE} FROM fires WHERE identity = ?", identity)  # noqa: S608
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
        return map(_fire, self._file.execute(query, (since_ms, until_ms)))

    def settle(self, identities: Iterable[bytes]) -> None:
        """These fires belong to a transaction, or need none."""
        query = "UPDATE fires SET settled = 1 WHERE identity = ?"
        self._file.executemany(query, ((each,) for each in identities))

    def lose(self, identity: bytes) -> None:
        """A transaction says that this fired, and it was reported to be in no output."""
        self._file.execute("INSERT OR IGNORE INTO lost VALUES (?)", (identity,))

    def is_lost(self, identity: bytes) -> bool:
        """Whether that was reported."""
        return self._one("SELECT 1 FROM lost WHERE identity = ?", identity) is not None

    def unsettled(self, before_round: int) -> list[FiredEntry]:
        """Fires that came in an earlier round and still belong to no transaction."""
        return self._fires("settled = 0 AND round < ?", before_round)

    def _fires(self, where: str, *given: Any) -> list[FiredEntry]:
        """Fires for which a condition holds; it is text of this module, and never of a record."""
        query = f"SELECT {_FIRE} FROM fires WHERE {where}"  # noqa: S608  # of this module alone
        return [_fire(row) for row in self._file.execute(query, given).fetchall()]

    # -- what was told and refused -----------------------------------------------------------------

    def add_told(self, told: ToldFire, at_round: int) -> ToldFire | None:
        """Remember what was told of a fire; what was told of it before, which then stays."""
        row = (told.identity, told.schedule_id, *told.spot, told.timestamp_ms, at_round)
        query = "INSERT OR IGNORE INTO told VALUES (?, ?, ?, ?, ?, ?, ?, 1)"
        if self._file.execute(query, row).rowcount:
            return None
        query = f"SELECT {_TOLD} FROM told WHERE identity = ?"  # noqa: S608
        known = _told(self._one(query, told.identity))
        return None if known.spot == told.spot else known

    def told_without_fire(self, before_round: int) -> list[ToldFire]:
        """What was told in an earlier round, of fires that were not seen."""
        seen = "EXISTS (SELECT 1 FROM fires WHERE fires.identity = told.identity)"
        self._file.execute(f"UPDATE told SET open = 0 WHERE open = 1 AND {seen}")  # noqa: S608
        query = f"SELECT {_TOLD} FROM told WHERE open = 1 AND round < ?"  # noqa: S608
        return [_told(row) for row in self._file.execute(query, (before_round,)).fetchall()]

    def forget_told(self, identities: Iterable[bytes]) -> None:
        """Report these no more."""
        query = "DELETE FROM told WHERE identity = ?"
        self._file.executemany(query, ((each,) for each in identities))

    def add_once(self, what: str, spot: Spot, timestamp_ms: int) -> Spot | None:
        """Remember what has to be there once, such as a refusal; where it was before."""
        query = "INSERT OR IGNORE INTO refused VALUES (?, ?, ?, ?, ?)"
        if self._file.execute(query, (what, *spot, timestamp_ms)).rowcount:
            return None
        known = Spot(*self._one("SELECT topic, partition, at FROM refused WHERE origin = ?", what))
        return None if known == spot else known

    def forget_before(self, ms: int) -> None:
        """Forget what belongs together, or is gone, since before this instant."""
        for query in (
            "DELETE FROM told WHERE ms < ? AND open = 0",
            "DELETE FROM fires WHERE ms < ? AND settled = 1",
            "DELETE FROM refused WHERE ms < ?",
            "DELETE FROM schedules WHERE touched < ? AND stands = 3",
        ):
            self._file.execute(query, (ms,))


def _remembered(row: Any) -> Remembered:
    """A row as a value; the generation gets its 64th bit back."""
    _, _, stands, kind, due_ms, nominal_ms, life, version, occurrence, offset, _ = row
    life += 2 * _SIGNED if life < 0 else 0
    return Remembered(Stands(stands), kind, due_ms, nominal_ms, life, version, occurrence, offset)


def _fire(row: Any) -> FiredEntry:
    """A row as a fire."""
    identity, schedule_id, nominal_ms, occurrence, topic, partition, offset, ms = row
    spot = Spot(topic, partition, offset)
    return FiredEntry(identity, schedule_id, nominal_ms, occurrence, spot, ms)


def _told(row: Any) -> ToldFire:
    """A row as what was told of a fire."""
    identity, schedule_id, topic, partition, offset, ms = row
    return ToldFire(identity, schedule_id, Spot(topic, partition, offset), ms)
