"""Writers' schemas as one registry gives them: the meaning of answers, and how long they are kept.

    the registry says                        the answer         kept
    a schema of Avro that is safe to use     the schema         for ever
    any other schema                         Unusable, why      for ever
    404 with a registry's own code           Missing            for `MISSING_S`
    anything else, or no answer              Unreachable        not at all

A schema id never changes its meaning, so a found schema is kept for ever. "There is none" is only
kept for a short time, because a producer may register a moment after its first record. Any producer
may make ids up, so the memory of missing schemas has a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import orjson
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.error import SchemaRegistryError

from belfry.host.errors import named
from belfry.registry.answers import Missing, RegistryUnreachable, Unusable, WriterSchema
from belfry.wire.readings import Reference
from belfry.wire.safety import MAX_SCHEMA_BYTES, unsafe_reason

# Seconds for which "there is none" is believed.
MISSING_S: Final = 10.0
# The most unknown references that are remembered; then all of them are forgotten.
MAX_MISSING: Final = 10_000


class SchemaMemory:
    """The answers of one registry about writers' schemas; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._found: dict[Reference, dict[str, Any] | Unusable] = {}
        self._missing: dict[Reference, tuple[float, Missing]] = {}

    def answer(self, reference: Reference, fetch: Callable[[], Schema]) -> WriterSchema:
        """The remembered answer, or that of `fetch`; never raises.

        A new answer is remembered unless the registry was not reached.
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

    def _remember_missing(self, reference: Reference, answer: Missing) -> None:
        if len(self._missing) >= MAX_MISSING:
            # Made-up ids must not fill the memory; each forgotten one costs one more request.
            self._missing.clear()
        self._missing[reference] = (self._clock() + MISSING_S, answer)

    def forget_missing(self, reference: Reference) -> None:
        """Ask again the next time, if the last answer was that there is no such schema."""
        self._missing.pop(reference, None)


def _answer(reference: Reference, fetch: Callable[[], Schema]) -> WriterSchema:
    """The answer to one request, as a value; every failure of a connection means "later"."""
    try:
        return _usable(fetch())
    except SchemaRegistryError as error:
        if _says_missing(error, reference):
            return Missing(f"the registry knows no schema {_named(reference)}")
        return RegistryUnreachable(f"it says {error}")
    except Exception as error:  # noqa: BLE001  # connections fail in many ways; all mean "later"
        return RegistryUnreachable(named(error))


def _says_missing(error: SchemaRegistryError, reference: Reference) -> bool:
    if error.http_status_code != 404:
        return False
    # A 404 without a registry's own code has another cause, such as a wrong path. For GUIDs
    # registries without that endpoint answer so, and they will never know a GUID.
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


def _named(reference: Reference) -> str:
    return str(UUID(bytes=reference)) if isinstance(reference, bytes) else str(reference)
