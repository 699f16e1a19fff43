"""What a worker delivers with: the shipped dispatcher, sender and settling, joined by its `setup`.

Its threads and clients go by the doors of all rooms.  Of its own it has a loop of coroutines, which
waits on the stage, a clock, and a name in its data directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from belfry.delivery import dispatcher, http_sender, log_clients, settling, setup
from belfry.delivery.attempts import SenderDependencies
from belfry.delivery.deliverer import Deliverer
from belfry.delivery.figures import UNCOUNTED
from belfry.delivery.http_requests import Secrets
from belfry.delivery.http_sender import HttpSender
from belfry.delivery.kinds import kafka
from belfry.delivery.setup import deliverer_of
from belfry.delivery.work import Finished
from belfry.settings import Settings
from tests.simulation.consumer_groups import GROUP, own_id
from tests.simulation.machine import Machine, machine
from tests.simulation.webhooks import HookLoop, wire

if TYPE_CHECKING:
    from tests.simulation.broker import Broker, Txn

TOPIC: Final = "belfry.deliveries"
# Posts at once to one host, of a child process.
PER_HOST: Final = 20
UNDELIVERED: Final = "belfry.undelivered"
REJECTED: Final = "belfry.rejected"
PREFIX: Final = f"belfry{GROUP}."
# Module, name, and what stands there instead.
DOORS: Final[list[tuple[Any, str, Any]]] = [
    (dispatcher, "SystemClock", machine),
    (settling, "SystemClock", machine),
    (kafka, "SystemClock", machine),
    (http_sender, "_Loop", HookLoop),
    (setup, "SeparateSender", lambda _given, _secrets, _breaks, finished: _child(finished)),
    (log_clients, "_own_id", lambda _data_dir, apart: own_id(machine(), apart)),
]


def deliverer(settings: Settings, frames: Any, here: Machine) -> Deliverer:
    """What a worker on this machine delivers with, not started."""
    return deliverer_of(settings, frames, None, _means(here, settings.webhook_per_host), UNCOUNTED)


def _means(here: Machine, per_host: int = PER_HOST) -> SenderDependencies:
    clock: Any = here
    assert here.hooks is not None
    transport: Any = wire(here, here.hooks)
    return SenderDependencies(transport, Secrets({}), clock, per_host)


def _child(finished: Finished) -> HttpSender:
    """What posts for a process that only delivers: a child of it, which here ends with it."""
    return HttpSender(_means(machine()), finished)


def is_deliverers(txn: Txn | None) -> bool:
    """Whether a transaction is one of those that deliver."""
    return txn is not None and txn.producer.startswith(PREFIX)


def settled(broker: Broker) -> bool:
    """Whether each delivery has its end, and each refusal was looked at."""
    groups = ((TOPIC, f"belfry{GROUP}"), (REJECTED, f"belfry{GROUP}.rejected"))
    for topic, group in groups:
        for log in broker.topics.get(topic, ()):
            last = max((e.offset for e in log.entries if e.committed), default=-1)
            kept = broker.offsets.get((group, topic, log.partition), (0, ""))
            if kept[0] <= last or log.open:
                return False
    return True
