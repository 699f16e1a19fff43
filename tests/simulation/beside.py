"""What leaves beside transactions: the producer of tenants that live at least once.

    record    ●a      ●a ●b                 a: sent, and sent again after a crash
    step      ✗ ───── ✓ FIRED a, FIRED b    what the committed step tells of has come out

A record without a transaction belongs to the step that tells of its fire.  Others of the same fire
are repeats; one whose fire nobody told of was left behind by a step that was never committed.
`governed` judges whether any of them may be there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError

from tests.simulation import clients, consumer_groups
from tests.simulation.broker import Entry, Log, Refused
from tests.simulation.machine import machine
from tests.simulation.murmur import partition_of
from tests.simulation.stage import here

if TYPE_CHECKING:
    from tests.simulation.trail import Step
    from tests.simulation.world import World

# How long after a client has given up a record of it may still arrive.
LATEST_MS: Final = 3_000.0
TOLD: Final = ("FIRED", "TRIGGERED")
FIRED: Final = "belfry.fired."
Beside = defaultdict[bytes, list[tuple[str, int, Entry]]]


def producer(properties: dict[str, Any], **options: Any) -> Any:
    """A `Producer` with a transactional id, or one without."""
    if consumer_groups.GROUP + "." in properties.get("transactional.id", ""):
        return consumer_groups.GroupProducer(properties, **options)
    if "transactional.id" in properties:
        return clients.SimProducer(properties, **options)
    if properties.get("batch.num.messages") == 1:
        from tests.simulation import topic_targets

        return topic_targets.producer()
    return PlainProducer()


class PlainProducer:
    """`Producer` that is idempotent and has no transaction."""

    def __init__(self) -> None:
        self._machine = machine()
        self._broker = self._machine.broker
        self._queue: list[tuple[Log, clients.Record, Callable[[Any, Any], None]]] = []

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        headers: Any,
        on_delivery: Callable[[Any, Any], None],
        partition: int = -1,
    ) -> None:
        """Queue a record."""
        here().check()
        logs = self._broker.topics.get(topic) or [Log(topic, 0)]
        if partition < 0:
            drawn = here().random.randrange(len(logs))
            partition = drawn if key is None else partition_of(key, len(logs))
        listed = list(headers.items()) if isinstance(headers, dict) else headers
        self._queue.append((logs[partition], (key, value, listed), on_delivery))

    def flush(self, timeout: float = -1) -> int:
        """Send what is queued; how much is left: its answer was lost, or it is late."""
        weather, stage = self._machine.weather, here()
        if not self._queue:
            return 0
        queue, fate = self._queue, weather.end_fate()
        if fate == "late":
            stage.later(stage.random.random() * LATEST_MS, lambda: self._arrive_late(queue))
        if fate in ("late", "lost") or not self._machine.travel(timeout * 1000):
            stage.sleep(timeout * 1000)
            return len(queue)
        reports = self._arrive(queue)
        if fate == "unheard":
            stage.sleep(timeout * 1000)
            return len(queue)
        self._machine.travel(timeout * 1000)
        self._queue = []
        for told in reports:
            told()
        return 0

    def _arrive_late(self, queue: list[Any]) -> None:
        # Nobody hears what became of it.
        self._arrive(queue)

    def _arrive(self, queue: list[Any]) -> list[Callable[[], None]]:
        """Append what was queued, and tell what became of it."""
        reports: list[Callable[[], None]] = []
        for log, record, on_delivery in queue:
            try:
                entry, error = self._appended(log, record), None
                self._machine.struck.append("beside a transaction")
            except Refused as refused:
                entry, error = None, KafkaError(clients.CODES[refused.kind], str(refused))
            message = clients.SimMessage(log, entry, error, -1 if entry is None else entry.offset)
            reports.append(lambda told=on_delivery, args=(error, message): told(*args))  # type: ignore[misc]
        return reports

    def _appended(self, log: Log, record: clients.Record) -> Entry:
        if log.topic in self._broker.refused:
            raise Refused("refused", self._broker.refused[log.topic])
        return self._broker.append(self._broker.log(log.topic, log.partition), record)

    def poll(self, timeout: float = -1) -> int:
        """Serve delivery reports: all are served by `flush`."""
        here().check()
        return 0

    def purge(self, **_: Any) -> None:
        """Drop what is queued."""
        self._queue = []

    def __len__(self) -> int:
        return len(self._queue)


def beside_of(world: World) -> Beside:
    """Fired records without a transaction, by the fire's id, in the order of their coming."""
    found: Beside = defaultdict(list)
    for topic, logs in sorted(world.broker.topics.items()):
        if topic.startswith(FIRED):
            for log in logs:
                for entry in log.history:
                    if entry.txn is None:
                        fire_id = dict(entry.headers or ())["belfry-fire-id"] or b""
                        found[fire_id].append((topic, log.partition, entry))
    return found


def give_to_steps(beside: Beside, steps: list[Step]) -> None:
    """Give each record to the step that tells of its fire: the last one before the step's end."""
    for at, step in enumerate(steps):
        ends = steps[at + 1].rows[0].order if at + 1 < len(steps) else None
        # An attempt before may have left beside what this one sent in its transaction.
        within = {dict(entry.headers or ())["belfry-fire-id"] for _, entry in step.fired}
        for event in step.told:
            fire_id = (event["fire_id"] or "").encode()
            several = () if fire_id in within else beside.get(fire_id, ())
            there = [each for each in several if ends is None or each[2].order < ends]
            if event["outcome"] in TOLD and there:
                topic, partition, entry = there[-1]
                step.fired.append((topic, entry))
                step.places[entry.order] = partition
                step.has_beside = True
