"""Failures that end the terms of a partition's ownership: they cause a log line and a pause.

The log and `/healthz/ready` show these failures, and they decide whether the worker is fit.  There
are four kinds:

    what ended the term                       pause    speaks against this worker
    an unknown result, any other failure      0.5 s    yes, from the first one to the next commit
    a topic that may not be written to        none     yes; events for the topic wait
    a contradiction: an operator must choose  3 s      no, another worker would meet the same
    schedules that others can fire            1 s      no, it waits for the group to share anew

Where rows of the local store were found to be wrong, the next term begins without them: with them
it would only fail in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from belfry.host.clock import SystemClock
from belfry.host.errors import named
from belfry.kafka.outcome import Aborted, Unknown
from belfry.kafka.signature_marks import BadMark
from belfry.partitions.term import Owned
from belfry.recovery.takeover import LeftToOthers
from belfry.store.identity import Contradiction
from belfry.telemetry.limited import LimitedLogger

PAUSE_AFTER_ABORT_S: Final = 0.05
PAUSE_AFTER_ERROR_S: Final = 0.5
# How often a partition that waits for an operator's choice looks whether it was made.
PAUSE_CONTRADICTED_S: Final = 3.0
# How often a partition that was left to others is looked at, until the group has shared anew.
PAUSE_LEFT_S: Final = 1.0


class Failures:
    """The present failure of one partition, since when, and how long to wait for the next try.

    One thread writes.  Any other may read `problem`, in words or empty, and `since_ms`, monotonic
    milliseconds or None while nothing speaks against this worker.
    """

    def __init__(self, log: Any, clock: SystemClock) -> None:
        self.problem = ""
        self.since_ms: float | None = None
        self._log = log
        self._clock = clock
        # A lasting fault would write a line a second; the logger writes the first few, then sums.
        self._faults = LimitedLogger(log, clock=lambda: clock.monotonic_ms() / 1000)
        self._blocked = self._left = False
        self._pause_s = PAUSE_AFTER_ERROR_S

    def ended(self, error: Exception, owned: Owned | None = None) -> None:
        """A term has ended with an error, and the partition is to be taken over anew.

        `owned` is the open state of the term: rows that were found to be wrong are not used again.
        """
        if owned is not None:
            owned.failed(error)
        self._blocked = isinstance(error, Unknown) and error.blocked
        was_left, self._left = self._left, isinstance(error, LeftToOthers)
        self._pause_s = 0.0 if self._blocked else PAUSE_AFTER_ERROR_S
        if isinstance(error, LeftToOthers):
            self.problem, self.since_ms, self._pause_s = str(error), None, PAUSE_LEFT_S
            if not was_left:
                self._log.info("the partition is left to others", because=self.problem)
        elif isinstance(error, Contradiction):
            self.problem, self._pause_s = str(error), PAUSE_CONTRADICTED_S
            self._faults.error(
                error.code,
                "the partition stops: evidence contradicts itself",
                code=error.code, what=error.what, choices=error.choices, see="docs/recovery.md",
            )  # fmt: skip
        else:
            self._failed()
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        if isinstance(error, Unknown):
            told = "commit result unknown: taking over anew"
            self._faults.warning("unknown", told, cause=str(error))
            return
        self.problem = _problem(error)
        told = "the partition starts over"
        self._faults.error("starts over", told, cause=self.problem, exc_info=True)

    def rolled_back(self, error: Aborted) -> None:
        """A step was rolled back, and is to be done again."""
        self._failed()
        self._faults.warning(
            "rolled back", "step rolled back", cause=str(error), topics=error.topics
        )

    def committed(self) -> None:
        """A step was committed: in spite of earlier failures this worker can do its work."""
        self.since_ms, self._left = None, False

    def was_blocked(self) -> bool:
        """Whether the last term ended by a topic that may not be written to; True only once."""
        blocked, self._blocked = self._blocked, False
        return blocked

    def pause(self, wait: Callable[[float], object]) -> None:
        """Pause before the partition is taken over again; `wait` lets some seconds pass."""
        if self._pause_s:
            wait(self._pause_s)

    def _failed(self) -> None:
        if self.since_ms is None:
            self.since_ms = self._clock.monotonic_ms()


def _problem(error: Exception) -> str:
    """The text of an error for people."""
    if isinstance(error, BadMark):
        # Kafka answers, so only the mark is to blame.
        return str(error)
    away = isinstance(error, ConnectionError) and str(error)
    return f"Kafka does not answer: {error}" if away else named(error)
