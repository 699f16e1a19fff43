"""Settings: values read once at start, from ``BELFRY_*`` variables or a TOML file.

Two families.  *Cluster* settings shape state that workers share, so they have to be equal on all
workers; they are stored with the state and compared at start (`cluster_fingerprint`).  *Process*
settings belong to one worker.  Every setting has its unit in its name, a bound and a sentence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import AfterValidator, BaseModel, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from belfry.wire.worker_keys import Keys, Purpose, keys_of

KAFKA_ENV_PREFIX = "BELFRY_KAFKA__"


NOT_SHOWN: Final = "**********"
LEAST_SECRET: Final = 16


def _long_enough(secret: SecretStr) -> SecretStr:
    size = len(secret.get_secret_value())
    if size < LEAST_SECRET:
        raise ValueError(f"it has {size} characters; {LEAST_SECRET} or more are needed")
    return secret


WorkerSecret = Annotated[SecretStr, AfterValidator(_long_enough)]


class ClusterSettings(BaseModel):
    """What all workers of one belfry have to agree on."""

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


class Settings(BaseSettings):
    """All settings of one process: `Settings()` reads the environment and the TOML file."""

    model_config = SettingsConfigDict(
        env_prefix="BELFRY_", env_nested_delimiter="__", extra="ignore", frozen=True
    )

    def __init__(self, **given: Any) -> None:
        """Settings from arguments, variables and the file; ValidationError shows no secret."""
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _without_secrets(error) from None

    bootstrap_servers: str = Field(
        "127.0.0.1:9092", min_length=1, description="Kafka brokers, host:port, comma-separated."
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
        "TOPIC", description="Strategy by which subjects are named; equal on all workers."
    )
    kafka: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="Any librdkafka property, given to every client.",
    )
    cluster: ClusterSettings = Field(default_factory=lambda: ClusterSettings())
    data_dir: Path = Field(
        Path(".belfry/worker"), description="State of this worker; one directory per worker."
    )
    create_topics: bool = Field(True, description="Create the topics that are missing at start.")
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
    new_topics_per_second: float = Field(
        10, ge=0.1, le=1_000, description="Output topics of new tenants that are made a second."
    )
    claims: Literal["trusted", "signed"] = Field(
        "trusted",
        description="Tenants on the shared topic: trusted, unless a policy names a secret; or all"
        " have to sign.",
    )
    changelog: Literal["trusted", "signed", "required"] = Field(
        "trusted",
        description="Rows of the changelog: written as they are; or signed, and unsigned ones"
        " believed (`signed`) or skipped (`required`).",
    )
    policies: Literal["trusted", "signed"] = Field(
        "trusted",
        description="Policies in the topic: carried out whoever wrote them, or only if signed with"
        " the workers' secret.",
    )
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
        description="Address under which other workers reach this one; none: host and port.",
    )
    http_worker_secret: WorkerSecret | None = Field(
        None,
        description="What workers sign with for one another; equal on all, needed with API keys.",
    )
    http_worker_secret_also: WorkerSecret | None = Field(
        None,
        description="A second secret that is believed as well, while the first is changed.",
    )
    http_api_keys: SecretStr | None = Field(
        None, description="API keys as a JSON list, as `belfry api-key` prints them."
    )
    http_api_keys_file: Path | None = Field(
        None, description="The same in a file, which is read again when it changes."
    )
    http_allowed_hosts: list[str] = Field(
        default_factory=list, description="Host names by which callers reach this worker."
    )
    http_allowed_origins: list[str] = Field(
        default_factory=list, description="Origins of web pages that may ask this worker."
    )
    http_tls_certificate: Path | None = Field(
        None, description="PEM file of the port's certificate chain; none: plain HTTP."
    )
    http_tls_key: Path | None = Field(None, description="PEM file of the certificate's key.")
    http_plaintext: Literal["refused", "allowed"] = Field(
        "refused",
        description="Keys and tokens over plain HTTP from other machines: allowed where a proxy in"
        " front ends TLS.",
    )
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
    http_url: str = Field(
        "http://127.0.0.1:8700", description="A worker's HTTP address, for commands that ask it."
    )
    http_token: SecretStr | None = Field(
        None, description="API key or token that commands show to a worker."
    )
    own_topics: bool = Field(
        False, description="Commands write requests to their tenant's own topic."
    )
    secrets: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="By tenant, the secret that commands sign its requests with; as JSON.",
    )
    secrets_dir: Path = Field(
        Path("/etc/belfry"),
        description="Folder of the files that policies may name as places of secrets.",
    )
    role: Literal["all", "schedule", "deliver"] = Field(
        "all", description="What this worker does: fires schedules, delivers over HTTP, or both."
    )
    webhook_secrets: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Signing secrets by name, whsec_...; a name tenant/... is that tenant's alone.",
    )
    webhook_private_networks: list[str] = Field(
        default_factory=list,
        description="Networks (CIDR) that HTTP targets may lie in besides public ones.",
    )
    webhook_user: str | None = Field(
        None,
        description="User that the process that posts runs as; for --role deliver started as root.",
    )
    webhook_in_flight: int = Field(
        5_000, ge=16, le=50_000, description="Most deliveries under way at the same time."
    )
    webhook_per_host: int = Field(
        64, ge=1, le=10_000, description="Most posts to one host at the same time."
    )
    session_timeout_ms: int = Field(
        10_000, ge=1_000, le=300_000, description="Silence after which the group drops a worker."
    )
    heartbeat_interval_ms: int = Field(
        300,
        ge=100,
        le=60_000,
        description="How often a worker says that it lives, and hears who comes and goes.",
    )
    transaction_timeout_ms: int = Field(
        10_000, ge=1_000, le=900_000, description="After it the broker aborts an open transaction."
    )
    worker_name: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._-]{0,100}$",
        description="Name of this worker, as others see it; none: the id of a static member, else"
        " host and process id.",
    )
    worker_weight: int = Field(
        1, ge=0, le=1_000, description="Share of the partitions; 0 only stands by for others."
    )
    worker_rack: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._-]{0,100}$",
        description="Where this worker runs; standbys are put into another rack.",
    )
    group_instance_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Static membership: a worker that is back within a session keeps its share.",
    )
    assignment: Literal["even", "hash"] = Field(
        "even", description="How owners are chosen: by weight, moving little, or by hash."
    )
    standbys: int = Field(
        1, ge=0, le=5, description="Workers that stand by for each partition, where there are any."
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
    disk_reserve_mb: int = Field(
        64, ge=0, le=1_000_000, description="Free space without which a worker counts as unfit."
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
    catch_up_limit_ms: int = Field(
        30_000, ge=0, le=600_000, description="Longest wait for waiting requests before firing."
    )
    clock_tolerance_ms: int = Field(
        500, ge=10, le=60_000, description="Clock step or skew beyond which firing pauses."
    )
    registry_wait_ms: int = Field(
        10_000, ge=0, le=600_000, description="Longest wait for answers of the schema registry."
    )
    registry_lookups_per_minute: int = Field(
        60, ge=1, le=100_000, description="Fruitless schema lookups that a tenant may cause."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="console for people, json for machines; auto looks at the terminal."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is written."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags win over the environment, the environment over the TOML file."""
        path = os.environ.get("BELFRY_CONFIG_FILE", "belfry.toml")
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, Path(path))

    def kafka_properties(self) -> dict[str, Any]:
        """Properties that every librdkafka client of this process starts from."""
        given = {property_name(key): value for key, value in self.kafka.items()}
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    def worker_keys(self, purpose: Purpose) -> Keys:
        """What workers sign with for a purpose: the first key signs, all of them verify."""
        secrets = (self.http_worker_secret, self.http_worker_secret_also)
        return keys_of([each.get_secret_value().encode() for each in secrets if each], purpose)

    def topic(self, name: str) -> str:
        """Full name of one of belfry's topics: ``schedules`` gives ``belfry.schedules``."""
        return self.cluster.topic_prefix + name

    def cluster_fingerprint(self) -> bytes:
        """Cluster settings as canonical JSON, to be stored with the state and compared."""
        return orjson.dumps(self.cluster.model_dump(), option=orjson.OPT_SORT_KEYS)


def plain(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    """Secrets by name as they are, for those who use them."""
    return {name: secret.get_secret_value() for name, secret in secrets.items()}


def may_hold_secrets(name: str) -> bool:
    """Whether a setting's value is shown to nobody, in whole or in part."""
    info = Settings.model_fields.get(name)
    return info is not None and (not info.repr or "Secret" in str(info.annotation))


def _without_secrets(error: ValidationError) -> ValidationError:
    """The same error, with a blot for each secret that was not accepted."""
    lines: list[Any] = [
        {**line, "input": NOT_SHOWN if may_hold_secrets(str(line["loc"][0])) else line["input"]}
        for line in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(error.title, lines)


def property_name(key: str) -> str:
    """librdkafka's name of a property: ``SECURITY_PROTOCOL`` gives ``security.protocol``.

    Environment variables cannot hold dots, and only one property of librdkafka has an underscore.
    """
    name = key.lower()
    return name if name == "log_level" else name.replace("_", ".")
