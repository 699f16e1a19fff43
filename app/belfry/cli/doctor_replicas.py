"""What `belfry doctor` sees of the replicas of belfry's topics: leaders, and who is in sync.

It is in the metadata that each client gets, so nothing more is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.settings import SharedSettings

NAME: Final = "replicas"
NAMED: Final = 5


def replica_checks(cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """Partitions that nobody leads, and those with replicas that lag; nothing where there are none.

    Tenants' output topics count too, as far as their names begin with belfry's prefix.
    """
    leaderless, lagging = [], []
    for name, topic in sorted(cluster.topics.items()):
        if not name.startswith(settings.cluster.topic_prefix):
            continue
        for number, each in sorted(topic.partitions.items()):
            if each.leader < 0:
                leaderless.append(f"{name}/{number}")
            elif len(each.isrs) < len(each.replicas):
                lagging.append(f"{name}/{number}")
    if leaderless:
        yield Check(
            NAME,
            Status.PROBLEM,
            f"Nobody leads {_some(leaderless)}: nothing can be written there, and what fires to"
            " such a partition waits.",
            "start the brokers that hold its replicas",
        )
    if lagging:
        yield Check(
            NAME,
            Status.RISK,
            f"Replicas are not in sync: {_some(lagging)}. With the next broker that ends, writes"
            " may wait.",
            "look which broker is down or slow; replicas catch up by themselves",
        )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
