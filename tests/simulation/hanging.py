"""Transactions that hang: open in one partition, and nobody ends them but an operator.

    a stranger's    its coordinator has forgotten it; it lies in the requests, the changelog, the
                    policies, a tenant's own topic, or the topic of deliveries; or where belfry
                    writes for others: events, verdicts, refusals, dead letters
    an owner's own  a fence has rolled it back, and its marker never comes in the changelog, or in
                    one of those other topics

Readers of committed records stop there.  Nobody ends one before the faults are over and a minute
more has passed, but for some of those that lie where belfry writes, which are over before.
Meanwhile belfry goes on where it can, and says what readers wait for (I40, I52).

    fired      what was accepted, of a partition whose changelog can be read, however its input is
    taken in   requests of partitions that nothing hangs in
    told       each of them, in the log
    verified   `belfry verify` in that minute comes to its end, and calls nothing lost (`verifying`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.broker import Broker, Entry, Log, Txn
from tests.simulation.sent import SOURCE

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition
    from tests.simulation.taking import Seen
    from tests.simulation.world import World

# Faults by which something may hang.
KINDS: Final = {"hang", "hang_for_others", "lose_marker", "lose_marker_for_others"}
CHANGELOG: Final = "belfry.changelog"
TOPICS: Final = (CHANGELOG, SOURCE, SOURCE, "belfry.tenants", "belfry.deliveries")
# Where belfry writes for others, beside topics of events.
FOR_OTHERS: Final = ("belfry.lifecycle", "belfry.rejected", "belfry.undelivered")
FIRED: Final = "belfry.fired."
WRITTEN: Final = (FIRED, *FOR_OTHERS)
# How long some hang there, in milliseconds; the others do until somebody ends them.
WHILE_MS: Final = (300.0, 3_000.0, 9_000.0)
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
    # Where something hung still when an operator looked.
    left: set[tuple[str, int]] = field(default_factory=set)
    healed_ms: int = 0
    struck: list[str] = field(default_factory=list)
    # How many of the owners' own may lose a marker still: in the changelog, and for others.
    armed: int = 0
    armed_for_others: int = 0
    # Looks at the topics before an operator ends what hangs; an onlooker's, if there is one.
    looks: Callable[[], None] = lambda: None

    def strange(self) -> None:
        """A stranger's transaction hangs somewhere."""
        own = sorted(each for each in self.broker.topics if each.startswith(f"{SOURCE}."))
        self._begin(self.random.choice((*TOPICS, *own)))

    def for_others(self) -> None:
        """A stranger's transaction hangs where belfry writes for others, perhaps for a while."""
        fired = sorted(each for each in self.broker.topics if each.startswith(FIRED))
        there = [each for each in FOR_OTHERS if each in self.broker.topics]
        topic = self.random.choice(fired if fired and self.random.random() < 0.7 else there)
        log, txn = self._begin(topic)
        if self.random.random() < 0.4:
            lasts_ms = self.random.choice(WHILE_MS)
            self.broker.stage.later(lasts_ms, lambda: self._over(log, txn))

    def _begin(self, topic: str) -> tuple[Log, Txn]:
        log = self.random.choice(self.broker.topics[topic])
        txn = Txn(f"hangs-{len(self.struck)}", 0, self.broker.stage.now_ms)
        log.open[txn] = log.end
        self.broker.append(log, (b"stranger", txn.producer.encode(), None), txn)
        self._keep(log, txn)
        return log, txn

    def _keep(self, log: Log, txn: Txn) -> None:
        self.open.append((log, txn))
        where = log.topic.removeprefix("belfry.")
        if log.topic.startswith(f"{SOURCE}."):
            where = "an own topic"
        elif log.topic.startswith(FIRED):
            where = "an output"
        missing = "a marker missing" if log.topic == CHANGELOG else "a marker missing for others"
        self.struck.append(missing if txn.outcome else f"hangs in {where}")

    def loses_marker(self, txn: Txn, log: Log, *, fenced: bool) -> bool:
        """Whether the marker of a transaction that is ended does not come in a partition."""
        if not (fenced and log in txn.touched):
            return False
        if self.armed and log.topic == CHANGELOG:
            self.armed -= 1
        elif self.armed_for_others and txn in log.open and log.topic.startswith(WRITTEN):
            self.armed_for_others -= 1
        else:
            return False
        self._keep(log, txn)
        return True

    def heal(self) -> None:
        """Faults are over: what hangs goes on doing so, and nothing else is lost."""
        self.armed = self.armed_for_others = 0
        # A marker that is missing hangs nothing where no record of its transaction came.
        self.places = {(log.topic, log.partition) for log, txn in self.open if txn in log.open}
        self.healed_ms = self.broker.now_ms()

    def end(self) -> None:
        """An operator has all of them rolled back, each in its partition."""
        self.left = {(log.topic, log.partition) for log, txn in self.open if txn in log.open}
        for log, txn in list(self.open):
            self._over(log, txn)

    def _over(self, log: Log, txn: Txn) -> None:
        """One of them is rolled back."""
        if (log, txn) in self.open:
            self.open.remove((log, txn))
            txn.outcome = "abort"
            log.open.pop(txn, None)
            self.broker.order += 1
            at = self.broker.now_ms()
            log.add(Entry(log.end, at, None, None, None, txn, self.broker.order, True))
            self.broker.wake(log)


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
    for topic, partition in sorted(hanging.left):
        if not any(f"stays open in {topic}/{partition}:" in each for each in said):
            number = "I52" if topic.startswith(WRITTEN) else "I40"
            yield f"{number} nobody said that a transaction hangs in {topic}/{partition}"
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
