"""Counts of a process that delivers: results of deliveries, and figures of its Kafka clients.

deliveries    reads deliveries and refused retries, and writes follow-up records
targets       writes to topics that are targets
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from belfry.delivery.answers import Sent
from belfry.delivery.gathering import Told, untold
from belfry.schedules.target_kinds import kind_of
from belfry.schedules.targets import HttpTarget
from belfry.settings import DeliverySettings
from belfry.telemetry.metrics import Metrics

DELIVERIES: Final = "deliveries"
TARGETS: Final = "targets"

# Properties by which clients of a kind tell their figures; only for those that are always polled.
ClientTold = Callable[[str], Mapping[str, Any]]


def silent_clients(_kind: str) -> Mapping[str, Any]:
    """Ignore figures of clients."""
    return {}


def unlost(_topic: str, _offsets: int) -> None:
    """Ignore the count of records that were removed before they were read."""


def unmeasured(_sent: Iterable[Sent]) -> None:
    """Ignore how long targets take."""


class DeliveryFigures(NamedTuple):
    """The receivers of counts."""

    delivered: Told = untold
    clients: ClientTold = silent_clients
    # Posts that were made, and records that were written, each once.
    sent: Callable[[Iterable[Sent]], None] = unmeasured
    # Which of the topics, and how many of its offsets were removed before they were read.
    removed: Callable[[str, int], None] = unlost


UNCOUNTED: Final = DeliveryFigures()


def figures_of(metrics: Metrics, settings: DeliverySettings) -> DeliveryFigures:
    """Everything to the metrics of this process."""

    @cache
    def clients(kind: str) -> Mapping[str, Any]:
        return metrics.client(kind, settings.client_statistics_interval_ms).properties()

    def sent(posts: Iterable[Sent]) -> None:
        for each in posts:
            kind = kind_of(HttpTarget(each.target)).name
            # The clock may have been set back meanwhile.
            metrics.target_answered(kind, max(0.0, each.ended_ms - each.began_ms) / 1000)

    return DeliveryFigures(metrics.delivered, clients, sent, metrics.deliveries_removed)
