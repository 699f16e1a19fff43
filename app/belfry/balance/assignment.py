"""The leader's answer to one member: its own part of the assignment, and no other part.

The group's record in Kafka holds the assignments of all members.  Each assignment has only the
member's own part, so the record grows with members and partitions, and not with their product.  A
member that needs the parts of others asks the group itself (`assignment_map.py`).

Kafka's own part of the assignment says which partitions a member owns.  This part says what a
member needs at once, without asking: the owners that it stands by for, and who listens to it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import orjson

from belfry.balance.assignment_map import (
    AssignmentMap,
    MemberMetadata,
    read_assignment_map,
    read_numbered,
    read_numbers,
    read_object,
)
from belfry.balance.members import Share, able

FORMAT: Final = 2
# A member whose metadata have this format or a later one reads its own part.
READS_OWN_PART: Final = 2
NO_HEARTBEAT: Final = -1


@dataclass(frozen=True, slots=True)
class Watched:
    """An owner that a member stands by for.

    `ranks` are the partitions, each with the number of standbys that come before this one.
    `heartbeat` is the partition under which the owner keeps its heartbeat.  It is `NO_HEARTBEAT`
    for an owner that shows by commits that it lives; `owns` is the number of partitions that it has
    to commit.
    """

    worker: str
    owns: int = 0
    heartbeat: int = NO_HEARTBEAT
    ranks: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A member's own part: owners that it watches, and partitions that have to commit for others.

    `heartbeat` is the partition of this member's own heartbeat.  `others` says whether another
    member could take its partitions over.
    """

    others: bool = False
    heartbeat: int = NO_HEARTBEAT
    commits_for: tuple[int, ...] = ()
    watches: tuple[Watched, ...] = ()

    def encode(self) -> bytes:
        """The assignment as bytes of JSON."""
        told = {"format": FORMAT, **asdict(self)}
        return orjson.dumps(told, option=orjson.OPT_NON_STR_KEYS)

    @property
    def stands_by(self) -> tuple[int, ...]:
        """The partitions that the member stands by for."""
        return tuple(sorted(p for each in self.watches for p in each.ranks))

    def owner(self, partition: int) -> Watched | None:
        """The owner of a partition that the member stands by for."""
        return next((each for each in self.watches if partition in each.ranks), None)


def reads_own_part(member_metadata: MemberMetadata) -> bool:
    """Whether a member understands its own part; otherwise it gets the whole assignment map."""
    return member_metadata.format >= READS_OWN_PART


def own_parts(
    metadata_of: Mapping[str, MemberMetadata], found: Mapping[str, Share]
) -> dict[str, Assignment]:
    """Each member's own part, by the names of the shares."""
    owner_of = {p: name for name, share in found.items() for p in share.owns}
    ranked = _standbys(found)
    beating = {name: _heartbeat(metadata_of[name], share, ranked) for name, share in found.items()}
    watches: dict[str, dict[str, dict[int, int]]] = {name: {} for name in found}
    commits_for: dict[str, set[int]] = {name: set() for name in found}
    for partition, names in ranked.items():
        owner = owner_of[partition]
        for rank, name in enumerate(names):
            watches[name].setdefault(owner, {})[partition] = rank
            if beating[owner] == NO_HEARTBEAT or not metadata_of[name].heartbeats:
                commits_for[owner].add(partition)
    staying = {each.name for each in able([m.member(name) for name, m in metadata_of.items()])}
    return {
        name: Assignment(
            bool(staying - {name}),
            beating[name],
            tuple(sorted(commits_for[name])),
            tuple(
                Watched(metadata_of[owner].worker, len(found[owner].owns), beating[owner], ranks)
                for owner, ranks in watches[name].items()
            ),
        )
        for name in found
    }


def _heartbeat(member_metadata: MemberMetadata, share: Share, listened: Container[int]) -> int:
    """A member's first partition that has a standby: no two members own the same one."""
    if not member_metadata.heartbeats:
        return NO_HEARTBEAT
    return min((p for p in share.owns if p in listened), default=NO_HEARTBEAT)


def _standbys(found: Mapping[str, Share]) -> dict[int, list[str]]:
    """The standbys of each partition, in the order in which they may take it over."""
    ranked: dict[int, list[str]] = {}
    for name, share in found.items():
        for partition in share.stands_by:
            ranked.setdefault(partition, []).append(name)
    return ranked


def of_map(assignment_map: AssignmentMap, worker: str) -> Assignment:
    """A member's own part, from the whole map of a leader that sends it to all members."""
    mine = assignment_map.entry(worker)
    watched: dict[str, Watched] = {}
    for partition in mine.stands_by:
        owner = assignment_map.owner(partition)
        if owner is not None:
            known = watched.get(owner.worker, Watched(owner.worker, len(owner.owns)))
            ranks = {**known.ranks, partition: assignment_map.rank(worker, partition)}
            watched[owner.worker] = replace(known, ranks=ranks)
    return Assignment(
        assignment_map.others(worker),
        commits_for=tuple(sorted(assignment_map.stood_by() & set(mine.owns))),
        watches=tuple(watched.values()),
    )


def read_answer(told: bytes, worker: str) -> tuple[Assignment, AssignmentMap | None]:
    """The leader's answer to a member, and the assignment map if it was sent as a whole."""
    found = read_object(told)
    if "watches" not in found:
        assignment_map = read_assignment_map(told)
        return of_map(assignment_map, worker), assignment_map
    return Assignment(
        bool(found.get("others")),
        _whole(found.get("heartbeat"), NO_HEARTBEAT),
        read_numbers(found.get("commits_for")),
        tuple(_watched(found["watches"])),
    ), None


def _watched(told: Any) -> Iterator[Watched]:
    for row in told if isinstance(told, list) else ():
        if isinstance(row, dict):
            yield Watched(
                str(row.get("worker", "")),
                _whole(row.get("owns"), 0),
                _whole(row.get("heartbeat"), NO_HEARTBEAT),
                read_numbered(row.get("ranks")),
            )


def _whole(told: Any, otherwise: int) -> int:
    return told if type(told) is int else otherwise
