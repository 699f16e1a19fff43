"""Where a changelog ends once the former owner is fenced off, and the wait until all can be read.

    committed ──┬ open transaction ┬── committed by the owner, hidden behind it ──┐
         last stable offset                                                    log end

The fence ends the former owner's transaction and returns when its markers are written, so from then
on nobody of belfry has one open there.  A last stable offset before the log's end is proof that
somebody else has: records behind it were committed by the former owner, and a worker that began
before them would fire them again.  So nothing is done until it can be read, and the wait is loud.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from belfry.host import machine
from belfry.host.clock import SystemClock
from belfry.kafka import open_transactions
from belfry.kafka.changelog_reader import ChangelogReader
from belfry.kafka.holders import Untold, tell, untold
from belfry.recovery.reading import ReplayProgress
from belfry.settings import Settings

# Seconds between two questions, as long as nobody was told.
LOOK_S: Final = 0.1
# An open transaction of belfry's own is over sooner than that; then it is told, and again each half
# minute.
TOLD_AFTER_S: Final = 0.5
TOLD_EVERY_S: Final = 30.0

log = structlog.get_logger(__name__)


class FencedEnd:
    """Asks for the end of one changelog after the fence, as often as it takes.

    It is called in the partition's thread and blocks there. Giving up the partition ends the wait,
    by an error of `wait`.
    """

    def __init__(
        self,
        settings: Settings,
        clock: SystemClock,
        partition: int,
        reading: ReplayProgress,
        wait: Callable[[float], None],
    ) -> None:
        """`reading` shows the reason of the wait; `wait` lets so many seconds pass."""
        self._settings = settings
        self._clock = clock
        self._partition = partition
        self._reading = reading
        self._wait = wait
        self._log = log.bind(partition=partition)

    def __call__(self, changelog: ChangelogReader) -> int:
        """The end of the log, once nothing is hidden before it.

        Raises the error of `wait` where there is no reason to wait any longer.
        """
        began = told = None
        try:
            # In this order: records appended in between do not look like hidden ones.
            while (end := changelog.log_end()) > (stable := changelog.ends()[1]):
                now = machine.monotonic()
                began = now if began is None else began
                if now - began >= TOLD_AFTER_S and (told is None or now - told >= TOLD_EVERY_S):
                    told = now
                    self._tell(changelog.topic, stable, end)
                self._wait(LOOK_S if told is None else 1.0)
        finally:
            self._reading.held_by = ""
        if told is not None:
            self._log.warning("the changelog can be read to its end again", end=end)
        return end

    def _tell(self, topic: str, stable: int, end: int) -> None:
        """Say in the log and in the partition's health who holds the end back, and what to do."""
        place = (topic, self._partition)
        properties = self._settings.kafka_properties()
        try:
            found = open_transactions.look_up(properties, [place])
            told = tell(found, place, self._settings, self._clock.wall_ms())
        except Untold as error:
            told = untold(error, place, self._settings)
        self._reading.held_by = (
            f"nothing fires: a transaction that is open in {topic}/{place[1]} from offset {stable}"
            f" on hides what was committed up to {end}; held by {told.who}; to do: {told.to_do}"
        )
        self._log.critical(
            "an open transaction hides the end of the changelog: nothing fires until it is over",
            topic=topic,
            last_stable_offset=stable,
            log_end=end,
            held_by=told.who,
            to_do=told.to_do,
        )
