"""What carries events to targets of one kind."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from belfry.delivery.answers import Answer
from belfry.delivery.work import Produced, Work


class Carried(NamedTuple):
    """What became of an attempt, and what is to be written together with the word of it."""

    answer: Answer
    records: list[Produced]


class Carrier(Protocol):
    """Carries events to targets of one kind; used by the dispatcher's thread alone."""

    def carry(self, work: Work) -> Carried | None:
        """Make the attempt, and say what became of it; None: hand it to the side that posts."""

    def forget(self) -> None:
        """What was written was not committed: look anew at what it went to."""
