"""Settings that workers of one belfry agree on, because they decide the fate of a request.

`ClusterSettings` never change in the life of a belfry: state lies under these names and numbers.
`AgreedSettings` may change, by a restart of the workers one by one.  `agreement_rules.py`
says of each setting whether it has to be equal and why, and `agreement.py` compares.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class ClusterSettings(BaseModel):
    """Settings that are fixed for the life of a belfry.

    It is stored with the state as canonical JSON, so a worker with other values finds out before it
    touches anything.
    """

    topic_prefix: str = Field(
        "belfry.",
        pattern=r"^[A-Za-z0-9._-]{1,60}$",
        description="Put before every topic name; two belfrys on one Kafka differ in it.",
    )
    app_id: str = Field(
        "belfry",
        pattern=r"^[A-Za-z0-9._-]{1,60}$",
        description="Consumer group, and the stem of every transactional id.",
    )
    partitions: int = Field(
        4, ge=1, le=1024, description="Partitions of a topic that belfry creates."
    )


class AgreedSettings(BaseModel):
    """Settings that workers agree on, and may change together."""

    # How tenants are treated that have no policy; a policy wins over these.
    default_delivery: Literal["PAYLOAD", "ENVELOPE"] = Field(
        "PAYLOAD", description="Delivery of tenants that have no policy of their own."
    )
    lifecycle: Literal["ALL", "OUTCOMES", "FAILURES"] = Field(
        "FAILURES", description="Which lifecycle records tenants without a policy get."
    )
    unknown_tenants: Literal["open", "closed"] = Field(
        "open", description="Tenants without a policy: served with the defaults, or refused."
    )
    unknown_tenants_most: int = Field(
        1_000, ge=0, le=1_000_000, description="Most output topics of tenants without a policy."
    )
    claims: Literal["trusted", "signed"] = Field(
        "trusted",
        description="Tenants on the shared topic: trusted, unless a policy names a secret; or all"
        " have to sign.",
    )
    # A release that knows of no moves cannot read a partition from which a group has moved.
    key_group_moves: bool = Field(
        False,
        description="Let key groups move between partitions on request"
        " (docs/rebalance.md). `true` once all workers are of a release that knows this setting;"
        " needs http_worker_secret.",
    )
    # A lookup is fruitless where the registry knows no such schema. So a tenant that invents ids
    # cannot keep the registry busy.
    registry_lookups_per_minute: int = Field(
        60, ge=1, le=100_000, description="Fruitless schema lookups that a tenant may cause."
    )
    # Requests that wait are taken in before overdue events fire, so that a cancel of them counts.
    catch_up_limit_ms: int = Field(
        30_000, ge=0, le=600_000, description="Longest wait for waiting requests before firing."
    )
    # The worker that leads the group decides by its own value.
    assignment: Literal["even", "hash"] = Field(
        "even", description="How owners are chosen: by weight, moving little, or by hash."
    )
    standbys: int = Field(
        1, ge=0, le=5, description="Workers that stand by for each partition, where there are any."
    )
