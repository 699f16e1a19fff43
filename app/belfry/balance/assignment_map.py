"""The members of the group: the statement of each, and all of them with their partitions.

A member states its properties and its partitions (`MemberMetadata`), as JSON.  The assignment map
is the sum of all statements and all answers; the broker that keeps the group sends it to every
member that asks.  Members of format 1 do not ask, so the leader sends them the whole map.  A reader
ignores fields that it does not know, and a member whose statement cannot be read at all counts as a
plain member, so that versions can run side by side.

Such a statement is never an error: a rebalance with a member that cannot be understood must still
give every partition an owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from belfry.balance.members import Member

# The format of the assignment map that is sent to members of format 1.
FORMAT: Final = 1
LISTS: Final = ("owns", "stands_by", "held")
_KINDS: Final[dict[str, type]] = {
    **dict.fromkeys(("worker", "version", "http", "rack"), str),
    **dict.fromkeys(("weight", "format"), int),
    **dict.fromkeys(("leaving", "unfit", "heartbeats"), bool),
}
METADATA_FORMAT: Final = 2
IDLE_COMMIT_MS: Final = 300
IDLE_COMMIT_MS_PER_PARTITION: Final = 25
MISSED_COMMITS: Final = 3


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """The statement of a member.

    `owns` has the epoch of each ownership, `warm` the partitions that it follows closely enough.
    `http` is the address under which other members reach it, empty where there is none.
    """

    worker: str
    version: str = ""
    http: str = ""
    weight: int = 1
    rack: str = ""
    leaving: bool = False
    owns: Mapping[int, int] = field(default_factory=dict)
    warm: tuple[int, ...] = ()
    # Partitions with schedules that it cannot fire.
    cannot: tuple[int, ...] = ()
    # Whether it keeps a heartbeat, and judges others by theirs.
    heartbeats: bool = False
    format: int = METADATA_FORMAT
    # Whether it leaves because it cannot do its work, and not because it stops.
    unfit: bool = False

    def encode(self) -> bytes:
        """As it travels."""
        return orjson.dumps(asdict(self), option=orjson.OPT_NON_STR_KEYS)

    def member(self, name: str) -> Member:
        """The member that the assignment is computed with."""
        return Member(
            name,
            self.weight,
            self.rack,
            self.leaving,
            dict(self.owns),
            frozenset(self.warm),
            frozenset(self.cannot),
            self.unfit,
        )


@dataclass(frozen=True, slots=True)
class AssignedMember:
    """One worker of the group; `held` are the partitions that it owned when it joined."""

    worker: str
    version: str = ""
    http: str = ""
    weight: int = 1
    rack: str = ""
    leaving: bool = False
    owns: tuple[int, ...] = ()
    stands_by: tuple[int, ...] = ()
    held: tuple[int, ...] = ()


def assigned_member_of(
    member_metadata: MemberMetadata, owns: Iterable[int], stands_by: Iterable[int]
) -> AssignedMember:
    """A member with its assigned partitions."""
    return AssignedMember(
        member_metadata.worker,
        member_metadata.version,
        member_metadata.http,
        member_metadata.weight,
        member_metadata.rack,
        member_metadata.leaving,
        tuple(owns),
        tuple(stands_by),
        # A partition that the member is still taking over has no epoch yet.
        tuple(partition for partition, epoch in member_metadata.owns.items() if epoch >= 0),
    )


@dataclass(frozen=True, slots=True)
class AssignmentMap:
    """The owners and standbys of the whole group."""

    entries: tuple[AssignedMember, ...] = ()

    def encode(self) -> bytes:
        """As it travels."""
        return orjson.dumps({"format": FORMAT, "seats": [asdict(entry) for entry in self.entries]})

    def entry(self, worker: str) -> AssignedMember:
        """A worker's entry; for an unknown worker one without partitions."""
        return next(
            (entry for entry in self.entries if entry.worker == worker), AssignedMember(worker)
        )

    def owner(self, partition: int) -> AssignedMember | None:
        """The member that a partition was assigned to."""
        return next((entry for entry in self.entries if partition in entry.owns), None)

    def stood_by(self) -> set[int]:
        """Partitions that have a standby."""
        return {partition for entry in self.entries for partition in entry.stands_by}

    def rank(self, worker: str, partition: int) -> int:
        """How many standbys of a partition come before this one."""
        standbys = [entry.worker for entry in self.entries if partition in entry.stands_by]
        return standbys.index(worker) if worker in standbys else len(standbys)

    def others(self, worker: str) -> bool:
        """Whether another member could take partitions over."""
        return any(entry.worker != worker and not entry.leaving for entry in self.entries)


def idle_commit_ms(partitions: int) -> int:
    """How often an owner of so many partitions commits, where that is its only sign of life."""
    return max(IDLE_COMMIT_MS, IDLE_COMMIT_MS_PER_PARTITION * partitions)


def read_metadata(told: bytes, name: str) -> MemberMetadata:
    """The statement of a member; a plain member where it cannot be read."""
    found = read_object(told)
    said = {**_readable(found, ("warm", "cannot")), "owns": read_numbered(found.get("owns"))}
    member_metadata: MemberMetadata = _made(MemberMetadata, {"worker": name, "format": 1, **said})
    return member_metadata


def read_assignment_map(told: bytes) -> AssignmentMap:
    """The whole map, as it is sent to a member of format 1; an empty one where there is none."""
    entries = read_object(told).get("seats")
    rows = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    named = [row for row in rows if isinstance(row.get("worker"), str)]
    return AssignmentMap(tuple(_made(AssignedMember, _readable(row, LISTS)) for row in named))


def read_object(told: bytes) -> dict[str, Any]:
    """A JSON object; an empty one where the bytes are not one."""
    try:
        found = orjson.loads(told)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def read_numbers(told: Any) -> tuple[int, ...]:
    """A list of partition numbers; empty where the value is not such a list."""
    whole = isinstance(told, list) and all(type(each) is int and each >= 0 for each in told)
    return tuple(told) if whole else ()


def read_numbered(told: Any) -> dict[int, int]:
    """Numbers by partition; empty where the value is not such an object."""
    if not isinstance(told, dict):
        return {}
    whole = all(key.isdecimal() and type(each) is int for key, each in told.items())
    return {int(key): each for key, each in told.items()} if whole else {}


def _readable(given: dict[str, Any], lists: tuple[str, ...]) -> dict[str, Any]:
    """The fields with values of the right type; others are left out, as if they were absent."""
    found = {name: given[name] for name, kind in _KINDS.items() if type(given.get(name)) is kind}
    if found.get("weight", 0) < 0:
        del found["weight"]
    return {**found, **{name: read_numbers(given.get(name)) for name in lists}}


def _made(kind: Any, given: dict[str, Any]) -> Any:
    """An object of one of the classes above, from the fields that it knows in a dictionary."""
    return kind(**{key: value for key, value in given.items() if key in kind.__slots__})
