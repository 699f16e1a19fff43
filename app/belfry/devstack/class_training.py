"""Makes what lets a server start in half the time: Java notes its classes in a start and an end.

The tests do, who start dozens of servers: it costs some seconds, once for a bundle and a Java. A
newcomer's first `belfry dev` is not made longer by it.
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

# Seconds for a start, and for an end: Java writes the file then.
LONGEST_S = 120.0


class _Noted(JavaService):
    """A server that writes down its classes at its end."""

    notes: Path

    def _environment(self) -> Mapping[str, str]:
        given = os.environ.get("JDK_JAVA_OPTIONS", "")
        return {**os.environ, "JDK_JAVA_OPTIONS": f'{given} "-XX:AOTCacheOutput={self.notes}"'}


class _NotedKafka(_Noted, Kafka):
    """A broker that does."""


class _NotedApicurio(_Noted, Apicurio):
    """A registry that does."""


def train(kinds: Iterable[type[JavaService]]) -> None:
    """Make the files that servers of these kinds lack; who comes meanwhile waits for them.

    Where a file cannot be made, servers start as ever.
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
    # Nobody may write to this folder, or the disk is full.
    with suppress(OSError), sole_maker(cache):
        if not cache.exists():
            _make(kind, cache)


def _make(kind: type[_NotedKafka | _NotedApicurio], cache: Path) -> None:
    """Start and stop a server; one that does not start, or has to be killed, leaves nothing."""
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
    """Give the file its name once all of it is on the disk: Java checks its first page alone."""
    with notes.open("rb") as file:
        os.fsync(file.fileno())
    notes.rename(cache)
