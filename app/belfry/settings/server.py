"""Settings of the long-running processes, workers and dispatchers: a place, a port, a log.

Most of it is about the HTTP port, which strangers reach: who may call it, over which connections,
and how much of the process one caller may take. By default a worker listens on the loopback
address, over plain HTTP, without keys. A setting that would open it wider without a lock is refused
at start (`process/half_settings.py`).

The port for health and metrics is another one, so that a probe is answered while callers use the
first one up, and so that it may be open only to the people who look after the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from belfry.settings.shared import SharedSettings


class ServerSettings(SharedSettings):
    """Settings of workers and dispatchers: a data directory, an HTTP port, a log."""

    # The name of this worker, and the place of its state. Two processes cannot use one directory.
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
        description="How often a worker says that it lives, and hears of others that come and go.",
    )
    registry_wait_ms: int = Field(
        10_000,
        ge=0,
        le=600_000,
        description="Longest wait for an answer of the schema registry. Only requests that"
        " name the schema wait, and later ones of the same tenant.",
    )
    # Where the HTTP port and the port for health are, and how others reach them.
    http_host: str = Field(
        "127.0.0.1",
        description="Address of the HTTP port; loopback only until authentication is configured.",
    )
    http_port: int = Field(8700, ge=0, le=65535, description="HTTP port; 0 takes any free one.")
    health_host: str = Field(
        "127.0.0.1", description="Address of the port for health and metrics; it needs no key."
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
        " if that means all addresses, the one that leads to the brokers.",
    )
    # The callers that may ask, and the record of their requests.
    http_api_keys: SecretStr | None = Field(
        None, description="API keys as a JSON list, as `belfry api-key` prints them."
    )
    http_api_keys_file: Path | None = Field(
        None, description="The same in a file, which is read again when it changes."
    )
    audit: Literal["all", "policies", "none"] = Field(
        "all", description="Events in the audit log; policies: no changes of schedules."
    )
    # Against pages of other sites in a browser: Host and Origin of a request have to be known ones
    # (DNS rebinding).
    http_allowed_hosts: list[str] = Field(
        default_factory=list, description="Host names by which callers reach this worker."
    )
    http_allowed_origins: list[str] = Field(
        default_factory=list, description="Origins of web pages that may ask this worker."
    )
    # TLS at the port itself, or at a proxy in front of it. Files are read again when they change.
    http_tls_certificate: Path | None = Field(
        None, description="PEM file of the port's certificate chain; none: plain HTTP."
    )
    http_tls_key: Path | None = Field(None, description="PEM file of the certificate's key.")
    http_tls_authorities: Path | None = Field(
        None,
        description="PEM file of the authorities that workers trust for calls to each other; none:"
        " those of the machine.",
    )
    http_plaintext: Literal["refused", "allowed"] = Field(
        "refused",
        description="Keys and tokens over plain HTTP from other machines: allowed where a proxy in"
        " front ends TLS.",
    )
    # Limits, so that no caller takes the memory or the connections of the others: of one body, of
    # all bodies together, of requests, of connections, and of the requests of one caller in a
    # second.
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
    oidc_audience: str = Field("belfry", description="Audience of the provider's tokens.")
    oidc_jwks_url: str | None = Field(
        None, description="URL of the provider's keys; none: as its discovery document says."
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
        description="URL that spans go to, by OTLP over HTTP, such as http://127.0.0.1:4318; none:"
        " no tracing. Needs the extra `otel`.",
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
