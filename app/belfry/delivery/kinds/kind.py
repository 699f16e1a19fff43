"""The sender of events to targets of one kind.

A sender takes attempts and gives each back once, with its answer.  It decides nothing: for every
kind the dispatcher takes the step after an answer (the next attempt, a dead letter, an outcome).
"""

from __future__ import annotations

from typing import Protocol

from belfry.delivery.work import Work, WorkId


class Sender(Protocol):
    """Sends work; each piece comes back once, with its answer.

    The dispatcher's thread calls it, and is never made to wait.  Answers may come from any thread.
    """

    def start(self) -> None:
        """Begin to wait for work."""

    def hand_in(self, pieces: list[tuple[WorkId, Work]]) -> None:
        """Work to be done."""

    def drop(self) -> None:
        """Give up the work under way."""

    def stop(self) -> None:
        """Give up the work under way, and end."""
