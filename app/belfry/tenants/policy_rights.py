"""Who sets which field of a tenant's policy.

What says how a tenant's own events are treated is the tenant's; what costs others something, or
reaches what is theirs, is the platform's: topics, quotas, turns, hosts, secrets, where schedules
live.  Every field stands in this table, so that nobody gets a new one by forgetting it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from belfry.tenants.policy import TenantPolicy


class Setter(StrEnum):
    """Who sets a field: the tenant's own administrator and the platform, or the platform alone."""

    TENANT = "tenant"
    PLATFORM = "platform"


SET_BY: Final[dict[str, Setter]] = {
    "output_topic": Setter.PLATFORM,
    "delivery": Setter.TENANT,
    "cloudevents": Setter.TENANT,
    "guarantee": Setter.TENANT,
    "spread": Setter.PLATFORM,
    "lifecycle": Setter.TENANT,
    "misfire": Setter.TENANT,
    "look_back_ms": Setter.TENANT,
    "max_pending": Setter.PLATFORM,
    "max_requests_per_second": Setter.PLATFORM,
    "max_fires_per_second": Setter.PLATFORM,
    "priority": Setter.PLATFORM,
    "history_ms": Setter.PLATFORM,
    "paused": Setter.TENANT,
    "http_targets": Setter.TENANT,
    "retry_max_attempts": Setter.TENANT,
    "retry_initial_ms": Setter.TENANT,
    "retry_max_ms": Setter.TENANT,
    "retry_max_age_ms": Setter.TENANT,
    "allowed_hosts": Setter.PLATFORM,
    "former_spreads": Setter.PLATFORM,
    "removed": Setter.PLATFORM,
    "signing_secret_ref": Setter.PLATFORM,
    "secret_refs": Setter.PLATFORM,
}
TENANTS: Final = tuple(name for name, setter in SET_BY.items() if setter is Setter.TENANT)
PLATFORMS: Final = tuple(name for name, setter in SET_BY.items() if setter is Setter.PLATFORM)


def platform_changes(before: TenantPolicy, after: TenantPolicy) -> list[str]:
    """Fields of the platform's in which two policies of a tenant differ, in the schema's order."""
    return [name for name in PLATFORMS if getattr(before, name) != getattr(after, name)]
