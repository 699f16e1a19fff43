"""Deliveries whose retry was refused get their end, without a request for it.

    belfry.rejected ─► refused_retries.py ─► ONE TRANSACTION ─► belfry.lifecycle     FAILED
     (a group of its own, `….deliver.rejected`)             └─► belfry.undelivered   the delivery

It is a member of a group as a dispatcher is, so each refusal is looked at by one process, and its
position moves with its follow-up records: so a delivery gets one end, also after a kill. At most
`BATCH` records are read in a turn. An error of Kafka ends the term, and the next begins at the
committed positions.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import structlog
from confluent_kafka import Message

from belfry.delivery.delivery_log import DeliveryLog
from belfry.delivery.figures import DELIVERIES, UNCOUNTED, DeliveryFigures
from belfry.delivery.follow_ups import Places, Produced
from belfry.delivery.progress import DeliveryPosition
from belfry.delivery.refused_retries import NotSettled, RetryReader, end_of
from belfry.host.background import Background
from belfry.host.clock import SystemClock
from belfry.host.passing import PassThrough, all_pass, at_once
from belfry.kafka.record_headers import headers_of
from belfry.settings import DeliverySettings
from belfry.telemetry.limited import LimitedLogger

BATCH: Final = 500
# In a flood of refusals there is a transaction for this many seconds, or for a batch.
GATHER_S: Final = 1.0
# The name of the count, among those of attempts at deliveries.
SETTLED: Final = "SETTLED"
REFUSED: Final = "rejected"

log = structlog.get_logger(__name__)


class Settling:
    """Gives up deliveries whose next attempt was refused, until it is stopped."""

    def __init__(
        self,
        settings: DeliverySettings,
        places: Places,
        reader: RetryReader,
        figures: DeliveryFigures = UNCOUNTED,
        through: PassThrough = at_once,
    ) -> None:
        """`figures` get the count of given-up deliveries, once it is committed.

        Records come `through` the agent of deliveries, if the process has one.
        """
        self._settings = settings
        self._topic = settings.topic(REFUSED)
        self._through = through
        self._places = places
        self._reader = reader
        self._figures = figures
        self._clock = clock = SystemClock()
        self._faults = LimitedLogger(log, clock=lambda: clock.monotonic_ms() / 1000)
        self._thread = Background("refused-retries", self._term, log, "refused retries wait")
        self._progress: dict[int, DeliveryPosition] = {}

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def told_to_stop(self) -> None:
        """Let `stop` find it at its end, or near it; returns at once."""
        self._thread.stopping.set()

    def stop(self) -> None:
        """End the work under way, and leave the group."""
        self._thread.stop()

    @property
    def alive(self) -> bool:
        """Whether it runs, or was not started yet."""
        return self._thread.alive or not self._thread.begun

    def _term(self) -> None:
        """From joining the group to the first failure, or to the end."""
        clients, gone = self._figures.clients(DELIVERIES), self._progress.clear
        refused = DeliveryLog(self._settings, clients, self._assigned, gone, of=REFUSED)
        try:
            refused.open(self._thread.stopping)
            while not self._thread.stopping.is_set():
                messages = refused.read(BATCH, GATHER_S)
                if all_pass(self._through, self._topic, messages, self._thread.stopping):
                    self.settle(refused, messages)
        finally:
            self._progress.clear()
            refused.close()

    def _assigned(self, progress: dict[int, DeliveryPosition]) -> None:
        self._progress.clear()
        self._progress.update(progress)

    def settle(self, refused: DeliveryLog, messages: list[Message]) -> None:
        """Look at refused records, and write follow-up records with the positions behind them."""
        # Where records were removed unread, or there was no position, one is to be written.
        begun = self._progress.items()
        moved = {number: each for number, each in begun if each.removed or not each.kept}
        records: list[Produced] = []
        number = 0
        for message, headers in zip(messages, headers_of(messages), strict=True):
            partition, offset = message.partition() or 0, message.offset() or 0
            here = moved[partition] = self._progress[partition]
            here.fresh(offset)
            here.ended(offset)
            try:
                retry = self._reader.read(message.key(), message.value(), headers or [])
            except NotSettled as error:
                self._left(partition, offset, str(error))
                continue
            if retry is not None:
                number += 1
                records += end_of(retry, self._places, int(self._clock.wall_ms()))
                event = retry.work.event
                self._faults.warning(
                    "retry refused",
                    "a delivery was given up: its next attempt was refused",
                    tenant=event.tenant,
                    fire_id=event.fire_id,
                    code=retry.code,
                )
        for partition, offset in refused.ends.items():
            if self._progress[partition].read_to(offset):
                moved[partition] = self._progress[partition]
        if moved:
            refused.commit(records, moved)
            self._figures.removed(REFUSED, sum(each.told() for each in moved.values()))
        if number:
            self._figures.delivered(Counter({SETTLED: number}), Counter())

    def _left(self, partition: int, offset: int, problem: str) -> None:
        """Tell of a refused retry that no end follows from."""
        self._faults.warning(
            "not settled",
            "a refused retry was left as it is",
            partition=partition,
            offset=offset,
            problem=problem,
        )
