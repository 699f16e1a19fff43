"""Checks whether a server answers, by small requests over HTTP to the loopback address.

It uses `http.client` and not a client library: such libraries honour proxy settings of the
environment, and a request to a process on this machine must never leave it.
"""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

TIMEOUT_S = 5.0


def http_status(url: str) -> int | None:
    """Status code of a GET, or None where no server answers (yet)."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port or 80, timeout=TIMEOUT_S
    )
    try:
        connection.request("GET", parts.path or "/")
        with connection.getresponse() as response:
            return response.status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
