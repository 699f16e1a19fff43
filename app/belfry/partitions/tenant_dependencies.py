"""Parts of the worker that a partition's readers of tenants' own topics use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from belfry.engine.effects import STEP_BYTES
from belfry.host.clock import SystemClock
from belfry.host.passing import PassThrough, at_once
from belfry.kafka.fetch_position import Where
from belfry.partitions.forwarding import TenantInputProducer
from belfry.partitions.gauges import Gauges
from belfry.partitions.tenant_topics import TenantTopics
from belfry.tenants.directory import Tenants


@dataclass(frozen=True, slots=True)
class TenantInputDependencies:
    """The parts of the worker that a partition's tenant inputs use."""

    topics: TenantTopics
    tenants: Tenants
    producer: Callable[[], TenantInputProducer]
    consumer_properties: dict[str, Any]
    clock: SystemClock
    metrics: Gauges
    # The ends of logs for readers of committed records: one question for all of them.
    readable: Callable[[Sequence[Where]], dict[Where, int]]
    step_bytes: int = STEP_BYTES
    through: PassThrough = at_once
