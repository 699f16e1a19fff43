"""The state file of `belfry verify`: its tables, of which belfry it is, and how far was read.

All that one pass does is one transaction of the file, with how far each topic was read:

    12:00:00  a pass begins: positions of the last one are in the file
    12:00:40  half of the topics are read, rows are written           ─► killed
    12:01:00  the next run finds positions and rows as of 12:00:00, and reads the same again

So a pass that is cut short has not been. The file says which changelog it is of, and one of another
belfry, or of topics that were made anew, is refused before anything is compared.
"""

from __future__ import annotations

import sqlite3
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import orjson

from belfry.cli.failures import CommandError
from belfry.verification.rows import Sealed
from belfry.verification.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# It stands in the file; one of another format is refused.
FORMAT: Final = 2
# KiB of the file that SQLite keeps in memory.
CACHE_KIB: Final = 64 * 1024
# Milliseconds. A topic whose events might come twice by a policy is remembered for so long.
REPEATED_MS: Final = 7 * 86_400_000
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS schedules (
    partition INT, name INT, stands INT, kind INT, due INT, nominal INT, life INT, version INT,
    occurrence INT, at INT, expected INT, tenant TEXT, lock INT, touched INT, told INT,
    PRIMARY KEY (partition, name)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS schedules_by_name ON schedules (name);
CREATE INDEX IF NOT EXISTS gone_schedules ON schedules (touched) WHERE stands = 3;
CREATE INDEX IF NOT EXISTS expected_schedules ON schedules (partition, expected, at)
    WHERE stands = 0 AND told = 0;
CREATE TABLE IF NOT EXISTS locks (
    partition INT, fire INT, lock INT, PRIMARY KEY (partition, fire, lock)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS held_locks ON locks (partition, lock);
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
CREATE TABLE IF NOT EXISTS repeated (topic TEXT PRIMARY KEY, ms INT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS move_sides (
    grp INT, move INT, partition INT, takes INT, sound INT, over INT, touched INT,
    PRIMARY KEY (grp, move, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS moved_rows (
    grp INT, move INT, name INT, tenant TEXT, left_at INT, left_as INT, came_at INT, came_as INT,
    seq INT, twice_at INT, PRIMARY KEY (grp, move, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS given_groups (
    partition INT, grp INT, move INT, settled INT, stays TEXT,
    PRIMARY KEY (partition, grp)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS standings (partition INT PRIMARY KEY, standing TEXT);
"""


class StateFile:
    """A file of SQLite; without a path a temporary one, which is gone afterwards.

    `rows` is the connection. `now_ms` is when rows are touched, in epoch ms, which the owner sets.
    Methods run in the thread that made it, as `sqlite3` asks. Changes count only after `save`.
    """

    def __init__(self, path: Path | None, world: str) -> None:
        """`world` names cluster and topics; raises `CommandError` for a file of another one."""
        self.now_ms = 0
        try:
            self.rows = sqlite3.connect("" if path is None else path, isolation_level=None)
            self.rows.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            self.rows.execute("PRAGMA journal_mode = WAL")
            self.rows.executescript(_TABLES)
        except sqlite3.Error as error:
            raise CommandError(
                f"{path} cannot be used to remember: {error}. Name a file that an earlier"
                " `belfry verify` made, or one that does not exist yet."
            ) from None
        self._check(path, f"format {FORMAT} of {world}")
        self.rows.execute("BEGIN")

    def _check(self, path: Path | None, world: str) -> None:
        """Refuse a file that remembers another cluster or changelog; a new file is told which it
        is.
        """
        found = self.one("SELECT value FROM facts WHERE name = 'world'")
        if found is None:
            self.rows.execute("INSERT INTO facts VALUES ('world', ?)", (world,))
        elif found[0] != world:
            raise CommandError(
                f"{path} remembers {found[0]}, and this is {world}. Name another file for each"
                " belfry, and remove the one of a belfry whose topics were made anew."
            )

    def save(self) -> None:
        """A pass is over: keep what it did."""
        self.rows.execute("COMMIT")
        self.rows.execute("BEGIN")

    def close(self) -> None:
        """Close the file; unsaved changes are lost."""
        self.rows.close()

    def one(self, query: str, *given: Any) -> Any:
        """The first row of an answer, or None."""
        return self.rows.execute(query, given).fetchone()

    def positions(self, topic: str) -> dict[int, int]:
        """The next offset of each partition of a topic."""
        query = "SELECT partition, at FROM positions WHERE topic = ?"
        return dict(self.rows.execute(query, (topic,)).fetchall())

    def put_position(self, topic: str, partition: int, offset: int) -> None:
        """A partition was read up to there."""
        query = "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)"
        self.rows.execute(query, (topic, partition, offset))

    def floors(self) -> dict[str, int]:
        """Up to which instant records of topics may be gone."""
        return dict(self.rows.execute("SELECT topic, ms FROM floors").fetchall())

    def raise_floor(self, topic: str, ms: int) -> None:
        """Records of a topic up to this instant may be gone."""
        query = "INSERT INTO floors VALUES (?, ?) ON CONFLICT DO UPDATE SET ms = max(ms, ?)"
        self.rows.execute(query, (topic, ms, ms))

    def repeating(self, topics: Iterable[str]) -> frozenset[str]:
        """These topics, whose events may come twice, and topics whose events lately might.

        A policy that promises more from now on says nothing of the events before.
        """
        query = "INSERT OR REPLACE INTO repeated VALUES (?, ?)"
        self.rows.executemany(query, ((each, self.now_ms) for each in topics))
        self.rows.execute("DELETE FROM repeated WHERE ms < ?", (self.now_ms - REPEATED_MS,))
        return frozenset(each for (each,) in self.rows.execute("SELECT topic FROM repeated"))

    def standing(self, partition: int) -> Standing:
        """Where the verification of a partition stands."""
        found = self.one("SELECT standing FROM standings WHERE partition = ?", partition)
        if found is None:
            return Standing()
        stored = orjson.loads(found[0])
        if stored["sealed"] is not None:
            *numbers, digest = stored["sealed"]
            stored["sealed"] = Sealed._make((*numbers, bytes.fromhex(digest)))
        stored["jobs"] = {key: tuple(at) for key, at in stored.get("jobs", {}).items()}
        stored["trusted"] = [(start, end) for start, end in stored.get("trusted", [])]
        return Standing(**stored)

    def put_standing(self, partition: int, standing: Standing) -> None:
        """The verification of a partition stands there."""
        stored = asdict(standing)
        if standing.sealed is not None:
            stored["sealed"] = [*standing.sealed[:-1], standing.sealed.digest.hex()]
        query = "INSERT OR REPLACE INTO standings VALUES (?, ?)"
        self.rows.execute(query, (partition, orjson.dumps(stored).decode()))
