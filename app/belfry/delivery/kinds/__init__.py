"""What carries events to their targets, by kind.

    dispatcher ─► carrier of the target's kind ─► None      the side that posts has it, and answers
                                               └► Carried   an answer, and records for the same
                                                            transaction that tells of it

The names are those of `schedules/target_kinds`, which judge addresses; a test holds both together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.delivery.kinds.http import Posted
from belfry.delivery.kinds.kind import Carried, Carrier
from belfry.delivery.work import Work
from belfry.schedules.target_kinds import kind_of
from belfry.settings import DeliverySettings

CARRIERS: Final[dict[str, Callable[[DeliverySettings], Carrier]]] = {
    "http": lambda _settings: Posted(),
}


class Carriers:
    """One carrier of each kind."""

    def __init__(self, settings: DeliverySettings) -> None:
        self._by_kind = {name: make(settings) for name, make in CARRIERS.items()}

    def carry(self, work: Work) -> Carried | None:
        """Make an attempt, and say what became of it; None: hand it to the side that posts."""
        return self._by_kind[kind_of(work.state.targets[0]).name].carry(work)

    def forget(self) -> None:
        """What was written was not committed: look anew at what it went to."""
        for carrier in self._by_kind.values():
            carrier.forget()
