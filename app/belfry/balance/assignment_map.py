"""The members of the group: what each says of itself, and all of them with what each one got.

A member says what it is and holds (`MemberMetadata`), as JSON.  The assignment map is the sum of
what all say and what each was told; the broker that keeps the group tells it to every member that
asks.  Members of format 1 do not ask, so the leader sends them the whole of it.  Fields that a
reader does not know are passed over, and a member whose words cannot be read at all counts as a
plain member, so that versions can stand side by side.

That is never an error: a rebalance in which one member cannot be understood must still give every
partition an owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from belfry.balance.members import Member

# Of the assignment map as it travels to members of format 1.
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
    """What a member says of itself.

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
    # Partitions that hold schedules which it cannot fire.
    cannot: tuple[int, ...] = ()
    # Whether it keeps a heartbeat, and judges others by theirs.
    heartbeats: bool = False
    format: int = METADATA_FORMAT
    # Whether it is leaving because it cannot do its work, and not because it stops.
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
    """One worker of the group; `held` is what it said in joining that it owned by then."""

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
    """A member and what it got."""
    return AssignedMember(
        member_metadata.worker,
        member_metadata.version,
        member_metadata.http,
        member_metadata.weight,
        member_metadata.rack,
        member_metadata.leaving,
        tuple(owns),
        tuple(stands_by),
        # What is only on its way there has no epoch yet.
        tuple(partition for partition, epoch in member_metadata.owns.items() if epoch >= 0),
    )


@dataclass(frozen=True, slots=True)
class AssignmentMap:
    """Who owns what and who stands by."""

    entries: tuple[AssignedMember, ...] = ()

    def encode(self) -> bytes:
        """As it travels."""
        return orjson.dumps({"format": FORMAT, "seats": [asdict(entry) for entry in self.entries]})

    def entry(self, worker: str) -> AssignedMember:
        """A worker's entry; one without partitions for a worker that is not there."""
        return next(
            (entry for entry in self.entries if entry.worker == worker), AssignedMember(worker)
        )

    def owner(self, partition: int) -> AssignedMember | None:
        """Who was given a partition."""
        return next((entry for entry in self.entries if partition in entry.owns), None)

    def stood_by(self) -> set[int]:
        """Partitions that have a standby."""
        return {partition for entry in self.entries for partition in entry.stands_by}

    def rank(self, worker: str, partition: int) -> int:
        """How many standbys of a partition come before this one."""
        standbys = [entry.worker for entry in self.entries if partition in entry.stands_by]
        return standbys.index(worker) if worker in standbys else len(standbys)

    def others(self, worker: str) -> bool:
        """Whether anybody else could take partitions over."""
        return any(entry.worker != worker and not entry.leaving for entry in self.entries)


def idle_commit_ms(partitions: int) -> int:
    """How often an owner of so many partitions commits, where that is its only sign of life."""
    return max(IDLE_COMMIT_MS, IDLE_COMMIT_MS_PER_PARTITION * partitions)


def read_metadata(told: bytes, name: str) -> MemberMetadata:
    """What a member said; a plain member where it said nothing that can be read."""
    found = read_object(told)
    said = {**_readable(found, ("warm", "cannot")), "owns": read_numbered(found.get("owns"))}
    member_metadata: MemberMetadata = _made(MemberMetadata, {"worker": name, "format": 1, **said})
    return member_metadata


def read_assignment_map(told: bytes) -> AssignmentMap:
    """The whole map, as a member of format 1 is told it; an empty one where there is none."""
    entries = read_object(told).get("seats")
    rows = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    named = [row for row in rows if isinstance(row.get("worker"), str)]
    return AssignmentMap(tuple(_made(AssignedMember, _readable(row, LISTS)) for row in named))


def read_object(told: bytes) -> dict[str, Any]:
    """A JSON object; an empty one where it is none."""
    try:
        found = orjson.loads(told)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def read_numbers(told: Any) -> tuple[int, ...]:
    """A list of numbers of partitions; none where it is no such list."""
    whole = isinstance(told, list) and all(type(each) is int and each >= 0 for each in told)
    return tuple(told) if whole else ()


def read_numbered(told: Any) -> dict[int, int]:
    """Numbers by partitions; none where it is no such object."""
    if not isinstance(told, dict):
        return {}
    whole = all(key.isdecimal() and type(each) is int for key, each in told.items())
    return {int(key): each for key, each in told.items()} if whole else {}


def _readable(given: dict[str, Any], lists: tuple[str, ...]) -> dict[str, Any]:
    """What is of the kind that it has to be; the rest is left out, as if it had not been said."""
    found = {name: given[name] for name, kind in _KINDS.items() if type(given.get(name)) is kind}
    if found.get("weight", 0) < 0:
        del found["weight"]
    return {**found, **{name: read_numbers(given.get(name)) for name in lists}}


def _made(kind: Any, given: dict[str, Any]) -> Any:
    """One of the classes above from what it knows of a dictionary."""
    return kind(**{key: value for key, value in given.items() if key in kind.__slots__})
