"""Makes what lets a server start in half the time: Java notes its classes in a start and an end.

The tests do, who start dozens of servers: it costs some seconds, once for a bundle and a Java. A
newcomer's first `belfry dev` is not made longer by it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from belfry.devstack.artifacts import kafka_jars, registry_home, sole_maker
from belfry.devstack.class_cache import class_cache
from belfry.devstack.errors import DevStackError
from belfry.devstack.kafka import Kafka
from belfry.devstack.registry import Apicurio
from belfry.devstack.service import JavaService

# Java writes the file at its end.
END_S = 120.0


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


def train() -> None:
    """Make the files that are missing; who comes meanwhile waits until they are there."""
    _train(_NotedKafka, kafka_jars())
    _train(_NotedApicurio, registry_home())


def _train(kind: type[_NotedKafka | _NotedApicurio], bundle: Path) -> None:
    cache = class_cache(bundle)
    if cache.exists():
        return
    with sole_maker(cache):
        if not cache.exists():
            _make(kind, cache)


def _make(kind: type[_NotedKafka | _NotedApicurio], cache: Path) -> None:
    """Start and stop a server; one that does not start leaves nothing, and is no harm."""
    with tempfile.TemporaryDirectory(prefix="partial-", dir=cache.parent) as partial:
        server = kind(Path(partial, "server"))
        server.notes = Path(partial, cache.name)
        with suppress(DevStackError):
            server.start().wait_ready()
        server.stop(END_S)
        if server.notes.exists():
            server.notes.rename(cache)
