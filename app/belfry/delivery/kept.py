"""A tenant's deliveries that were given up or have no end, among the latest ones of their topics.

`dead_letters.py` and `open_deliveries.py` read whole topics, for the command line.  This module
looks at the end of the same topics, by the same rules, and takes a bounded time whatever they hold.

An end that was told longer ago than the part of belfry.lifecycle that is looked at is not seen.
Where there may be one, a delivery is called `attempted` and not `retrying`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from confluent_kafka import Message

from belfry.client.decoding import Decoder
from belfry.delivery.dead_letters import Letter, letter_of, replay
from belfry.delivery.open_deliveries import (
    CLOCKS_MS,
    RETRYING,
    DeliveryRecord,
    Ends,
    end_in,
    judge,
    progress_of,
)
from belfry.kafka.topic_tail import TopicTail, record_at
from belfry.registry.subjects import look_in, open_registry
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

    def __init__(self, settings: SharedSettings, now_ms: Callable[[], float]) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._look = look_in(open_registry(settings))

    def reader(self) -> Callable[[Message], PlacedLetter | None]:
        """What makes letters of records, without payloads; None for one that is no delivery.

        It is for one look, in one thread.
        """
        decoder = Decoder("FiredEvent", self._look, only=True)

        def read(message: Message) -> PlacedLetter | None:
            letter = letter_of(message, decoder)
            if letter is None:
                return None
            # What is only looked at holds no payloads: thousands are looked at together.
            event = replace(letter.work.event, payload=None)
            light = letter._replace(work=replace(letter.work, value=b"", event=event, headers=[]))
            return PlacedLetter(message.partition() or 0, message.offset() or 0, light)

        return read

    def replay(self, tenant: str, partition: int, offset: int) -> bool:
        """Deliver again what a tenant's letter at this place holds; whether there is one."""
        topic = self._settings.topic("undelivered")
        message = record_at(self._settings.kafka_properties(), topic, (partition, offset))
        decoder = Decoder("FiredEvent", self._look, only=True)
        letter = None if message is None else letter_of(message, decoder)
        if letter is None or letter.work.event.tenant != tenant:
            return False
        return replay(self._settings, [letter], int(self._now_ms())) == 1

    def without_end(self, tenant: str) -> tuple[list[Letter], int]:
        """A tenant's deliveries without an end, and how many records were looked at.

        They are those among the last `LATEST` offsets of each partition. Older ones are for `belfry
        deliveries list --open`, which reads whole topics.
        """
        # In this order, which `open_deliveries.py` explains.
        progress = progress_of(self._settings)
        ends, since_ms = self._ends()
        latest: dict[tuple[str, int], Letter] = {}
        with self._tail("deliveries") as tail:
            seen = tail.stretch(LATEST, self.reader())
        for placed in seen:
            if placed is None or placed.letter.work.event.tenant != tenant:
                continue
            here = progress.get(placed.partition)
            ended = here is not None and here.done_with(placed.offset)
            work, at_ms, _, _ = placed.letter
            judge(DeliveryRecord(work, at_ms, ended), ends, latest)
        return [_unsure(each, since_ms) for each in latest.values()], len(seen)

    def _ends(self) -> tuple[Ends, int]:
        """When deliveries were told to have ended, and from when on all such ends are known."""
        decoder = Decoder("LifecycleEvent", self._look, only=True)
        ends: Ends = {}
        since_ms = 0
        with self._tail("lifecycle") as tail:
            told = tail.stretch(
                LATEST,
                lambda each: (each.partition(), each.timestamp()[1], end_in(each, decoder)),
            )
            for partition in tail.rest:
                times = [at_ms for each, at_ms, _ in told if each == partition]
                if tail.is_cut(partition) and times:
                    since_ms = max(since_ms, min(times))
        for _, _, end in told:
            if end is not None:
                ends[end[0]] = max(end[1], ends.get(end[0], 0))
        return ends, since_ms

    def _tail(self, short: str) -> TopicTail:
        return TopicTail(self._settings.kafka_properties(), self._settings.topic(short))


def _unsure(letter: Letter, since_ms: int) -> Letter:
    """The same, where the end of this attempt may have been told before what was looked at."""
    if letter.code != RETRYING or letter.at_ms >= since_ms + CLOCKS_MS:
        return letter
    reason = "it failed and is tried again, or it has ended: its history tells"
    return letter._replace(code=ATTEMPTED, reason=reason)
