"""The port for health and metrics: a listener of its own, which callers of the API cannot fill.

The API's port answers the same questions.  This one still answers if that one has no room, so that
an orchestrator does not restart a worker with too many callers.
"""

from __future__ import annotations

from typing import Final

import structlog
from starlette.types import ASGIApp

from belfry.api.server.room import Connections
from belfry.api.server.server import HttpAddressError, HttpServer, Manner
from belfry.settings import ServerSettings

# The port for health is so far behind the API's, unless a setting names it.
BEYOND: Final = 1_000
# Connections of this port; an orchestrator and a scraper need few.
MOST_CONNECTIONS: Final = 200
PER_ADDRESS: Final = 50
HIGHEST_PORT: Final = 65_535

log = structlog.get_logger(__name__)


class HttpPorts:
    """The API's port and the one for health; `start` and `stop` are called once each."""

    def __init__(self, http: HttpServer, health: ASGIApp, settings: ServerSettings) -> None:
        """`health` answers beside the API, and needs no key."""
        self._http = http
        self._app = health
        self._settings = settings
        self._health: HttpServer | None = None

    @property
    def url(self) -> str:
        """Address of the API; valid once `start` has returned."""
        return self._http.url

    def url_at(self, host: str) -> str:
        """The same for those who reach this machine by this name or address."""
        return self._http.url_at(host)

    @property
    def health_url(self) -> str | None:
        """Address of the port for health, or None where there is none."""
        return None if self._health is None else self._health.url

    def start(self) -> None:
        """Open both; raises `HttpAddressError`.

        A port for health that the settings name has to be free. The default one may be in use by
        another worker; then the API's port alone answers.
        """
        port = self._near(self._http.start())
        server = HttpServer(
            self._app,
            self._settings.health_host,
            port,
            guarded=True,  # It opens wherever the settings say.
            manner=Manner(
                room=Connections(MOST_CONNECTIONS, PER_ADDRESS),
                name="health",
                setting="BELFRY_HEALTH_PORT",
            ),
        )
        try:
            server.start()
        except HttpAddressError as error:
            if self._settings.health_port is not None:
                raise
            log.warning("no port for health alone", port=port, reason=str(error))
        else:
            self._health = server
        log.info("http", url=self.url, health_url=self.health_url)

    def stop(self) -> None:
        """Close both."""
        self._http.stop()
        if self._health is not None:
            self._health.stop()

    def _near(self, http_port: int) -> int:
        """The port for health: as a setting says, near the API's, or any where that was any."""
        given = self._settings.health_port
        if given is not None:
            return given
        near = http_port + BEYOND
        return near if self._settings.http_port and near <= HIGHEST_PORT else 0
