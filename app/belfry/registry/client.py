"""`Registry`: one schema registry; requests have a short time-out, answers are kept for long.

There are two kinds of requests. Writers' schemas are on the path of every unknown record: the
answer is a value, and comes from memory if it can (`schema_memory.py`). An operator registers and
checks belfry's own schemas, so these requests raise errors.

A single request waits `TIMEOUT_S` at most (`renewed_client.py`) and is not repeated here: the
caller knows how long the record may wait.  All methods may be called from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, TypeVar
from uuid import UUID

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from belfry.host.errors import named
from belfry.registry.addresses import UNREADABLE, is_readable, shown
from belfry.registry.answers import (
    RegistryAddressError,
    RegistrySilentError,
    RegistryUnreachableError,
    SchemaRefusedError,
    WriterSchema,
)
from belfry.registry.renewed_client import RenewedClient
from belfry.registry.schema_memory import MISSING_S, SchemaMemory
from belfry.wire import catalogue
from belfry.wire.readings import Reference

# Each version of a schema can read each other one, and be read by it.
FULL_TRANSITIVE: Final = "FULL_TRANSITIVE"

# Statuses by which a registry refuses a schema.
_REFUSALS: Final = frozenset({409, 422})

_T = TypeVar("_T")


class Registry:
    """A registry at `url` (several, with commas, are tried in turn).

    `properties` are those of Confluent's client, such as ``basic.auth.user.info``; texts from the
    environment are made numbers if the client wants numbers.  Raises `RegistryAddressError`.
    """

    def __init__(
        self,
        url: str,
        properties: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not is_readable(url):
            raise RegistryAddressError(UNREADABLE)
        self.url = shown(url)
        self._connection = RenewedClient(url, properties or {}, clock)
        self._clock = clock
        self._memory = SchemaMemory(clock)
        self._own_ids: dict[tuple[str, str], tuple[float, int | None]] = {}

    def close(self) -> None:
        """Close the connections; the registry cannot be asked afterwards."""
        self._connection.close()

    @property
    def _client(self) -> SchemaRegistryClient:
        return self._connection.client()

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema behind an id of Confluent's prefix; never raises."""
        return self._memory.answer(schema_id, lambda: self._client.get_schema(schema_id))

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema behind the GUID (16 bytes) of Confluent's header form; never raises."""
        name = str(UUID(bytes=guid))
        return self._memory.answer(guid, lambda: self._client.get_schema_by_guid(name))

    def forget_missing(self, reference: Reference) -> None:
        """Ask again the next time, if the last answer was that there is no such schema."""
        self._memory.forget_missing(reference)

    def register(self, subject: str, name: str) -> int:
        """Register one of belfry's schemas, which may be there already; returns its id.

        Raises `SchemaRefusedError` and `RegistryUnreachableError`.
        """
        schema = Schema(catalogue.text(name))
        return self._asked(
            lambda: self._client.register_schema(subject, schema), f"{name} under {subject}"
        )

    def ensure_compatibility(self, subject: str, level: str = FULL_TRANSITIVE) -> None:
        """Set the compatibility level of a subject if it is different.

        Another worker that starts may set it at the same moment, and some registries refuse the one
        that comes second.
        """
        if self._level(subject) == level:
            return
        try:
            self._asked(
                lambda: self._client.set_compatibility(subject, level), f"{level} for {subject}"
            )
        except SchemaRefusedError:
            if self._level(subject) != level:
                raise

    def publish(self, subject: str, name: str) -> int:
        """`ensure_compatibility`, then `register`: the rule holds before anything is added."""
        self.ensure_compatibility(subject)
        return self.register(subject, name)

    def id_of(self, subject: str, name: str) -> int | None:
        """Id of belfry's schema under a subject, or None if it is not registered there."""
        schema = Schema(catalogue.text(name))
        found = self._asked(
            lambda: _or_none(lambda: self._client.lookup_schema(subject, schema)), subject
        )
        return None if found is None else found.schema_id

    def id_for_writing(self, subject: str, name: str, *, may_register: bool) -> int | None:
        """Id to write with, asked for once: registered on first use if that is allowed.

        None, for `MISSING_S`, if it is not registered and must not be. Raises like `register`.
        """
        until, known = self._own_ids.get((subject, name), (0.0, None))
        if self._clock() < until:
            return known
        found = self.publish(subject, name) if may_register else self.id_of(subject, name)
        until = self._clock() + MISSING_S if found is None else inf
        self._own_ids[subject, name] = (until, found)
        return found

    def check(self, subject: str, name: str) -> list[str]:
        """What is wrong with a subject, as sentences that say what to do; empty if it is in order.

        Nothing is changed. Raises `RegistryUnreachableError`.
        """
        if self.id_of(subject, name) is None:
            return [self._absence(subject, name)]
        level = self._level(subject) or "the registry's default"
        if level != FULL_TRANSITIVE:
            problem = (
                f"Subject {subject} has compatibility {level} instead of {FULL_TRANSITIVE}, so a"
                " change could lock readers out: run `belfry schema register`."
            )
            return [problem]
        return []

    def _absence(self, subject: str, name: str) -> str:
        """Why one of belfry's schemas is not under a subject, as a sentence."""
        schema = Schema(catalogue.text(name))
        fits = self._asked(
            lambda: _or_none(lambda: self._client.test_compatibility_all_versions(subject, schema)),
            subject,
        )
        if fits is None:
            return f"Subject {subject} does not exist: run `belfry schema register`."
        if fits:
            return (
                f"Subject {subject} does not hold this release's {name}, which is compatible: run"
                " `belfry schema register`."
            )
        return (
            f"Subject {subject} holds schemas that this release's {name} is incompatible with:"
            " look at its versions; another application may write to the topic."
        )

    def _level(self, subject: str) -> str | None:
        return self._asked(
            lambda: _or_none(lambda: self._client.get_compatibility(subject)), subject
        )

    def _asked(self, ask: Callable[[], _T], what: str) -> _T:
        """Make a request about `what`, and raise its errors in belfry's words."""
        try:
            return ask()
        except SchemaRegistryError as error:
            if error.http_status_code in _REFUSALS:
                raise SchemaRefusedError(
                    f"The registry at {self.url} refuses {what}: {error.error_message}"
                ) from error
            raise RegistryUnreachableError(
                f"The registry at {self.url} did not carry out {what}: {error}. Check its address"
                " (with its path) and the credentials."
            ) from error
        except Exception as error:
            raise RegistrySilentError(
                f"The registry at {self.url} does not answer ({named(error)}): check that it runs"
                " and that BELFRY_SCHEMA_REGISTRY_URL is right."
            ) from error


class AskedAnew:
    """A registry that is asked each time for a schema that was missing before.

    `registry/lookups.py` remembers missing schemas for each lane; with one memory for all, an
    earlier request of another lane would answer for a producer that has registered a schema just
    now.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema behind an id of Confluent's prefix; never raises."""
        self._registry.forget_missing(schema_id)
        return self._registry.writer_schema(schema_id)

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema behind a GUID; never raises."""
        self._registry.forget_missing(guid)
        return self._registry.writer_schema_by_guid(guid)


def _or_none(ask: Callable[[], _T]) -> _T | None:
    """None if the registry says that subject or schema do not exist."""
    try:
        return ask()
    except SchemaRegistryError as error:
        if error.http_status_code == 404 and error.error_code not in (None, -1):
            return None
        raise
