"""Marks: the state of each partition in the topic `belfry.mirror` of the side that follows.

The mark is written in the transaction that carries records, so it fits the records in the target:
it is neither ahead of them nor behind them. The last mark of a partition counts.

    12:00:00  positions changelog 120, requests 17     the source's offsets to read next
    12:00:01  positions changelog 131, requests 18     in one transaction with the records between
    12:05:00  leaving                                  a take-over has begun: the mirror ends
    12:05:02  taken over                               this side is the active one from here on

An *epoch* counts the take-overs of a pair, on whichever side they were. So the side with the higher
one is the active one, without a comparison of clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import orjson

# The end of a stretch that is not over yet: behind every offset.
GOES_ON: Final = 1 << 62
# The key of all marks; each partition of the topic has its own last one.
MARK_KEY: Final = b"mark"
# The carried topics, by their names without prefix.
CHANGELOG: Final = "changelog"
REQUESTS: Final = "schedules"
KINDS: Final = (CHANGELOG, REQUESTS, "lifecycle", "rejected")
# The topic of marks, by that name.
MARKS: Final = "mirror"


class UnknownMark(ValueError):
    """A mark that this version cannot read; the message says why, and what to do."""


class Activated(NamedTuple):
    """A take-over: when (epoch ms), whether all had been carried, and where the way back begins.

    `begins` are the offsets in this side from which the way back reads, by kind of topic; none if
    the other side may hold records that were not carried.
    """

    at_ms: int
    planned: bool
    begins: dict[str, int]


class MirrorMark(NamedTuple):
    """How far a partition was carried from the source cluster, and whether it was taken over.

    `source` and `changelog` are the ids of the source's cluster and changelog, `into` is that of
    this side's changelog. `positions` are the source's offsets to read next, by kind of topic.
    `whole` says that what lies here ends with a transaction. All that the source had appended by
    `level_ms` (epoch ms) is here. `carried` are the stretches of this side's changelog, from and
    to, that were carried, one for each time that it followed. The rows here go up to `judged`, an
    offset of the source's requests: what was carried from there on is judged here once more. It
    has followed since `began_ms` (epoch ms), and what it carried of requests lies from
    `requests_from` on, an offset of this side: requests before that may be those of another source.
    The rows go up to the source's transaction `number`; 0 for none, or where a release before wrote
    the mark.
    """

    source: str
    changelog: str
    into: str
    epoch: int
    positions: dict[str, int]
    generation: int = 0
    whole: bool = False
    level_ms: int = 0
    leaving: bool = False
    activated: Activated | None = None
    carried: tuple[tuple[int, int], ...] = ()
    judged: int = 0
    began_ms: int = 0
    requests_from: int = 0
    number: int = 0


# The types of fields that are no numbers.
_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("source", "changelog", "into"), str),
    **dict.fromkeys(("whole", "leaving"), bool),
    "positions": dict,
    "carried": tuple,
}


def offsets_behind(ends: Mapping[str, int], positions: Mapping[str, int]) -> int:
    """How many offsets lie between positions and ends of the source, by kind of topic."""
    return sum(max(0, end - positions.get(kind, 0)) for kind, end in ends.items())


def encode_mark(mark: MirrorMark) -> bytes:
    """The mark as it is kept: JSON."""
    activated = mark.activated
    told = mark._asdict() | {"activated": activated and activated._asdict()}
    return orjson.dumps(told)


def decode_mark(value: bytes) -> MirrorMark:
    """The mark in a record; names that this version does not know are passed over.

    `UnknownMark` for a bad one: a mirror that goes on from it would carry records twice, or not at
    all.
    """
    try:
        told = orjson.loads(value)
        activated = told.pop("activated", None)
        known = {name: told[name] for name in MirrorMark._fields if name in told}
        known["carried"] = tuple((start, end) for start, end in told.get("carried", ()))
        if activated is not None:
            known["activated"] = Activated(*(activated[name] for name in Activated._fields))
        mark = MirrorMark(**known)
        _check(mark)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnknownMark(
            f"the last mark in the topic `{MARKS}` is none of a mirror, {value[:60]!r} ({error}):"
            " its writer may write there and is no mirror of this release or one before. Let"
            " nobody else write there, run the newest release, or begin the mirror anew."
        ) from error
    return mark


def _check(mark: MirrorMark) -> None:
    """Raise TypeError for a field of another type."""
    for name, value in mark._asdict().items():
        if (wanted := _TYPES.get(name, int)) is not type(value) and name != "activated":
            raise TypeError(f"{name} is no {wanted.__name__}")
    _check_offsets("positions", mark.positions)
    if not {type(each) for stretch in mark.carried for each in stretch} <= {int}:
        raise TypeError("carried has something else than offsets")
    if mark.activated is not None:
        _check_offsets("begins", mark.activated.begins)
        if (type(mark.activated.at_ms), type(mark.activated.planned)) != (int, bool):
            raise TypeError("activated does not say when, or whether it was planned")


def _check_offsets(name: str, offsets: object) -> None:
    if type(offsets) is not dict or not {type(each) for each in offsets.values()} <= {int}:
        raise TypeError(f"{name} are no offsets by kind of topic")
