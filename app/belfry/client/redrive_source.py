"""Sources of a redrive: the protocol of a source, and the counts of its records.

`Redrive` reads a topic, sends records again and knows nothing of their meaning. A source knows the
meaning: which records are asked for, how a sent one is marked, and which records to write for it.

    refused requests (`refusals.py`)   belfry.rejected/0     42 refusal of R    57 mark of 42
                                       belfry.schedules/3    R, once more
    fired events (`refired.py`)        belfry.fired.demo/0   41 event E         57 E, its own mark

A mark lies in the partition of the record that it marks, behind it, and is written in one
transaction with the sent record. So a reader of a whole partition knows which records a redrive of
another process has left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypedDict

from confluent_kafka import Message

from belfry.client.errors import BelfryError, Unavailable
from belfry.wire.record import Headers

Place = tuple[int, int]


# Digits of the largest offset.
_MOST_DIGITS: Final = 19


def offset_of(digits: str) -> int | None:
    """The offset that a mark names, as belfry writes it; None for anything else.

    Anybody who writes to a topic may write a false mark: digits of other scripts, and more of them
    than Python reads, are no offset.
    """
    is_offset = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
    return int(digits) if is_offset else None


class Resent(NamedTuple):
    """A record to be written: `partition` is None where its key says which."""

    topic: str
    key: Any
    value: Any
    headers: Headers
    partition: int | None = None


class RedriveOptions(TypedDict, total=False):
    """How records are sent again."""

    per_second: int
    """Records a second (100)."""
    told: Callable[[int], None]
    """Called with the number that has been sent so far."""
    at_most: int
    """So many of them (all)."""
    at_most_s: float
    """Seconds of sending after which no further transaction begins (none)."""


class RedriveSource(Protocol):
    """A source of records to send again: its topic, and the records that are written for each."""

    topic: str
    from_ms: int

    def marked(self, headers: Headers) -> int | None:
        """The offset, in the same partition, of the record that this one marks."""

    def wanted(self, at_ms: int, headers: Headers) -> tuple[str, str | None] | None:
        """By what a record counts, and why it cannot be sent again; None for one not asked for."""

    def again(self, message: Message, headers: Headers) -> list[Resent]:
        """The records to write in one transaction, to send a record again and to mark it."""


@dataclass(slots=True)
class RedriveCount:
    """Counts of a range: `codes` of records to send, `redriven` ones, and `stuck` ones.

    For events `codes` has the ids of their schedules.  `stuck` counts by reason: ``cut``
    (belfry.rejected has not all of it), ``elsewhere`` (it came from no topic of requests).
    `places` are partition and offset of the records to send.
    """

    codes: Counter[str] = field(default_factory=Counter)
    redriven: int = 0
    stuck: Counter[str] = field(default_factory=Counter)
    places: list[Place] = field(default_factory=list, repr=False)


class AnotherRedrive(Unavailable):
    """Another redrive has begun, which ended this one; sent records are marked."""


class TooMuchToRedrive(BelfryError):
    """More records lie in the range, and behind it, than were to be looked at."""

    def __init__(self, most: int) -> None:
        super().__init__(f"More than {most} records lie from the begin of the range on.")
        self.most = most
