"""Tenants' own input topics, and the partitions whose owners read them.

A topic `belfry.schedules.<tenant>` is read by the owner of the partition at which the tenant lives.
Topics are found while the output topics are looked at, so one that is made later is found within
seconds.

    belfry.schedules.payments, 2 partitions       home of payments among 4: partition 3
    ─► the owner of partition 3 reads payments/0 and payments/1

The prefix has to be followed by the name of a tenant. Any other topic with the prefix is logged
once, and not read. Requests are signed with `origin_keys` when they are sent on, so that nobody
else can claim an origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog

from belfry.engine.forward import TenantInput
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.schedules.request import tenant_problem
from belfry.wire.worker_keys import Keys

log = structlog.get_logger(__name__)

NOTHING: Final[frozenset[TenantInput]] = frozenset()


class TenantTopics:
    """The tenant inputs of each home partition; read from any thread, replaced as a whole."""

    def __init__(self, prefix: str, homes: Homes, origin_keys: Keys = ()) -> None:
        """`origin_keys` sign the requests that are handed over."""
        self._prefix = prefix
        self._origin_keys = origin_keys
        self._homes = homes
        self._tenant_inputs: dict[int, frozenset[TenantInput]] = {}
        self._misnamed: set[str] = set()

    def of(self, home: int) -> frozenset[TenantInput]:
        """TenantInputs of the tenants that live at a partition."""
        return self._tenant_inputs.get(home, NOTHING)

    def look(self, topics: Mapping[str, Any]) -> None:
        """Learn the topics from the cluster's metadata; called by the thread of output topics."""
        found: dict[int, set[TenantInput]] = {}
        for name, topic in topics.items():
            if not name.startswith(self._prefix) or topic.error is not None:
                continue
            tenant = name.removeprefix(self._prefix)
            if tenant_problem(tenant) is not None:
                self._say_misnamed(name)
                continue
            places = [
                SourcePartition(name, partition, self._homes, self._origin_keys)
                for partition in topic.partitions
            ]
            found.setdefault(self._homes.of(tenant), set()).update(
                TenantInput(place, tenant) for place in places
            )
        self._tenant_inputs = {
            home: frozenset(tenant_inputs) for home, tenant_inputs in found.items()
        }

    def _say_misnamed(self, topic: str) -> None:
        if topic not in self._misnamed:
            self._misnamed.add(topic)
            log.warning(
                "topic not read: the prefix is not followed by a tenant's name",
                topic=topic,
                prefix=self._prefix,
            )
