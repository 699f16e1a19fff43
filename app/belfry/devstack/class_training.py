"""Makes the file of prepared classes: Java writes it at the end of one training run of a server.

The tests do this, because they start dozens of servers: it costs some seconds, once for each bundle
and Java release. The first `belfry dev` of a new user does not do it, so it takes no longer.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from belfry.devstack.artifacts import kafka_jars, registry_home, sole_maker
from belfry.devstack.class_cache import class_cache
from belfry.devstack.errors import DevStackError
from belfry.devstack.kafka import Kafka
from belfry.devstack.registry import Apicurio
from belfry.devstack.service import JavaService

# Seconds for a start, and for an end, at which Java writes the file.
LONGEST_S = 120.0


class _Noted(JavaService):
    """A server that writes down its classes at its end."""

    notes: Path

    def _environment(self) -> Mapping[str, str]:
        given = os.environ.get("JDK_JAVA_OPTIONS", "")
        return {**os.environ, "JDK_JAVA_OPTIONS": f'{given} "-XX:AOTCacheOutput={self.notes}"'}


class _NotedKafka(_Noted, Kafka):
    """A broker that writes down its classes."""


class _NotedApicurio(_Noted, Apicurio):
    """A registry that writes down its classes."""


def train(kinds: Iterable[type[JavaService]]) -> None:
    """Make the missing files for servers of these kinds; another caller waits meanwhile.

    Where a file cannot be made, servers start without it.
    """
    wanted = set(kinds)
    if any(issubclass(each, Kafka) for each in wanted):
        _train(_NotedKafka, kafka_jars())
    if any(issubclass(each, Apicurio) for each in wanted):
        _train(_NotedApicurio, registry_home())


def _train(kind: type[_NotedKafka | _NotedApicurio], bundle: Path) -> None:
    cache = class_cache(bundle)
    if cache.exists():
        return
    # The folder may be read-only, or the disk full.
    with suppress(OSError), sole_maker(cache):
        if not cache.exists():
            _make(kind, cache)


def _make(kind: type[_NotedKafka | _NotedApicurio], cache: Path) -> None:
    """Start and stop a server; one that fails to start, or has to be killed, leaves no file."""
    with tempfile.TemporaryDirectory(
        prefix="partial-", dir=cache.parent, ignore_cleanup_errors=True
    ) as partial:
        server = kind(Path(partial, "server"))
        server.notes = Path(partial, cache.name)
        with suppress(DevStackError):
            try:
                server.start().wait_ready(LONGEST_S)
            finally:
                server.stop(LONGEST_S)
            if (server.exit_code() or 0) >= 0 and server.notes.exists():
                _keep(server.notes, cache)


def _keep(notes: Path, cache: Path) -> None:
    """Give the file its name once all of it is on disk: Java checks only its first page."""
    with notes.open("rb") as file:
        os.fsync(file.fileno())
    notes.rename(cache)
