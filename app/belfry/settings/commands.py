"""Settings of commands: the way to Kafka and to a worker, and what requests are written with.

Commands share environments and files with workers, so names of workers' settings are no error in
them; commands do not read these.
"""

from __future__ import annotations

from pydantic import Field, SecretStr

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
