"""What every process of belfry has: the way to Kafka and the registry, and which belfry it is.

`SharedSettings` are those of all processes; `ServerSettings` add what the long-running ones have,
the workers and the dispatchers: a port, a data directory, a log.

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
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import AfterValidator, Field, SecretStr

from belfry.settings.brokers import brokers
from belfry.settings.cluster import ClusterSettings
from belfry.settings.properties import property_name
from belfry.settings.sources import Sourced
from belfry.wire.worker_keys import Keys, Purpose, keys_of

# Characters of the shortest secret that workers sign with.
LEAST_SECRET: Final = 16


def _long_enough(secret: SecretStr) -> SecretStr:
    """The secret, unless it could be guessed; ValueError without its text."""
    size = len(secret.get_secret_value())
    if size < LEAST_SECRET:
        raise ValueError(f"it has {size} characters; {LEAST_SECRET} or more are needed")
    return secret


# Measurements are kept by hours, so their intervals have to fill an hour exactly.
HOUR_MS: Final = 3_600_000


def _divides_an_hour(interval_ms: int) -> int:
    """An interval of the canary in ms; ValueError unless it is 0, or a second or more and a
    divisor.
    """
    if interval_ms and (interval_ms < 1_000 or HOUR_MS % interval_ms):
        raise ValueError(
            f"{interval_ms} is neither 0 nor 1 000 or more and a divisor of an hour;"
            " 10000 asks every ten seconds"
        )
    return interval_ms


# Each period is a record for each tenant that used anything, so periods are not shorter.
METERED_LEAST_MS: Final = 10_000


def _meters_an_hour(interval_ms: int) -> int:
    """A period of metering in ms; ValueError unless it is 0, or a divisor of an hour."""
    if interval_ms and (interval_ms < METERED_LEAST_MS or HOUR_MS % interval_ms):
        raise ValueError(
            f"{interval_ms} is neither 0 nor 10 000 or more and a divisor of an hour;"
            " 3600000 counts by the hour"
        )
    return interval_ms


WorkerSecret = Annotated[SecretStr, AfterValidator(_long_enough)]


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
    changelog: Literal["trusted", "signed", "required"] = Field(
        "trusted",
        description="Rows of the changelog: written as they are; or signed, and unsigned ones"
        " believed (`signed`) or skipped (`required`).",
    )
    # Who may write to the topic of policies decides about tenants, so policies may have to be
    # signed.
    policies: Literal["trusted", "signed"] = Field(
        "trusted",
        description="Policies in the topic: carried out whoever wrote them, or only if signed with"
        " the workers' secret.",
    )
    # What is measured for operators. All workers have the same, or the figures have gaps.
    canary_interval_ms: Annotated[int, AfterValidator(_divides_an_hour)] = Field(
        0,
        ge=0,
        le=60_000,
        description="How often belfry schedules an event to itself on each partition, to measure"
        " how available it is; 0: never. A divisor of an hour.",
    )
    metering_interval_ms: Annotated[int, AfterValidator(_meters_an_hour)] = Field(
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
        names.
        """
        given = {property_name(key): value for key, value in self.kafka.items()}
        return {"bootstrap.servers": self.bootstrap_servers, **given}

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


class ServerSettings(SharedSettings):
    """What workers and dispatchers have: a data directory, an HTTP port, a log."""

    # Who this worker is, and where its state lies. Two processes cannot use one directory.
    data_dir: Path = Field(
        Path(".belfry/worker"), description="State of this worker; one directory per worker."
    )
    worker_name: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._-]{0,100}$",
        description="Name of this worker, as others see it; none: the id of a static member, else"
        " host and process id.",
    )
    group_instance_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Static membership: a worker that is back within a session keeps its share.",
    )
    create_topics: bool = Field(True, description="Create the topics that are missing at start.")
    # Timing towards the group and the registry.
    heartbeat_interval_ms: int = Field(
        300,
        ge=100,
        le=60_000,
        description="How often a worker says that it lives, and hears who comes and goes.",
    )
    registry_wait_ms: int = Field(
        10_000,
        ge=0,
        le=600_000,
        description="Longest wait for an answer of the schema registry. Who names the schema waits"
        " by itself.",
    )
    # Where the HTTP port and the port for health are, and how others reach them.
    http_host: str = Field(
        "127.0.0.1",
        description="Address of the HTTP port; loopback only until authentication is configured.",
    )
    http_port: int = Field(8700, ge=0, le=65535, description="HTTP port; 0 takes any free one.")
    health_host: str = Field(
        "127.0.0.1", description="Address of the port for health and metrics; nobody is asked who."
    )
    health_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="Port for health and metrics alone; none: http_port and 1000, if it is free.",
    )
    http_advertised_url: str | None = Field(
        None,
        pattern=r"^https?://[^/\s]+$",
        description="Address under which other workers reach this one; none: host and port, or"
        " where that is all addresses, the one that leads to the brokers.",
    )
    # Who may ask, and what is written down of it.
    http_api_keys: SecretStr | None = Field(
        None, description="API keys as a JSON list, as `belfry api-key` prints them."
    )
    http_api_keys_file: Path | None = Field(
        None, description="The same in a file, which is read again when it changes."
    )
    audit: Literal["all", "policies", "none"] = Field(
        "all", description="What the audit log holds; policies: no changes of schedules."
    )
    # Against pages of other sites in a browser: Host and Origin of a request have to be known ones
    # (DNS rebinding).
    http_allowed_hosts: list[str] = Field(
        default_factory=list, description="Host names by which callers reach this worker."
    )
    http_allowed_origins: list[str] = Field(
        default_factory=list, description="Origins of web pages that may ask this worker."
    )
    # TLS at the port itself, or at a proxy in front of it.
    http_tls_certificate: Path | None = Field(
        None, description="PEM file of the port's certificate chain; none: plain HTTP."
    )
    http_tls_key: Path | None = Field(None, description="PEM file of the certificate's key.")
    http_plaintext: Literal["refused", "allowed"] = Field(
        "refused",
        description="Keys and tokens over plain HTTP from other machines: allowed where a proxy in"
        " front ends TLS.",
    )
    # Limits, so that no caller takes the memory or the connections of the others: of one body, of
    # all bodies together, of requests, of connections, and of what one caller does in a second.
    http_body_bytes: int = Field(
        1_100_000, ge=1_000, le=100_000_000, description="Largest body of a request."
    )
    http_bulk_bytes: int = Field(
        16_000_000, ge=1_000, le=1_000_000_000, description="Largest body of JSON lines."
    )
    http_bodies_bytes: int = Field(
        256_000_000,
        ge=1_000_000,
        le=100_000_000_000,
        description="Bodies of all requests under way, in bytes.",
    )
    http_under_way: int = Field(
        1_000, ge=1, le=100_000, description="Most HTTP requests at the same time."
    )
    http_connections: int = Field(
        2_000, ge=10, le=100_000, description="Most connections to the HTTP port."
    )
    http_connections_per_address: int = Field(
        500, ge=1, le=100_000, description="The same from one address, unless it is a proxy's."
    )
    http_requests_per_second: float = Field(
        5_000,
        ge=1,
        le=1_000_000,
        description="Requests of one caller a second; each of JSON lines counts.",
    )
    http_failures_per_second: float = Field(
        20, ge=1, le=1_000_000, description="Tokens a second of one address that are not known."
    )
    http_proxies: list[str] = Field(
        default_factory=list,
        description="Addresses or networks of proxies whose X-Forwarded-For names the caller.",
    )
    # Bearer tokens of an OpenID provider (RFC 7519), besides keys or instead of them.
    oidc_issuer: str | None = Field(
        None, description="OpenID provider whose bearer tokens are taken."
    )
    oidc_audience: str = Field("belfry", description="Whom the provider's tokens are for.")
    oidc_jwks_url: str | None = Field(
        None, description="Where the provider's keys lie; none: as its discovery document says."
    )
    oidc_tenants_claim: str = Field(
        "belfry_tenants", description="Claim that lists the tenants of a token."
    )
    oidc_roles_claim: str = Field(
        "belfry_roles", description="Claim that lists its roles: read, schedule, admin, operate."
    )
    # Traces and logs.
    otlp_url: str | None = Field(
        None,
        pattern=r"^https?://[^/\s]+(/\S*)?$",
        description="Where spans are sent by OTLP over HTTP, such as http://127.0.0.1:4318; none:"
        " nothing is traced. Needs the extra `otel`.",
    )
    otlp_queue_spans: int = Field(
        10_000,
        ge=100,
        le=1_000_000,
        description="Most spans that wait for the collector; more are dropped, and counted.",
    )
    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="console for people, json for machines; auto looks at the terminal."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is written."
    )
