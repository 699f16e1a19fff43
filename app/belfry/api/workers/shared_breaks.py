"""Breaks of hosts, kept in Kafka, so that each process that delivers heeds them and no restart ends
them.

    12:00:00.00   break x at W1         W1 writes it down, and answers the caller
    12:00:00.02   W1 asks the workers   they look at once
    12:00:01.90   dispatchers           look every two seconds: they stop posting to x
    12:05:00.00   W1 is restarted       it reads the notes before it has posted anything for long

The notes are the metadata of offsets of a group that has no members (`<app id>.host-breaks`), for
partitions of the changelog, as workers' heartbeats are.  So no topic is needed, and no right that a
worker lacks.  Brokers keep them for days after the last change (`offsets.retention.minutes`), and a
break stands for a day at most.

Two processes may write at the same time, and neither is told of the other.  Each of them reads
again what it has written, and a worker that knows of a break that the notes lack writes it once
more. Entries are joined by their instants (`host_breaks.py`), so all of them come to the same.

Where the notes are full, closes that everybody has heard of make room, the oldest ones first: they
were read in the notes, and are older than `CLOSED_MS`.  Only a process that has not reached Kafka
since before such a close may bring its break back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Final, Protocol

import structlog

from belfry.api.workers.break_notes import (
    EMPTY,
    NoRoomForBreaks,
    entries_in,
    in_the_way,
    texts_of,
)
from belfry.api.workers.host_breaks import CLOSED_MS, HostBreak, HostBreaks
from belfry.host.background import Background
from belfry.telemetry.limited import LimitedLogger

# Seconds between two looks, and how often what was written is looked at before the next turn.
EVERY_S: Final = 2.0
ROUNDS: Final = 3
STOP_S: Final = 1.0

log = structlog.get_logger(__name__)


class Notes(Protocol):
    """Short texts by partition, as `OffsetNotes` keeps them."""

    def read(self, partitions: Iterable[int]) -> dict[int, str]:
        """The present breaks; raises ConnectionError."""

    def write(self, texts: Mapping[int, str]) -> dict[int, str]:
        """Keep these; why some were refused, by partition.  Raises ConnectionError."""


class SharedBreaks:
    """Keeps the breaks of this process and those in Kafka the same; a thread looks again and again.

    `settle` and `make_room` may be called from any thread.
    """

    def __init__(
        self, breaks: HostBreaks, notes: Notes, partitions: int, now_ms: Callable[[], float]
    ) -> None:
        """There is a note for each of so many partitions; `now_ms` is the clock, in epoch ms."""
        self._breaks = breaks
        self._notes = notes
        self._partitions = partitions
        self._now_ms = now_ms
        self._lock = Lock()
        # Closes that were read in the notes: host, and since when.
        self._heard: frozenset[tuple[str, int]] = frozenset()
        self._faults = LimitedLogger(log)
        self._thread = Background("host-breaks", self._turn, log, "breaks of hosts not read")

    def start(self) -> None:
        """Begin to look; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; one look that waits for Kafka does not hold up the end of the process."""
        self._thread.stop(STOP_S)

    def make_room(self, given: HostBreak) -> bool:
        """Whether there is room for one more entry, which old closes have to make."""
        others = [e for e in self._breaks.entries(int(self._now_ms())) if e.host != given.host]
        try:
            self._fitting([*others, given])
        except NoRoomForBreaks:
            return False
        return True

    def settle(self) -> None:
        """Take entries of others, and write those that they lack; blocks.

        Raises ConnectionError where Kafka does not answer, or does not take it; `NoRoomForBreaks`.
        """
        with self._lock:
            for _ in range(ROUNDS):
                texts, now_ms = self._notes.read(range(self._partitions)), int(self._now_ms())
                told = entries_in(texts, now_ms)
                lacking = self._breaks.merge(told, now_ms)
                known = {(each.host, each.since_ms) for each in self._breaks.entries(now_ms)}
                heard = {(each.host, each.since_ms) for each in told if each.closed}
                self._heard = (self._heard | heard) & known
                if not lacking:
                    return
                self._write(texts)

    def _write(self, before: Mapping[int, str]) -> None:
        wanted = self._fitting(self._breaks.entries(int(self._now_ms())))
        changed = {n: text for n, text in wanted.items() if before.get(n, EMPTY) != text}
        refused = self._notes.write(changed) if changed else {}
        if refused:
            first = min(refused)
            raise ConnectionError(f"breaks are not kept, note {first}: {refused[first]}")

    def _fitting(self, entries: list[HostBreak]) -> dict[int, str]:
        """Texts of the entries, without the closes that have to make room for the others."""
        over_ms = int(self._now_ms()) - CLOSED_MS
        spare = [
            e for e in entries if (e.host, e.since_ms) in self._heard and e.since_ms <= over_ms
        ]
        gone = in_the_way(entries, sorted(spare, key=_age), self._partitions)
        texts = texts_of(sorted(set(entries).difference(gone)), self._partitions)
        self._breaks.forget(gone)
        return texts

    def _turn(self) -> None:
        """Settle; if Kafka is away, the entries known here hold until it is back."""
        try:
            self.settle()
        except (ConnectionError, NoRoomForBreaks) as error:
            self._faults.warning("away", "breaks of hosts are not settled yet", problem=str(error))
        self._thread.stopping.wait(EVERY_S)


def _age(each: HostBreak) -> tuple[int, str]:
    """The oldest one first, the same in each process."""
    return each.since_ms, each.host
