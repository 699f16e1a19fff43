"""A tenant's deliveries that were given up or have no end, among the latest ones of their topics.

`dead_letters.py` and `open_deliveries.py` read whole topics, for the command line.  This module
looks at the end of the same topics, by the same rules, and takes a bounded time whatever they hold.

Both topics of deliveries without an end are read on from look to look, and progress is asked for by
a consumer that stays connected, so the cost of a look depends only on the records since the last
one.

An end that was told longer ago than the part of belfry.lifecycle that is looked at is not seen.
Where there may be one, a delivery is called `attempted` and not `retrying`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from confluent_kafka import KafkaException, Message

from belfry.client.decoding import Decoder
from belfry.delivery.dead_letters import Letter, letter_of, replay
from belfry.delivery.open_deliveries import (
    CLOCKS_MS,
    RETRYING,
    DeliveryEnd,
    DeliveryRecord,
    Ends,
    asked_progress,
    asking_consumer,
    end_in,
    judge,
)
from belfry.delivery.progress import DeliveryPosition
from belfry.host import machine
from belfry.kafka import librdkafka
from belfry.kafka.latest_records import LatestRecords
from belfry.kafka.tail_readers import TailReaders
from belfry.registry.subjects import look_in, open_registry
from belfry.schedules.targets import HttpTarget
from belfry.settings import SharedSettings

ATTEMPTED: Final = "attempted"
# How many of the latest offsets of each partition are looked at for deliveries without an end.
LATEST: Final = 2_000


class PlacedLetter(NamedTuple):
    """A delivery and where its record lies."""

    partition: int
    offset: int
    letter: Letter


class LatestDeliveries:
    """Looks at the ends of the topics of deliveries; blocks, and any thread may call it.

    `now_ms` is the clock, in epoch ms. Methods raise ConnectionError and KafkaException.
    """

    def __init__(
        self, settings: SharedSettings, now_ms: Callable[[], float], readers: TailReaders
    ) -> None:
        """`readers` look at topics."""
        self._settings = settings
        self._now_ms = now_ms
        self._readers = readers
        self._look = look_in(open_registry(settings))
        self._targets: dict[str, tuple[HttpTarget, ...]] = {}
        self._progress = DispatchersProgress(settings)
        self._told = LatestRecords(readers, settings.topic("lifecycle"), LATEST, self._end_reader)
        self._asked = LatestRecords(readers, settings.topic("deliveries"), LATEST, self.reader)

    def reader(self) -> Callable[[Message], PlacedLetter | None]:
        """A function that makes letters of records, without payloads; None for other records.

        It is for one look, in one thread.
        """
        decoder = Decoder("FiredEvent", self._look, only=True)

        def read(message: Message) -> PlacedLetter | None:
            letter = letter_of(message, decoder)
            if letter is None:
                return None
            # Letters for a list hold no payloads: thousands are looked at together.
            event, state = replace(letter.work.event, payload=None), letter.work.state
            state = replace(state, targets=self._once(state.targets))
            work = replace(letter.work, value=b"", event=event, headers=[], state=state)
            light = letter._replace(work=work)
            return PlacedLetter(message.partition() or 0, message.offset() or 0, light)

        return read

    def _once(self, targets: tuple[HttpTarget, ...]) -> tuple[HttpTarget, ...]:
        """The same targets: deliveries of a tenant have the same ones, which are kept once."""
        if len(self._targets) >= LATEST:
            self._targets = {}
        return self._targets.setdefault(repr(targets), targets)

    def replay(self, tenant: str, partition: int, offset: int) -> bool:
        """Deliver again what a tenant's letter at this place holds; whether there is one."""
        topic = self._settings.topic("undelivered")
        message = self._readers.record_at(topic, (partition, offset))
        decoder = Decoder("FiredEvent", self._look, only=True)
        letter = None if message is None else letter_of(message, decoder)
        if letter is None or letter.work.event.tenant != tenant:
            return False
        return replay(self._settings, [letter], int(self._now_ms())) == 1

    def without_end(self, tenant: str) -> tuple[list[Letter], int]:
        """A tenant's deliveries without an end, and how many records were looked at.

        They are those among the last `LATEST` offsets of each partition, and not more of all
        partitions than `LatestRecords` remembers. Older ones are for `belfry
        deliveries list --open`, which reads whole topics.
        """
        # In this order, which `open_deliveries.py` explains.
        progress = self._progress.read()
        ends, since_ms = self._ends()
        latest: dict[tuple[str, int], Letter] = {}
        seen = self._asked.look()
        for _, _, placed in seen.records:
            if placed is None or placed.letter.work.event.tenant != tenant:
                continue
            here = progress.get(placed.partition)
            ended = here is not None and here.done_with(placed.offset)
            work, at_ms, _, _ = placed.letter
            judge(DeliveryRecord(work, at_ms, ended), ends, latest)
        return [_unsure(each, since_ms) for each in latest.values()], seen.examined

    def _end_reader(self) -> Callable[[Message], tuple[int, DeliveryEnd | None]]:
        """A function from a lifecycle record to its time and the end that it tells."""
        decoder = Decoder("LifecycleEvent", self._look, only=True)
        return lambda message: (message.timestamp()[1], end_in(message, decoder))

    def _ends(self) -> tuple[Ends, int]:
        """When deliveries were told to have ended, and from when on all such ends are known."""
        told = self._told.look()
        ends: Ends = {}
        oldest: dict[int, int] = {}
        for partition, _, (at_ms, end) in told.records:
            oldest[partition] = min(at_ms, oldest.get(partition, at_ms))
            if end is not None:
                ends[end[0]] = max(end[1], ends.get(end[0], 0))
        return ends, max((oldest.get(each, 0) for each in told.cut), default=0)


class DispatchersProgress:
    """The progress of the group of dispatchers, asked by a consumer that stays connected."""

    def __init__(self, settings: SharedSettings) -> None:
        """It joins no group, and connects when it is first asked."""
        self._settings = settings
        self._lock = machine.Lock()
        self._consumer: librdkafka.Consumer | None = None

    def read(self) -> dict[int, DeliveryPosition]:
        """The progress by partition; raises KafkaException.

        A consumer under which it fails is closed, and another one asks once more.
        """
        with self._lock:
            consumer, self._consumer = self._consumer, None
        if consumer is not None:
            try:
                return self._asked(consumer)
            except KafkaException:
                pass
        return self._asked(asking_consumer(self._settings))

    def _asked(self, consumer: librdkafka.Consumer) -> dict[int, DeliveryPosition]:
        try:
            found = asked_progress(self._settings, consumer)
        except BaseException:
            consumer.close()
            raise
        with self._lock:
            before, self._consumer = self._consumer, consumer
        if before is not None:
            before.close()
        return found


def _unsure(letter: Letter, since_ms: int) -> Letter:
    """The same, if the end of this attempt may have been told before the records looked at."""
    if letter.code != RETRYING or letter.at_ms >= since_ms + CLOCKS_MS:
        return letter
    reason = "it failed and is tried again, or it has ended: its history tells"
    return letter._replace(code=ATTEMPTED, reason=reason)
