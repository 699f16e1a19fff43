"""Who is in the group: what a member says of itself, and all members with what each of them got.

A member says what it is and holds (`MemberStanding`), as JSON in its metadata.  The roster is the
sum of what all say and what each was told; the broker that keeps the group tells it to whoever
asks.  Members of format 1 do not ask, so the leader sends them the whole of it.  Fields that a
reader does not know are passed over, and what cannot be read at all counts as a plain member, so
that versions can stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from belfry.balance.members import Member

# Of the roster as it travels to members of format 1.
FORMAT: Final = 1
STANDING_FORMAT: Final = 2
BEAT_MS: Final = 300
BEAT_MS_PER_PARTITION: Final = 25
BEATS_OF_SILENCE: Final = 3


@dataclass(frozen=True, slots=True)
class MemberStanding:
    """What a member says of itself."""

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
    format: int = STANDING_FORMAT

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
        )


@dataclass(frozen=True, slots=True)
class Seat:
    """One worker of the group."""

    worker: str
    version: str = ""
    http: str = ""
    weight: int = 1
    rack: str = ""
    leaving: bool = False
    owns: tuple[int, ...] = ()
    stands_by: tuple[int, ...] = ()


def seat_of(standing: MemberStanding, owns: Iterable[int], stands_by: Iterable[int]) -> Seat:
    """A member and what it got."""
    return Seat(
        standing.worker,
        standing.version,
        standing.http,
        standing.weight,
        standing.rack,
        standing.leaving,
        tuple(owns),
        tuple(stands_by),
    )


@dataclass(frozen=True, slots=True)
class Roster:
    """Who owns what and who stands by."""

    seats: tuple[Seat, ...] = ()

    def encode(self) -> bytes:
        """As it travels."""
        return orjson.dumps({"format": FORMAT, "seats": [asdict(seat) for seat in self.seats]})

    def seat(self, worker: str) -> Seat:
        """A worker's seat; one without partitions for a worker that is not there."""
        return next((seat for seat in self.seats if seat.worker == worker), Seat(worker))

    def owner(self, partition: int) -> Seat | None:
        """Who was given a partition."""
        return next((seat for seat in self.seats if partition in seat.owns), None)

    def stood_by(self) -> set[int]:
        """Partitions that have a standby."""
        return {partition for seat in self.seats for partition in seat.stands_by}

    def rank(self, worker: str, partition: int) -> int:
        """How many standbys of a partition come before this one."""
        standing = [seat.worker for seat in self.seats if partition in seat.stands_by]
        return standing.index(worker) if worker in standing else len(standing)

    def others(self, worker: str) -> bool:
        """Whether anybody else could take partitions over."""
        return any(seat.worker != worker and not seat.leaving for seat in self.seats)


def beat_ms(partitions: int) -> int:
    """How often an owner of so many partitions commits, where that is its only sign of life."""
    return max(BEAT_MS, BEAT_MS_PER_PARTITION * partitions)


def read_standing(told: bytes, name: str) -> MemberStanding:
    """What a member said; a plain member where it said nothing that can be read."""
    found = {"format": 1, **read_object(told)}
    owns = found.get("owns")
    kept = {int(key): int(epoch) for key, epoch in owns.items()} if isinstance(owns, dict) else {}
    standing: MemberStanding = _made(
        MemberStanding, {"worker": name, **found, "owns": kept}, ("warm", "cannot")
    )
    return standing


def read_roster(told: bytes) -> Roster:
    """The whole roster, as a member of format 1 is told it; an empty one where there is none."""
    seats = read_object(told).get("seats")
    rows: Iterable[dict[str, Any]] = seats if isinstance(seats, list) else ()
    return Roster(tuple(_made(Seat, row, ("owns", "stands_by")) for row in rows))


def read_object(told: bytes) -> dict[str, Any]:
    """A JSON object; an empty one where it is none."""
    try:
        found = orjson.loads(told)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _made(kind: Any, given: dict[str, Any], lists: tuple[str, ...]) -> Any:
    """One of the classes above from what it knows of a dictionary."""
    known = {key: value for key, value in given.items() if key in kind.__slots__}
    return kind(**{**known, **{key: tuple(known.get(key) or ()) for key in lists}})
