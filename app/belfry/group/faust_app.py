"""The worker's Faust application for the `faust` command: ``faust -A belfry.group.faust_app``.

It only shows, for example by ``faust -A belfry.group.faust_app agents``: it has the agents of a
worker and asks no broker. A worker has more parts than its application, so ``belfry worker`` runs a
worker.
"""

from __future__ import annotations

from typing import Any

from belfry.balance.assignment_map import MemberMetadata
from belfry.group.group import Group
from belfry.group.membership import membership_app
from belfry.placement.partition_count import PartitionCount
from belfry.settings import Settings


class NotAWorker(Exception):
    """The application was started alone, without a worker."""


def __getattr__(name: str) -> Any:
    """``app``, made when it is asked for: importing this reads no settings."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    app = membership_app(Settings(), Group(MemberMetadata("faust")), PartitionCount(1))
    app.on_first_start = _refuse  # type: ignore[method-assign]
    return app


async def _refuse() -> None:
    raise NotAWorker(
        "this application lists agents and tables only; start a worker by: belfry worker"
    )
