"""Findings of a verification: breaches of the specification, each with its place.

A finding has the found and the expected value, and each kind has a code that stays. A promise that
cannot be checked is not a finding: `CheckCounts` counts it.

    lost   belfry.changelog/3@8211   shop/order-1 fired, due at 1796115600000, and is in no output
                                     expected: an event with the id f339810d…

Five sorts of promises are checked: manifests follow one another (`number` … `watermark`), a
manifest agrees with its rows (`pending`, `count`, `digest`, `torn`), due schedules have fired
(`overdue`), schedules that left with a key group have come (`not_arrived` … `left_behind`), and
each fire has its event, once and in time (all others).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Breach(StrEnum):
    """Kinds of findings; the values are stable codes."""

    STRANGER = "stranger"
    NUMBER = "number"
    EPOCH = "epoch"
    POSITION = "position"
    WATERMARK = "watermark"
    PENDING = "pending"
    COUNT = "count"
    DIGEST = "digest"
    TORN = "torn"
    EARLY = "early"
    UNASKED = "unasked"
    OVERDUE = "overdue"
    LOST = "lost"
    DOUBLED = "doubled"
    CANCELLED = "cancelled"
    UNTOLD_FIRE = "told_without_fire"
    TOLD_TWICE = "told_twice"
    REFUSED_TWICE = "refused_twice"
    REDRIVEN_TWICE = "redriven_twice"
    NOT_ARRIVED = "not_arrived"
    ARRIVED_TWICE = "arrived_twice"
    ARRIVED_CHANGED = "arrived_changed"
    LEFT_BEHIND = "left_behind"


MEANINGS = {
    Breach.STRANGER: "A record of the changelog that no worker wrote; it counts for nothing.",
    Breach.NUMBER: "The number of a transaction does not follow the one before.",
    Breach.EPOCH: "The epoch of an owner went back.",
    Breach.POSITION: "The position of the input went back.",
    Breach.WATERMARK: "The watermark went back.",
    Breach.PENDING: "Another number of schedules waits than the manifest says.",
    Breach.COUNT: "Another number of events fired than the manifest says.",
    Breach.DIGEST: "The events that fired are not those of the manifest's digest.",
    Breach.TORN: "Rows of a committed transaction have no manifest.",
    Breach.EARLY: "An event fired before its instant.",
    Breach.UNASKED: "An event fired, and no schedule asked for it.",
    Breach.OVERDUE: "A schedule was due, and has neither fired nor a reason to wait.",
    Breach.LOST: "An event is committed as fired, and is not in its output topic.",
    Breach.DOUBLED: "An event is in the output topics twice.",
    Breach.CANCELLED: "An event of a schedule that had been cancelled or replaced is in an output.",
    Breach.UNTOLD_FIRE: "A lifecycle event tells of a fire that is in no output topic.",
    Breach.TOLD_TWICE: "Two lifecycle events tell of one fire.",
    Breach.REFUSED_TWICE: "A request was refused twice.",
    Breach.REDRIVEN_TWICE: "A redrive sent an event or a refused request again twice.",
    Breach.NOT_ARRIVED: "A schedule left with its key group, and did not come to where it went.",
    Breach.ARRIVED_TWICE: "A schedule came with its key group twice, or had not left before.",
    Breach.ARRIVED_CHANGED: "A schedule came with its key group as another one than had left.",
    Breach.LEFT_BEHIND: "A schedule waits in a partition that has given its key group away.",
}


class Spot(NamedTuple):
    """Where a record lies; as text it is ``topic/partition@offset``."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}@{self.offset}"


class Breached(NamedTuple):
    """A finding: its kind, the record that shows it, the found and the expected value."""

    breach: Breach
    spot: Spot
    found: str
    expected: str


@dataclass(slots=True)
class CheckCounts:
    """Counts of checked records, and of unchecked ones by the reason in words."""

    transactions: int = 0
    checked: int = 0
    fires: int = 0
    digests: int = 0
    outputs: int = 0
    told: int = 0
    refused: int = 0
    compacted: int = 0
    output_gone: int = 0
    output_unread: int = 0
    order_unknown: int = 0
    before_begin: int = 0
    at_least_once: int = 0
    hidden: int = 0
    recoveries: int = 0
    copies: int = 0
    copies_alone: int = 0
    held: int = 0
    locked: int = 0
    moving: int = 0
    moves: int = 0
    moves_compacted: int = 0
    moves_under_way: int = 0
    elsewhere: int = 0
    told_anew: int = 0
    marks_unread: int = 0
    undecrypted: int = 0

    def unchecked(self) -> dict[str, int]:
        """Unchecked records: reason and number, without zeros."""
        found = {
            "transactions that compaction has thinned out": self.compacted,
            "fires older than what their output topic still holds": self.output_gone,
            "fires to topics that were not read": self.output_unread,
            "transactions whose order of fires no row tells": self.order_unknown,
            "output records older than what the changelog still tells": self.before_begin,
            "output records of tenants whose events may come twice": self.at_least_once,
            "output records that a transaction may explain which an open one hides": self.hidden,
            "events that a redrive sent again, and that are not there besides": self.copies_alone,
            "transactions of another cluster, which a mirror carried": self.elsewhere,
            "lifecycle events and refusals that were told in both clusters, by a take-over without"
            " the source": self.told_anew,
            "transactions of which nobody can say whether a mirror carried them, for its marks"
            " cannot be read": self.marks_unread,
            "schedules that were paused for lack of the key of their payloads, for whether a key"
            " would have opened them is in no topic": self.undecrypted,
            "due schedules whose tenant is paused, limited, or without a topic": self.held,
            "due schedules behind a fire that is not acknowledged": self.locked,
            "due schedules whose key group is on its way to another partition": self.moving,
            "moves of key groups that compaction has thinned out": self.moves_compacted,
            "moves of key groups that are not over yet": self.moves_under_way,
        }
        return {why: number for why, number in found.items() if number}
