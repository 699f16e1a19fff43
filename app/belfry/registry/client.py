"""`Registry`: one schema registry, asked with a short time-out and remembered for long.

A schema id never changes its meaning, so a found schema is kept for ever; "there is none" is kept
for `MISSING_S` only, because a producer may register a moment after its first record.  A single
request waits `TIMEOUT_S` at most and is not repeated here: whoever asks knows how long the record
may wait.  All methods may be called from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, TypeVar
from uuid import UUID

import orjson
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from belfry.host.errors import named
from belfry.registry.addresses import UNREADABLE, is_readable, shown
from belfry.registry.answers import (
    Missing,
    RegistryAddressError,
    RegistrySilentError,
    RegistryUnreachable,
    RegistryUnreachableError,
    SchemaRefusedError,
    Unusable,
    WriterSchema,
)
from belfry.wire import catalogue
from belfry.wire.safety import MAX_SCHEMA_BYTES, unsafe_reason

# Seconds for one request, and "there is none" is believed for so many.
TIMEOUT_S: Final = 2.0
MISSING_S: Final = 10.0
# Unknown references that are remembered, before all of them are forgotten.
MAX_MISSING: Final = 10_000
# Each version of a schema can read, and be read by, each other one.
FULL_TRANSITIVE: Final = "FULL_TRANSITIVE"

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
# Statuses by which a registry says no to a schema.
_REFUSALS: Final = frozenset({409, 422})

_Reference = int | bytes
_T = TypeVar("_T")


class Registry:
    """A registry at `url` (several, with commas, are tried in turn).

    `properties` are those of Confluent's client, such as ``basic.auth.user.info``; texts from the
    environment are made numbers where the client wants numbers.  Raises `RegistryAddressError`.
    """

    def __init__(
        self,
        url: str,
        properties: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given = {key: _typed(key, value) for key, value in (properties or {}).items()}
        if not is_readable(url):
            raise RegistryAddressError(UNREADABLE)
        self.url = shown(url)
        self._client = SchemaRegistryClient.new_client({**_TIMEOUT, **given, "url": url})
        self._clock = clock
        self._found: dict[_Reference, dict[str, Any] | Unusable] = {}
        self._missing: dict[_Reference, tuple[float, Missing]] = {}
        self._own_ids: dict[tuple[str, str], tuple[float, int | None]] = {}

    def close(self) -> None:
        """Close the connections; the registry cannot be asked afterwards."""
        self._client.close()

    def writer_schema(self, schema_id: int) -> WriterSchema:
        """The schema behind an id of Confluent's prefix; never raises."""
        return self._remembered(schema_id, lambda: self._client.get_schema(schema_id))

    def writer_schema_by_guid(self, guid: bytes) -> WriterSchema:
        """The schema behind the GUID (16 bytes) of Confluent's header form; never raises."""
        name = str(UUID(bytes=guid))
        return self._remembered(guid, lambda: self._client.get_schema_by_guid(name))

    def forget_missing(self, reference: _Reference) -> None:
        """Ask again the next time, where the last answer was that there is none."""
        self._missing.pop(reference, None)

    def register(self, subject: str, name: str) -> int:
        """Register one of our schemas, which may be there already; gives its id.

        Raises `SchemaRefusedError` and `RegistryUnreachableError`.
        """
        schema = Schema(catalogue.text(name))
        return self._asked(
            lambda: self._client.register_schema(subject, schema), f"{name} under {subject}"
        )

    def ensure_compatibility(self, subject: str, level: str = FULL_TRANSITIVE) -> None:
        """Set the compatibility level of a subject where it is another one."""
        if self._level(subject) != level:
            self._asked(
                lambda: self._client.set_compatibility(subject, level), f"{level} for {subject}"
            )

    def publish(self, subject: str, name: str) -> int:
        """`ensure_compatibility`, then `register`: the rule holds before anything is added."""
        self.ensure_compatibility(subject)
        return self.register(subject, name)

    def id_of(self, subject: str, name: str) -> int | None:
        """Id of our schema under a subject, or None where it is not registered there."""
        schema = Schema(catalogue.text(name))
        found = self._asked(
            lambda: _or_none(lambda: self._client.lookup_schema(subject, schema)), subject
        )
        return None if found is None else found.schema_id

    def id_for_writing(self, subject: str, name: str, *, may_register: bool) -> int | None:
        """Id to write with, asked for once: registered on first use where that is allowed.

        None, for `MISSING_S`, where it is not registered and must not be.  Raises like `register`.
        """
        until, known = self._own_ids.get((subject, name), (0.0, None))
        if self._clock() < until:
            return known
        found = self.publish(subject, name) if may_register else self.id_of(subject, name)
        until = self._clock() + MISSING_S if found is None else inf
        self._own_ids[subject, name] = (until, found)
        return found

    def check(self, subject: str, name: str) -> list[str]:
        """What is wrong with a subject, as sentences that say what to do; empty where it is fine.

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
        """Why a schema of ours is not under a subject, in a sentence."""
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

    def _remembered(self, reference: _Reference, fetch: Callable[[], Schema]) -> WriterSchema:
        """An answer from memory, or a new one, which is remembered unless the registry was not
        reached.
        """
        found = self._found.get(reference)
        if found is not None:
            return found
        until, missing = self._missing.get(reference, (0.0, None))
        if missing is not None and self._clock() < until:
            return missing
        answer = _answer(reference, fetch)
        if isinstance(answer, Missing):
            self._remember_missing(reference, answer)
        elif not isinstance(answer, RegistryUnreachable):
            self._found[reference] = answer
        return answer

    def _remember_missing(self, reference: _Reference, answer: Missing) -> None:
        if len(self._missing) >= MAX_MISSING:
            # Made-up ids must not fill the memory; forgetting costs one more request each.
            self._missing.clear()
        self._missing[reference] = (self._clock() + MISSING_S, answer)

    def _asked(self, ask: Callable[[], _T], what: str) -> _T:
        """Ask, and raise in belfry's words what went wrong with `what`."""
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
                f"The registry at {self.url} does not answer ({_shown(error)}): check that it runs"
                " and that BELFRY_SCHEMA_REGISTRY_URL is right."
            ) from error


class AskedAnew:
    """A registry that is asked each time for what it has said there is none of.

    `registry/lookups.py` remembers that by who has asked; one memory for all would let others'
    questions answer for who has registered a schema just now.
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


def _answer(reference: _Reference, fetch: Callable[[], Schema]) -> WriterSchema:
    """One question to the registry as a value; every failure of a connection means "later"."""
    try:
        return _usable(fetch())
    except SchemaRegistryError as error:
        if _says_missing(error, reference):
            return Missing(f"the registry knows no schema {_named(reference)}")
        return RegistryUnreachable(f"the registry answers {error}")
    except Exception as error:  # noqa: BLE001  # connections fail in many ways; all mean "later"
        return RegistryUnreachable(f"the registry does not answer: {_shown(error)}")


def _says_missing(error: SchemaRegistryError, reference: _Reference) -> bool:
    if error.http_status_code != 404:
        return False
    # A 404 without a registry's own code comes from something else, such as a wrong path.  For
    # GUIDs it is what registries without that endpoint say, and they will never know one.
    return isinstance(reference, bytes) or error.error_code not in (None, -1)


def _usable(schema: Schema) -> dict[str, Any] | Unusable:
    """The schema, or why belfry does not decode with it."""
    text = schema.schema_str or ""
    if schema.schema_type not in (None, "AVRO"):
        return Unusable(f"it is {schema.schema_type}, and only Avro is read")
    if schema.references:
        return Unusable("it refers to other schemas: register it in one piece")
    if len(text) > MAX_SCHEMA_BYTES:
        return Unusable(f"its text has {len(text)} characters; {MAX_SCHEMA_BYTES} are read")
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Unusable(f"its text is no JSON: {error}")
    unsafe = unsafe_reason(found)
    if unsafe is not None:
        return Unusable(unsafe)
    if not isinstance(found, dict):
        return Unusable("it is no record")
    return found


def _or_none(ask: Callable[[], _T]) -> _T | None:
    """None where the registry says that subject or schema do not exist."""
    try:
        return ask()
    except SchemaRegistryError as error:
        if error.http_status_code == 404 and error.error_code not in (None, -1):
            return None
        raise


def _typed(key: str, value: Any) -> Any:
    number = _NUMBERS.get(key)
    return number(value) if number is not None else value


def _named(reference: _Reference) -> str:
    return str(UUID(bytes=reference)) if isinstance(reference, bytes) else str(reference)


def _shown(error: Exception) -> str:
    return named(error)
