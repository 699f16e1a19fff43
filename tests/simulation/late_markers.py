"""Markers that come late: a transaction has ended, and one partition does not hear of it for long.

    EndTxn answered ── markers in all other partitions ────────────── the last marker
                       └ its transactional id can begin nothing, and nobody can fence it

A broker that gets no time, or is away, keeps the coordinator from writing a marker.  So the steps
of the partition that the id belongs to stand still, whoever owns it.  Nothing else does, and as
soon as the marker has come all goes on (I53).

    alone     other partitions fire in time
    at once   this one fires soon after the marker
    told      what is long in coming, in the log
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.broker import Broker, Log, Txn
from tests.simulation.hanging import CHANGELOG, FIRED, SOON_MS

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition
    from tests.simulation.world import World

# How late they come: later than a step waits (8 s), than a fence (30 s), or by minutes.
LATE_MS: Final = (9_500.0, 35_000.0, 150_000.0)
# What is late by so much has to be told: an owner's transaction is taken for one that lasts before.
TOLD_MS: Final = 30_000.0
OWNERS: Final = "belfry."


@dataclass(frozen=True, slots=True)
class Late:
    """One marker: of the id of which partition, where, from when until when (epoch ms)."""

    partition: int
    place: tuple[str, int]
    since_ms: int
    until_ms: int


@dataclass(slots=True)
class LateMarkers:
    """The late markers of one world."""

    broker: Broker
    random: Random
    # How many are to come, and after how many decisions the next.
    armed: int = 0
    skips: int = 0
    late: list[Late] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.broker.slows_marker = self.delay_ms

    def arm(self) -> None:
        """Some transaction soon gets a marker late."""
        self.armed += 1
        self.skips = self.random.choice((0, 1, 3, 9))

    def delay_ms(self, txn: Txn) -> tuple[Log, float] | None:
        """In which partition the marker of a transaction that is decided now comes late."""
        name = txn.producer.removeprefix(OWNERS).removesuffix(".b")
        if not (self.armed and name.isdigit()):
            return None
        if self.skips:
            self.skips -= 1
            return None
        begin = self.random.choice((CHANGELOG, FIRED))
        places = [log for log in txn.touched if log.topic.startswith(begin) and txn in log.open]
        if not places:
            return None
        self.armed -= 1
        log, late_ms = self.random.choice(places), self.random.choice(LATE_MS)
        now_ms = self.broker.now_ms()
        until_ms = now_ms + round(late_ms)
        self.late.append(Late(int(name), (log.topic, log.partition), now_ms, until_ms))
        where = "the changelog" if log.topic == CHANGELOG else "an output"
        self.struck.append(f"a marker late in {where}")
        return log, late_ms

    def heal(self) -> None:
        """Faults are over; what is on its way goes on coming late."""
        self.armed = 0

    @property
    def left_ms(self) -> float:
        """How long until all have come."""
        return max((each.until_ms for each in self.late), default=0) - self.broker.now_ms()


def check_late(
    world: World, definitions: Mapping[str, Definition], said: Counter[str]
) -> Iterator[str]:
    """What is wrong while markers are late; `said` are lines of the workers' log."""
    markers = world.late_markers
    if markers is None:
        return
    for name, definition in definitions.items():
        for step, entry in definition.fired_in:
            known_ms = definition.accepted_in.rows[-1].timestamp_ms
            free_ms = _free_ms(markers.late, step.partition, max(definition.due_ms, known_ms))
            if entry.timestamp_ms > free_ms + SOON_MS:
                late_ms = entry.timestamp_ms - free_ms
                yield f"I53 {name} fired {late_ms} ms late, in partition {step.partition}"
    for each in markers.late:
        topic, partition = each.place
        if each.until_ms - each.since_ms < TOLD_MS:
            continue
        if not any(f"stays open in {topic}/{partition}:" in line for line in said):
            yield f"I53 nobody said that a marker is missing in {topic}/{partition}"


def _free_ms(late: list[Late], partition: int, due_ms: int) -> int:
    """When a partition could fire what is due: behind markers that kept it from that."""
    for each in sorted(late, key=lambda each: each.since_ms):
        if each.partition == partition and each.since_ms <= due_ms + SOON_MS:
            due_ms = max(due_ms, each.until_ms)
    return due_ms
