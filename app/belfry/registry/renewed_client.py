"""Confluent's client, made anew when a certificate or an authority of its properties is renewed.

    asked ─► files changed? ─┬ no                ─► the client that is there
                             └ yes: make another ─┬ the files can be used ─► the new one
                                                  └ they cannot           ─► the old one, logged

Confluent's client reads its files once, when it is made.  A process that runs for months would show
a certificate that has ended, or only believe the former authority. A request from before a change
is answered by the client that sent it: that client is closed at the next change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final

from confluent_kafka.schema_registry import SchemaRegistryClient

from belfry.host.file_watch import FileWatch

# Seconds for one request; shorter than the time between two looks at files.
TIMEOUT_S: Final = 2.0

_TIMEOUT: Final = {"timeout": TIMEOUT_S, "max.retries": 0}
# Properties that Confluent's client wants as numbers.
_NUMBERS: Final[Mapping[str, type[int | float]]] = {
    "timeout": float,
    "max.retries": int,
    "retries.wait.ms": int,
    "retries.max.wait.ms": int,
    "cache.capacity": int,
    "cache.latest.ttl.sec": float,
}
_FILES: Final = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")

# The client's own library has no other log.
log = logging.getLogger(__name__)


class RenewedClient:
    """A client of Confluent's for one registry; may be asked from any thread.

    `properties` are Confluent's; texts from the environment are made numbers if Confluent's client
    wants numbers. `clock` gives seconds and never goes back.
    """

    def __init__(self, url: str, properties: Mapping[str, Any], clock: Callable[[], float]) -> None:
        """Raises the errors of Confluent's client: `ValueError`, or `OSError` for a file."""
        given = {key: _typed(key, value) for key, value in properties.items()}
        self._configuration = {**_TIMEOUT, **given, "url": url}
        self._files = [str(given[name]) for name in _FILES if isinstance(given.get(name), str)]
        self._watch = FileWatch([Path(each) for each in self._files], clock)
        # If two threads saw one change, they would close a client that is in use.
        self._renewing = Lock()
        self._client = self._made()
        self._former: SchemaRegistryClient | None = None

    def client(self) -> SchemaRegistryClient:
        """The client to ask now; never raises."""
        with self._renewing:
            if self._watch.changed():
                self._renew()
            return self._client

    def _renew(self) -> None:
        try:
            made = self._made()
        except (OSError, ValueError) as error:
            # The files are half written, or damaged: the old client stays until they are mended.
            log.warning("%s not read again for the registry: %s", self._files, error)
            return
        former, self._former, self._client = self._former, self._client, made
        if former is not None:
            former.close()

    def close(self) -> None:
        """Close the connections; the registry cannot be asked afterwards."""
        self._client.close()
        if self._former is not None:
            self._former.close()

    def _made(self) -> SchemaRegistryClient:
        return SchemaRegistryClient.new_client(self._configuration)


def _typed(key: str, value: Any) -> Any:
    number = _NUMBERS.get(key)
    return number(value) if number is not None else value
