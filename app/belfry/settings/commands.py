"""Settings of commands: the way to Kafka and to a worker, and the options for writing requests.

Commands share environments and files with workers, so names of workers' settings are no error in
them; commands do not read these.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, SecretStr

from belfry.settings.checks import brokers
from belfry.settings.shared import SharedSettings


class CommandSettings(SharedSettings):
    """Settings of every command but `belfry worker` and the worker of `belfry bench`."""

    http_url: str = Field(
        "http://127.0.0.1:8700", description="A worker's HTTP address, for commands that ask it."
    )
    # Commands take it from the environment or the file alone: options of a process can be seen by
    # others of the machine.
    http_token: SecretStr | None = Field(
        None, description="API key or token that commands show to a worker."
    )
    own_topics: bool = Field(
        False, description="Commands write requests to their tenant's own topic."
    )
    # A tenant whose policy names a secret has to sign its requests, also those of commands.
    secrets: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="By tenant, the secret that commands sign its requests with; as JSON.",
    )
    # The other cluster of `belfry mirror`; all else is as on this side.
    mirror_source: Annotated[str, AfterValidator(brokers)] | None = Field(
        None, description="Kafka brokers of the cluster that `belfry mirror` follows."
    )
    mirror_source_kafka: dict[str, Any] | None = Field(
        None,
        repr=False,
        description="Properties of librdkafka for that cluster; none: those of this one.",
    )
