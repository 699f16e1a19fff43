"""Settings of a worker: those of a dispatcher, what workers agree on, its share and pace."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from belfry.settings.cluster import AgreedSettings
from belfry.settings.delivery import DeliverySettings


class WorkerSettings(DeliverySettings, AgreedSettings):
    """Settings of a worker that owns schedules."""

    worker_weight: int = Field(
        1, ge=0, le=1_000, description="Share of the partitions; 0 only stands by for others."
    )
    worker_rack: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._-]{0,100}$",
        description="Where this worker runs; standbys are put into another rack.",
    )
    new_topics_per_second: float = Field(
        10, ge=0.1, le=1_000, description="Output topics of new tenants that are made a second."
    )
    silence_limit_ms: int = Field(
        1_000,
        ge=0,
        le=300_000,
        description="Silence after which a standby takes over ahead of the group; 0: never.",
    )
    hand_over_limit_ms: int = Field(
        3_000, ge=0, le=60_000, description="Longest wait for successors when a worker stops."
    )
    unfit_limit_ms: int = Field(
        10_000,
        ge=1_000,
        le=3_600_000,
        description="After so long a worker that cannot work gives its partitions away.",
    )
    metrics_tenants: int = Field(
        20, ge=0, le=1_000, description="Most tenants that metrics tell apart; 0: none."
    )
    disk_reserve_mb: int = Field(
        64, ge=0, le=1_000_000, description="Free space without which a worker counts as unfit."
    )
    client_statistics_interval_ms: int = Field(
        10_000,
        ge=0,
        le=3_600_000,
        description="How often librdkafka tells figures of its clients, for `belfry_client_...`."
        " 0: never; clients of belfry's own tell theirs all the same.",
    )
    transaction_writer: Literal["librdkafka", "direct"] = Field(
        "direct",
        description="Who writes the transactions of partitions: belfry's own writer, one request"
        " for each broker (`direct`); or librdkafka, one for each output partition.",
    )
    batch_records: int = Field(
        8_000, ge=1, le=50_000, description="Most requests taken in by one transaction."
    )
    step_bytes: int = Field(
        16_000_000, ge=1_000_000, le=1_000_000_000, description="Most bytes of one transaction."
    )
    fire_chunk: int = Field(
        10_000, ge=1, le=50_000, description="Most events fired by one transaction."
    )
    clock_tolerance_ms: int = Field(
        500, ge=10, le=60_000, description="Clock step or skew beyond which firing pauses."
    )
