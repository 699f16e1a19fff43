"""The objects that a sweep of payloads decides about: a table on disk, so that memory is bounded.

    add       an object that is old enough, or that was put aside before
    claim     digests that something refers to, in any order and as often as it comes
    ─►        claimed objects stay or are put back; the rest goes

A digest that is claimed keeps the objects of all tenants that have it: equal content of two tenants
is rare, and keeping too much harms nobody.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

# KiB that SQLite keeps in memory; the rest lies in a temporary file.
CACHE_KIB: Final = 64 * 1024
_TABLE: Final = """
CREATE TABLE objects (
    digest BLOB, tenant TEXT, size INT, aside INT, claimed INT DEFAULT 0, old INT,
    PRIMARY KEY (digest, tenant, aside)) WITHOUT ROWID
"""


class PayloadSum(NamedTuple):
    """How many objects, and of how many bytes."""

    objects: int
    bytes: int


class PayloadList:
    """Objects by digest; one thread uses it, and it is gone at the end."""

    def __init__(self) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)
        self._rows.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        # A claim is never taken back.
        self._rows.execute("PRAGMA journal_mode = OFF")
        self._rows.execute(_TABLE)
        self._rows.execute("BEGIN")

    def add(self, tenant: str, digest: str, size: int, *, aside: bool, old: bool = True) -> None:
        """Note an object; `aside` says that it was put aside, `old` that it may go from there."""
        given = (bytes.fromhex(digest), tenant, size, aside, old)
        self._rows.execute(
            "INSERT OR REPLACE INTO objects (digest, tenant, size, aside, old)"
            " VALUES (?, ?, ?, ?, ?)",
            given,
        )

    def claim(self, digests: Iterable[str]) -> None:
        """Keep all objects with these digests."""
        self._rows.executemany(
            "UPDATE objects SET claimed = 1 WHERE digest = ?",
            [(bytes.fromhex(each),) for each in digests],
        )

    def moved(self, tenant: str, digest: str, *, aside: bool) -> None:
        """An object lies aside from now on, or no longer; it is not old there."""
        self._rows.execute(
            "UPDATE OR REPLACE objects SET aside = ?, old = 0 WHERE digest = ? AND tenant = ?",
            (aside, bytes.fromhex(digest), tenant),
        )

    def forget(self, tenant: str, digest: str) -> None:
        """An object that was aside is gone."""
        self._rows.execute(
            "DELETE FROM objects WHERE digest = ? AND tenant = ? AND aside",
            (bytes.fromhex(digest), tenant),
        )

    def tally(self, *, aside: bool, claimed: bool) -> PayloadSum:
        """How many there are of a sort."""
        (found,) = self._rows.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM objects"
            " WHERE aside = ? AND claimed = ? AND (old OR claimed)",
            (aside, claimed),
        )
        return PayloadSum(*found)

    def each(self, *, aside: bool, claimed: bool) -> Iterator[tuple[str, str]]:
        """Tenant and digest of those of a sort, which may be moved meanwhile."""
        at = b"", ""
        while True:
            found = self._rows.execute(
                "SELECT digest, tenant FROM objects WHERE aside = ? AND claimed = ?"
                " AND (old OR claimed) AND (digest, tenant) > (?, ?)"
                " ORDER BY digest, tenant LIMIT 1000",
                (aside, claimed, *at),
            ).fetchall()
            if not found:
                return
            for digest, tenant in found:
                yield tenant, digest.hex()
            at = found[-1]
