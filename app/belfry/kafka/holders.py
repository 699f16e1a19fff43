"""A transaction that holds readers back: the facts about it, and the texts for people.

    a stranger's      "a stranger: transactional id 'billing-7', … open … from offset 100 on"
    belfry's own      ends with its owner or by its time-out, so usually nothing is to be done
    hanging           no coordinator has it under way: it hangs, until an operator ends it

The command that ends one writes an abort marker to that partition alone (KIP-664).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.kafka.fetch_position import Where
from belfry.settings import SharedSettings

# States in which the coordinator will end the transaction at some time.
_UNDER_WAY: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})

# The effects if a committed transaction is rolled back: in state, among requests that were passed
# on to their partition, and in topics to which belfry only writes.
_STATE: Final = "events that fired in it fire once more with the same belfry-fire-id"
_PASSED_ON: Final = (
    "requests that it had passed on there are never taken in, and have to be sent again"
)
_WRITTEN_ONLY: Final = (
    "no reader sees its records there: `belfry verify` names the events that are missing then"
)


class Untold(Exception):
    """The brokers do not say whose transactions are open; the message says why."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open in a partition; instants in epoch ms, None if unknown."""

    topic: str
    partition: int
    # Its first offset in this partition: readers stop there.
    start_offset: int
    producer_id: int
    producer_epoch: int
    last_write_ms: int
    transactional_id: str | None = None
    # The coordinator's name of it: Ongoing, PrepareCommit and so on.
    state: str | None = None
    started_ms: int | None = None
    timeout_ms: int | None = None

    @property
    def since_ms(self) -> int:
        """Since when it is open; the last write if the coordinator does not know."""
        return self.last_write_ms if self.started_ms is None else self.started_ms

    @property
    def hangs(self) -> bool:
        """Whether it will not end by itself: no coordinator has it under way."""
        return self.state not in _UNDER_WAY

    def overdue(self, now_ms: float) -> bool:
        """Whether the coordinator should have ended it: it hangs, or its time-out is over."""
        return self.hangs or now_ms - self.since_ms > (self.timeout_ms or 0)

    def is_of(self, app_id: str) -> bool:
        """Whether a producer of the belfry with this group has written it."""
        return self.transactional_id is not None and self.transactional_id.startswith(f"{app_id}.")

    def sentence(self, now_ms: float) -> str:
        """Its producer and its state, for people."""
        who = f"producer {self.producer_id} (epoch {self.producer_epoch})"
        if self.transactional_id is not None:
            who = f"transactional id {self.transactional_id!r}, {who}, state {self.state}"
        held_s = max(0.0, now_ms - self.since_ms) / 1000
        told = f"{who}, open in {self.topic}/{self.partition} from offset {self.start_offset} on"
        told += f", for {held_s:.0f} s"
        if self.transactional_id is None:
            return (
                told + "; no coordinator shows its transactional id: it hangs, or is hidden from us"
            )
        if self.hangs:
            return told + "; its coordinator has ended it, and the marker is missing here"
        return told + f", time-out {(self.timeout_ms or 0) / 1000:.0f} s"

    def abort_command(self, servers: str) -> str:
        """The command of Kafka's own tool that ends it in this partition, for an operator.

        It writes an abort marker to this partition alone (KIP-664), whatever the coordinator has
        decided.
        """
        return (
            f"kafka-transactions.sh --bootstrap-server {servers} abort --topic {self.topic}"
            f" --partition {self.partition} --start-offset {self.start_offset}"
        )


class Told(NamedTuple):
    """What holds a partition back, and what to do about it; for logs, health and the doctor."""

    who: str
    to_do: str


def tell(
    found: Sequence[OpenTransaction], place: Where, settings: SharedSettings, now_ms: float
) -> Told:
    """The first of the open transactions of a partition in words; `found` may be empty.

    A transaction of belfry's own ends by itself, with its owner or by its time-out; a stranger's
    may not. `now_ms` is this machine's clock, epoch ms.
    """
    if not found:
        return untold("no producer has a transaction open there any more", place, settings)
    first, command = found[0], found[0].abort_command(settings.bootstrap_servers)
    if first.is_of(settings.cluster.app_id):
        special = {settings.topic("changelog"): _STATE, settings.topic("schedules"): _PASSED_ON}
        then = special.get(place[0], _WRITTEN_ONLY)
        return Told(
            f"belfry's own: {first.sentence(now_ms)}",
            f"if it stays, Kafka has ended it without its marker; `{command}` ends it as rolled"
            f" back, and if it had been committed, {then}",
        )
    return Told(
        f"a stranger: {first.sentence(now_ms)}",
        f"end that program or let it finish; or roll back what it wrote there: `{command}`",
    )


def untold(why: object, place: Where, settings: SharedSettings) -> Told:
    """The text if the brokers do not name the transaction."""
    topic, partition = place
    return Told(
        f"unknown: {why}",
        f"`kafka-transactions.sh --bootstrap-server {settings.bootstrap_servers} describe-producers"
        f" --topic {topic} --partition {partition}` shows who has a CurrentTransactionStartOffset",
    )
