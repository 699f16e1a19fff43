"""Transactions that hang: open in one partition, and nobody ends them but an operator.

    a stranger's    its coordinator has forgotten it; it lies in the requests, the changelog, the
                    policies, a tenant's own topic, or the topic of deliveries
    an owner's own  a fence has rolled it back, and its marker never comes in the changelog

Readers of committed records stop there.  Nobody ends one before the faults are over and a minute
more has passed: meanwhile belfry goes on where it can, and says what it waits for (I40).

    fired      what was accepted, of a partition whose changelog can be read, however its input is
    taken in   requests of partitions that nothing hangs in
    told       each of them, in the log
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.broker import Broker, Entry, Log, Txn
from tests.simulation.sent import SOURCE

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition
    from tests.simulation.taking import Seen
    from tests.simulation.world import World

CHANGELOG: Final = "belfry.changelog"
TOPICS: Final = (CHANGELOG, SOURCE, SOURCE, "belfry.tenants", "belfry.deliveries")
# So long after the faults' end an operator looks.
LEFT_MS: Final = 60_000.0
# What is due when the faults end, and later, has left so soon.
SOON_MS: Final = 20_000


@dataclass(slots=True)
class Hanging:
    """What hangs in one world."""

    broker: Broker
    random: Random
    open: list[tuple[Log, Txn]] = field(default_factory=list)
    # Where something hung when the faults ended: topic and partition.
    places: set[tuple[str, int]] = field(default_factory=set)
    healed_ms: int = 0
    struck: list[str] = field(default_factory=list)
    # How many of the owners' own may lose a marker still.
    armed: int = 0

    def strange(self) -> None:
        """A stranger's transaction hangs somewhere."""
        own = sorted(each for each in self.broker.topics if each.startswith(f"{SOURCE}."))
        log = self.random.choice(self.broker.topics[self.random.choice((*TOPICS, *own))])
        txn = Txn(f"hangs-{len(self.open)}", 0, self.broker.stage.now_ms)
        log.open[txn] = log.end
        self.broker.append(log, (b"stranger", txn.producer.encode(), None), txn)
        self._keep(log, txn)

    def _keep(self, log: Log, txn: Txn) -> None:
        self.open.append((log, txn))
        own = log.topic.startswith(f"{SOURCE}.")
        where = "an own topic" if own else log.topic.removeprefix("belfry.")
        self.struck.append("a marker missing" if txn.outcome else f"hangs in {where}")

    def loses_marker(self, txn: Txn, log: Log, *, fenced: bool) -> bool:
        """Whether the marker of a transaction that is ended does not come in a partition."""
        if not (self.armed and fenced and log.topic == CHANGELOG and log in txn.touched):
            return False
        self.armed -= 1
        self._keep(log, txn)
        return True

    def heal(self) -> None:
        """Faults are over: what hangs goes on doing so, and nothing else is lost."""
        self.armed = 0
        # A marker that is missing hangs nothing where no record of its transaction came.
        self.places = {(log.topic, log.partition) for log, txn in self.open if txn in log.open}
        self.healed_ms = self.broker.now_ms()

    def end(self) -> None:
        """An operator has all of them rolled back, each in its partition."""
        for log, txn in self.open:
            txn.outcome = "abort"
            log.open.pop(txn, None)
            self.broker.order += 1
            at = self.broker.now_ms()
            log.add(Entry(log.end, at, None, None, None, txn, self.broker.order, True))
            self.broker.wake(log)
        self.open.clear()


def check_hanging(
    world: World,
    seen: Seen,
    definitions: Mapping[str, Definition],
    said: Counter[str],
) -> Iterator[str]:
    """What is wrong while transactions hang; `said` are lines of the workers' log."""
    hanging = world.hanging
    if hanging is None:
        return
    for topic, partition in sorted(hanging.places):
        if not any(f"stays open in {topic}/{partition}:" in each for each in said):
            yield f"I40 nobody said that a transaction hangs in {topic}/{partition}"
    stopped = {number for topic, number in hanging.places if topic == CHANGELOG}
    unread = stopped | {number for topic, number in hanging.places if topic == SOURCE}
    for taken in seen.taken:
        sent, read_ms = taken.sent, taken.step.rows[-1].timestamp_ms
        since_ms = max(sent.appended_ms, hanging.healed_ms)
        direct = sent.topic == SOURCE and not sent.stray and taken.step.partition not in unread
        if direct and read_ms > since_ms + SOON_MS:
            yield f"I40 {sent.name} was taken in {read_ms - since_ms} ms late"
    for name, definition in definitions.items():
        for step, entry in definition.fired_in:
            known_ms = definition.accepted_in.rows[-1].timestamp_ms
            due_ms = max(definition.due_ms, known_ms, hanging.healed_ms)
            if step.partition not in stopped and entry.timestamp_ms > due_ms + SOON_MS:
                yield f"I40 {name} fired {entry.timestamp_ms - due_ms} ms late"
