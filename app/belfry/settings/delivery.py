"""Settings of processes that post fired events over HTTP: workers, and dispatchers beside them.

`belfry worker --role deliver` runs a dispatcher alone.  It owns no schedules, so it has these
settings and no others.  A worker has them too, because it delivers unless its role says otherwise.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from belfry.settings.server import ServerSettings
from belfry.settings.sources import Sourced

Role = Literal["all", "schedule", "deliver"]
ROLE_SAYS = "Work of this worker: it fires schedules, delivers over HTTP, or both."


class RoleSettings(Sourced):
    """The settings that are read first, because they say which others the process has."""

    role: Role = Field("all", description=ROLE_SAYS)


class DeliverySettings(ServerSettings):
    """Settings of a dispatcher, and of a worker that delivers.

    The posting part runs in a process of its own, which may run as another user than the
    dispatcher.
    """

    role: Role = Field("all", description=ROLE_SAYS)
    webhook_secrets: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Signing secrets by name, whsec_...; a name tenant/... is that tenant's alone.",
    )
    # Without an entry here only public addresses are posted to: targets come from tenants.
    webhook_private_networks: list[str] = Field(
        default_factory=list,
        description="Networks (CIDR) that HTTP targets may lie in besides public ones.",
    )
    webhook_user: str | None = Field(
        None,
        description="User that the process that posts runs as; for --role deliver started as root.",
    )
    # Limits of the process that posts: in all, and to one host, so that a slow host holds up its
    # own.
    webhook_in_flight: int = Field(
        5_000, ge=16, le=50_000, description="Most deliveries under way at the same time."
    )
    webhook_per_host: int = Field(
        64, ge=1, le=10_000, description="Most posts to one host at the same time."
    )
    client_statistics_interval_ms: int = Field(
        10_000,
        ge=0,
        le=3_600_000,
        description="How often librdkafka tells figures of its clients, for `belfry_client_...`."
        " 0: never; clients of belfry's own tell theirs all the same.",
    )
