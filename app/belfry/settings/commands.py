"""Settings of commands: the way to Kafka and to a worker, and what requests are written with."""

from __future__ import annotations

from pydantic import Field, SecretStr

from belfry.settings.shared import SharedSettings


class CommandSettings(SharedSettings):
    """Settings of every command but `belfry worker` and the worker of `belfry bench`."""

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
