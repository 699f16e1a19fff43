"""What every process of belfry has: the way to Kafka and the registry, and which belfry it is.

A setting is a field with a bound and a sentence, from which docs/settings.md is made. Its unit is
in its name: ``_ms`` milliseconds, ``_s`` seconds, ``_bytes`` bytes, ``_mb`` MB. What is not
accepted is told at start with its name and its variable, and the process does not run. Settings are
frozen: what is to change while a process runs is a policy of a tenant, or the content of a file
that a setting names.

Fields with ``repr=False`` or of type `SecretStr` may hold credentials. Their values are in no error
and no log.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, Field, SecretStr

from belfry.settings.checks import (
    HOUR_MS,
    brokers,
    divides_an_hour,
    long_enough,
    meters_an_hour,
)
from belfry.settings.cluster import ClusterSettings
from belfry.settings.properties import property_name, returns
from belfry.settings.sources import Sourced
from belfry.wire.worker_keys import Keys, Purpose, keys_of

WorkerSecret = Annotated[SecretStr, AfterValidator(long_enough)]


class SharedSettings(Sourced):
    """What every process has; commands need no more than this and an address of a worker."""

    # The way to Kafka and the registry. Properties of librdkafka go to every client of the process,
    # and those of the registry to its client.
    bootstrap_servers: Annotated[str, AfterValidator(brokers)] = Field(
        "127.0.0.1:9092", description="Kafka brokers, host:port, comma-separated."
    )
    kafka: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="Any librdkafka property, given to every client.",
    )
    schema_registry_url: str | None = Field(
        None,
        repr=False,
        description="Confluent-compatible schema registry; none: single-object encoding.",
    )
    registry: dict[str, str] = Field(
        default_factory=dict,
        repr=False,
        description="Further properties of the schema registry's client.",
    )
    registry_auto_register: bool = Field(
        False, description="Register belfry's own schemas at start (`belfry dev` does)."
    )
    registry_subjects: Literal["TOPIC", "RECORD", "TOPIC_RECORD"] = Field(
        "TOPIC", description="Strategy by which subjects are named."
    )
    # Which belfry this is: names that never change.
    cluster: ClusterSettings = Field(default_factory=lambda: ClusterSettings())
    # Trust between workers. From the secret a key is made for each purpose: forwarded HTTP
    # requests, requests that workers write, rows of the changelog, policies.
    http_worker_secret: WorkerSecret | None = Field(
        None,
        description="What workers sign with for one another; needed with API keys.",
    )
    http_worker_secret_also: WorkerSecret | None = Field(
        None,
        description="A second secret that is believed as well, while the first is changed.",
    )
    secrets_dir: Path = Field(
        Path("/etc/belfry"),
        description="Folder of the files that policies may name as places of secrets and keys.",
    )
    changelog: Literal["trusted", "signed", "required"] = Field(
        "trusted",
        description="Rows of the changelog: written as they are; or signed, and unsigned ones"
        " believed (`signed`) or skipped (`required`).",
    )
    # Who may write to the topic of policies decides about tenants, so policies may have to be
    # signed.
    policies: Literal["trusted", "signed"] = Field(
        "trusted",
        description="Policies in the topic: every writer's are carried out, or only those signed"
        " with the workers' secret.",
    )
    # What is measured for operators. All workers have the same, or the figures have gaps.
    canary_interval_ms: Annotated[int, AfterValidator(divides_an_hour)] = Field(
        0,
        ge=0,
        le=60_000,
        description="How often belfry schedules an event to itself on each partition, to measure"
        " how available it is; 0: never. A divisor of an hour.",
    )
    metering_interval_ms: Annotated[int, AfterValidator(meters_an_hour)] = Field(
        0,
        ge=0,
        le=HOUR_MS,
        description="Length of the periods for which the usage of tenants is counted; 3600000: by"
        " the hour, 0: not at all.",
    )
    # How soon a worker that is gone is noticed: by the group, and by the broker of an open
    # transaction. Checks of the brokers compare their limits with these.
    session_timeout_ms: int = Field(
        10_000, ge=1_000, le=300_000, description="Silence after which the group drops a worker."
    )
    transaction_timeout_ms: int = Field(
        10_000, ge=1_000, le=900_000, description="After it the broker aborts an open transaction."
    )

    def kafka_properties(self) -> dict[str, Any]:
        """Properties that every librdkafka client of this process starts from, by librdkafka's
        names; those that an operator gives win.
        """
        given = {property_name(key): value for key, value in self.kafka.items()}
        return {"bootstrap.servers": self.bootstrap_servers, **returns(given), **given}

    def worker_keys(self, purpose: Purpose) -> Keys:
        """What workers sign with for a purpose: the first key signs, all of them verify.

        No key, where there is no secret: nothing is signed then.
        """
        return keys_of(self.worker_secrets(), purpose)

    def worker_secrets(self) -> tuple[bytes, ...]:
        """The workers' secrets: the first one signs, all of them are believed."""
        secrets = (self.http_worker_secret, self.http_worker_secret_also)
        return tuple(each.get_secret_value().encode() for each in secrets if each)

    def topic(self, name: str) -> str:
        """Full name of one of belfry's topics: ``schedules`` gives ``belfry.schedules``."""
        return self.cluster.topic_prefix + name

    def cluster_fingerprint(self) -> bytes:
        """Cluster settings as canonical JSON, to be stored with the state and compared.

        Equal settings have equal bytes: keys are sorted, and nothing else is in it.
        """
        return orjson.dumps(self.cluster.model_dump(), option=orjson.OPT_SORT_KEYS)
