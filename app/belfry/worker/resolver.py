"""Schemas that requests refer to: asked from the registry in a thread of its own.

A batch whose references are not settled waits, while firing goes on.  An answer settles a
reference; a registry that cannot be reached for `wait_ms` settles it as `schema_unavailable`, which
is forgotten soon, so that the next request asks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from time import monotonic
from typing import Final, Protocol

from belfry.registry.answers import Missing, Unusable, WriterSchema
from belfry.schedules.rejections import Rejection
from belfry.wire.record import SourceRecord
from belfry.wire.requests import Reference, RequestReader

AGAIN_S: Final = 1.0
FORGET_S: Final = 10.0


class Registry(Protocol):
    """What the resolver asks."""

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema of an id."""

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema of a GUID."""


class Resolver:
    """Settles schema references for one partition's reader."""

    def __init__(self, reader: RequestReader, registry: Registry | None, wait_ms: int) -> None:
        self._reader = reader
        self._registry = registry
        self._wait_s = wait_ms / 1000
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="belfry-registry")
        self._asked: dict[Reference, Future[None]] = {}
        self._refused: dict[Reference, float] = {}
        self._closing = Event()

    def ready(self, records: Iterable[SourceRecord]) -> bool:
        """Whether all references in these records are settled; asks for those that are not."""
        self._forget_refusals()
        unknown = self._reader.unknown_schemas(records)
        for reference in unknown - self._asked.keys():
            if self._registry is None:
                self._refuse(reference, Rejection("unknown_schema_id", _NO_REGISTRY))
            else:
                self._asked[reference] = self._pool.submit(self._ask, self._registry, reference)
        for reference in [name for name, asked in self._asked.items() if asked.done()]:
            self._asked.pop(reference).result()
        return not unknown or not self._reader.unknown_schemas(records)

    def close(self) -> None:
        """Ask no more; who waits to ask again does not hold up the end of the process."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _forget_refusals(self) -> None:
        now = monotonic()
        for reference in [name for name, until in self._refused.items() if until <= now]:
            del self._refused[reference]
            self._reader.forget(reference)

    def _refuse(self, reference: Reference, rejection: Rejection) -> None:
        self._refused[reference] = monotonic() + FORGET_S
        self._reader.refuse(reference, rejection)

    def _ask(self, registry: Registry, reference: Reference) -> None:
        deadline = monotonic() + self._wait_s
        while True:
            if isinstance(reference, int):
                answer = registry.writer_schema(reference)
            else:
                answer = registry.writer_schema_by_guid(reference)
            if isinstance(answer, dict):
                self._reader.learn(reference, answer)
                return
            if isinstance(answer, Missing):
                self._refuse(reference, Rejection("unknown_schema_id", answer.reason))
                return
            if isinstance(answer, Unusable):
                self._refuse(reference, Rejection("schema_unsafe", answer.reason))
                return
            if monotonic() >= deadline:
                reason = (
                    f"The schema registry gave no answer for schema {reference!r} within"
                    f" {self._wait_s:.0f} s: {answer.reason}. Send the request again."
                )
                self._refuse(reference, Rejection("schema_unavailable", reason))
                return
            if self._closing.wait(AGAIN_S):
                return


_NO_REGISTRY: Final = (
    "The value carries a registry's schema id, and no registry is configured: set"
    " BELFRY_SCHEMA_REGISTRY_URL, or write single-object Avro."
)
