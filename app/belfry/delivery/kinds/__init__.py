"""The senders of events to their targets, by kind.

    dispatcher ── work ──► sender of the target's kind ── answer ──► dispatcher

The names are those of `schedules/target_kinds`, which judge addresses; a test holds both together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from belfry.delivery.figures import ClientTold, silent_clients
from belfry.delivery.kinds.kafka import KafkaSender
from belfry.delivery.kinds.kind import Sender
from belfry.delivery.work import Finished, Work, WorkId
from belfry.schedules.target_kinds import kind_of
from belfry.settings import DeliverySettings

# HTTP is not here: `delivery/setup.py` says whether this process posts, or a child of it.
HTTP: Final = "http"
SENDERS: Final[dict[str, Callable[[DeliverySettings, Finished, ClientTold], Sender]]] = {
    "kafka": KafkaSender,
}


class Senders:
    """One sender of each kind, which together are as one."""

    def __init__(
        self,
        settings: DeliverySettings,
        http: Callable[[Finished], Sender],
        finished: Finished,
        clients: ClientTold = silent_clients,
    ) -> None:
        """`finished` gets every piece back, from threads of the senders."""
        self._by_kind = {HTTP: http(finished)}
        self._by_kind |= {name: make(settings, finished, clients) for name, make in SENDERS.items()}

    def start(self) -> None:
        """Begin to wait for work."""
        for sender in self._by_kind.values():
            sender.start()

    def hand_in(self, pieces: list[tuple[WorkId, Work]]) -> None:
        """Work to be done, in its order for each kind.  All targets of a work are of one kind."""
        shares: defaultdict[str, list[tuple[WorkId, Work]]] = defaultdict(list)
        for work_id, work in pieces:
            shares[kind_of(work.state.targets[0]).name].append((work_id, work))
        for name, share in shares.items():
            self._by_kind[name].hand_in(share)

    def drop(self) -> None:
        """Give up the work under way."""
        for sender in self._by_kind.values():
            sender.drop()

    def stop(self) -> None:
        """Give up the work under way, and end."""
        for sender in self._by_kind.values():
            sender.stop()
