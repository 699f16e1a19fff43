"""The memory of a verification between two records: schedules, fires, and lifecycle events.

`Memory` is a port.  The command has a file of SQLite behind it, so the process stays small however
much waits (`cli/verify_memory.py`); tests have dictionaries.

A verification goes on round after round, so it forgets facts that have served their purpose: a fire
once it is settled, a schedule once no record of it is left, a lifecycle event once its fire was
seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple, Protocol

from belfry.verification.findings import Spot
from belfry.verification.move_memory import MoveMemory


class Stands(IntEnum):
    """The state of a schedule; GONE is one that was cancelled, whose events must not come out."""

    WAITS = 0
    PAUSED = 1
    OVER = 2
    GONE = 3


class Remembered(NamedTuple):
    """A schedule as the last row of it said; `offset` is where that lies.

    `expected_ms` is when it should fire: its due instant, or that of the row where it is later.
    `group` is the short name of its group's lock, 0 for none.
    """

    stands: Stands
    kind: int
    due_ms: int
    nominal_ms: int
    life: int
    version: int
    occurrence: int
    offset: int
    expected_ms: int = 0
    tenant: str = ""
    group: int = 0


class FiredEntry(NamedTuple):
    """A record of an output topic; `identity` are the 16 bytes of its fire id."""

    identity: bytes
    schedule_id: bytes
    nominal_ms: int
    occurrence: int
    spot: Spot
    timestamp_ms: int


class ToldFire(NamedTuple):
    """A lifecycle event of the outcome FIRED."""

    identity: bytes
    schedule_id: bytes
    spot: Spot
    timestamp_ms: int


def short(name: bytes) -> int:
    """The key of a schedule's name in the memory: 63 bits of a digest.

    Eight bytes in place of a name of up to 356.  Of a hundred million names two have the same
    number with a chance of one in two thousand.
    """
    return int.from_bytes(blake2b(name, digest_size=8).digest()) >> 1


class Memory(Protocol):
    """The memory; a round is one reading of all topics up to their ends."""

    @property
    def moves(self) -> MoveMemory:
        """The memory of moves of key groups."""

    def waiting(self, partition: int) -> Iterable[tuple[str, int, int]]:
        """Tenants with pending schedules in a partition: how many, and the offset of the oldest
        row.
        """

    def schedule(self, partition: int, name: int) -> Remembered | None:
        """The facts on a schedule of a partition, by its short name."""

    def schedules(self, name: int) -> list[Remembered]:
        """The same of all partitions."""

    def put(self, partition: int, name: int, known: Remembered | None) -> None:
        """Remember a schedule, or forget it."""

    def overdue(self, partition: int, until_ms: int) -> Iterable[tuple[int, Remembered]]:
        """Schedules that wait, should have fired by then, and were not told of; oldest first."""

    def tell(self, partition: int, names: Iterable[int]) -> None:
        """These were told of; each is again once it has another row."""

    def lock(self, partition: int, fire: int, locks: Iterable[int]) -> None:
        """A fire, by its short name, holds these locks, and no others any more."""

    def is_locked(self, partition: int, lock: int) -> bool:
        """Whether a fire holds this lock."""

    def add_fire(self, fire: FiredEntry, at_round: int) -> FiredEntry | None:
        """Remember a fire; the one that has its id already, which then stays."""

    def fire(self, identity: bytes) -> FiredEntry | None:
        """The fire of this id."""

    def fires(self, schedule_id: bytes, first: int, last: int) -> list[FiredEntry]:
        """Fires that belong to no transaction yet, of schedules of this id, by their numbers."""

    def extras(self, since_ms: int, until_ms: int) -> Iterable[FiredEntry]:
        """Extra fires (number -1) that belong to no transaction yet, by their timestamps."""

    def settle(self, identities: Iterable[bytes]) -> None:
        """These fires belong to a transaction, or need none."""

    def lose(self, identity: bytes) -> None:
        """A transaction says that this fired, and it was reported to be in no output."""

    def is_lost(self, identity: bytes) -> bool:
        """Whether that was reported."""

    def unsettled(self, before_round: int) -> list[FiredEntry]:
        """Fires that came in an earlier round and still belong to no transaction."""

    def add_told(self, told: ToldFire, at_round: int) -> ToldFire | None:
        """Remember a report on a fire; returns an earlier report on it, which then stays."""

    def told_without_fire(self, before_round: int) -> list[ToldFire]:
        """Reports of an earlier round on fires that were not seen."""

    def forget_told(self, identities: Iterable[bytes]) -> None:
        """Report these no more."""

    def add_once(self, what: str, spot: Spot, timestamp_ms: int) -> tuple[Spot, int] | None:
        """Remember a record that may come once, such as a refusal; an earlier place and time."""
