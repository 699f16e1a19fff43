"""Settings of a worker: those of a dispatcher, what workers agree on, its share and pace.

The pace is made of three limits of one step, which is one transaction: requests taken in, bytes,
and events fired. A larger step costs less for each event and holds others up for longer;
`partitions/pacing.py` finds the size in between. No outcome depends on them.

How soon a worker is given up is made of three times, by default:

    silent for 1 s      silence_limit_ms     a standby takes its partitions over, and fences it
    silent for 10 s     session_timeout_ms   the group drops it, and shares its partitions anew
    unfit for 10 s      unfit_limit_ms       it gives its partitions away by itself
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from belfry.settings.cluster import AgreedSettings
from belfry.settings.delivery import DeliverySettings


class WorkerSettings(DeliverySettings, AgreedSettings):
    """Settings of a worker that owns schedules."""

    # Its share, and where it stands: both are told to the worker that leads the group.
    worker_weight: int = Field(
        1, ge=0, le=1_000, description="Share of the partitions; 0 only stands by for others."
    )
    worker_rack: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._-]{0,100}$",
        description="Where this worker runs; standbys are put into another rack.",
    )
    # A stranger may invent tenants, and each needs a topic before its first event.
    new_topics_per_second: float = Field(
        10, ge=0.1, le=1_000, description="Output topics of new tenants that are made a second."
    )
    # When partitions move to another worker.
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
    # Each tenant is a label of several series, which a store of metrics has to bear.
    metrics_tenants: int = Field(
        20, ge=0, le=1_000, description="Most tenants that metrics tell apart; 0: none."
    )
    # RocksDB cannot write on a full disk, so the worker counts as unfit before that.
    disk_reserve_mb: int = Field(
        64, ge=0, le=1_000_000, description="Free space without which a worker counts as unfit."
    )
    last_fires: bool = Field(
        True,
        description="Keep the last ten fires of a schedule that recurs in its row. `false` while"
        " workers of a release that does not know this setting are in the group, or may come back:"
        " they hold schedules back that have such fires.",
    )
    # A copy of the state that is not in Kafka: it makes a cold worker's start short, and no promise
    # depends on it.
    checkpoint_store: str | None = Field(
        None,
        repr=False,
        description="Folder where checkpoints of the state are kept, as a URL that fsspec knows:"
        " `file:///folder`, `s3://bucket/folder`. None: no checkpoints (docs/checkpoints.md).",
    )
    checkpoint_options: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="Options of fsspec for that file system, credentials for instance.",
    )
    checkpoint_interval_s: int = Field(
        300,
        ge=1,
        le=86_400,
        description="Seconds after which a partition's newest checkpoint is replaced.",
    )
    # Each keeps one on its own disk then, so it is off where nobody has asked for checkpoints.
    checkpoint_peers: Literal["with_store", "always", "never"] = Field(
        "with_store",
        description="Whether workers keep a checkpoint of each partition for one another, and fetch"
        " theirs: `with_store`, where a store and a workers' secret are set; `always`; `never`.",
    )
    checkpoint_peer_bytes_per_s: int = Field(
        200_000_000,
        ge=10_000_000,
        le=10_000_000_000,
        description="Bytes a second that a worker sends of its checkpoints to others, at most.",
    )
    # Where large payloads go, for tenants whose policy says from which size on.
    payload_store: str | None = Field(
        None,
        repr=False,
        description="Folder where payloads are stored that a tenant's policy keeps out of Kafka"
        " (`claim_check_over_bytes`), as a URL that fsspec knows. None: such payloads are refused.",
    )
    payload_store_options: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="Options of fsspec for that file system, credentials for instance.",
    )
    # Payloads of what is due far ahead, off Kafka's disks and the workers' meanwhile.
    day_store: str | None = Field(
        None,
        repr=False,
        description="Folder for day files, payloads of one-shot schedules that are due far ahead:"
        " a URL that fsspec knows. None: all payloads stay in Kafka and on the workers' disks"
        " (docs/day-files.md).",
    )
    day_store_options: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="Options of fsspec for that file system, credentials for instance.",
    )
    day_store_after_days: int = Field(
        7,
        ge=0,
        le=36_500,
        description="Whole days ahead from which on payloads go into day files. They come back a"
        " day before they are due. 0: none go, and all come back at once.",
    )
    # Both write the same records with the same promises.
    transaction_writer: Literal["librdkafka", "direct"] = Field(
        "direct",
        description="Who writes the transactions of partitions: belfry's own writer, one request"
        " for each broker (`direct`); or librdkafka, one for each output partition.",
    )
    # A take-over fences both in any case.  A worker of a release before this one fences the first.
    transactional_ids: int = Field(
        2,
        ge=1,
        le=2,
        description="How many transactional ids of a partition belfry's own writer uses in turn; 1"
        " while workers that know of one alone are in the group.",
    )
    # The most that one step may hold. The adaptive batch size stays below it.
    batch_records: int = Field(
        8_000, ge=1, le=50_000, description="Most requests taken in by one transaction."
    )
    step_bytes: int = Field(
        16_000_000, ge=1_000_000, le=1_000_000_000, description="Most bytes of one transaction."
    )
    fire_chunk: int = Field(
        10_000, ge=1, le=50_000, description="Most events fired by one transaction."
    )
    # A read lease, which a commit renews, is to be renewed in time all the same.
    commit_interval_ms: int = Field(
        0,
        ge=0,
        le=250,
        description="Least time from one transaction of a partition to its next, while it keeps up:"
        " fewer and larger ones cost worker and brokers less, and what comes meanwhile is late, or"
        " answered later, by up to so much. 0: as soon as the last one is committed.",
    )
    # Beyond it the clock guard takes nothing for now until a probe has shown a sane clock.
    clock_tolerance_ms: int = Field(
        500, ge=10, le=60_000, description="Clock step or skew beyond which firing pauses."
    )
