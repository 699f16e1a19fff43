"""The registry's part in the client: a prefix to write with, writers' schemas to read with.

A client writes with the schema of its own release, and only where the registry has it already: it
never registers anything, for `belfry schema register` does, with the compatibility that belfry
needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from belfry.client.errors import BadProperty, Unavailable
from belfry.registry.answers import RegistryAddressError, RegistryError
from belfry.registry.client import Registry
from belfry.registry.naming import TOPIC, Strategy, subject_of
from belfry.wire import framing

STRATEGY: Final = "subject.name.strategy.type"


class RegisteredSchemas:
    """belfry's schemas as a registry knows them; the registry is asked once for each.

    Among the properties ``subject.name.strategy.type`` may be ``TOPIC`` (default), ``RECORD`` or
    ``TOPIC_RECORD``, as the workers have it. Raises `BadProperty` for a malformed address.
    """

    def __init__(self, url: str, properties: Mapping[str, Any] | None = None) -> None:
        given = dict(properties or {})
        self._strategy: Strategy = given.pop(STRATEGY, TOPIC)
        try:
            self._registry = Registry(url, given)
        except RegistryAddressError as error:
            raise BadProperty(str(error)) from None

    def prefix(self, topic: str, name: str) -> bytes:
        """Confluent's prefix for records of ours on a topic: a zero byte and the id of the schema.

        Raises `Unavailable` where the registry does not answer, or does not hold the schema.
        """
        subject = subject_of(topic, name, self._strategy)
        try:
            found = self._registry.id_for_writing(subject, name, may_register=False)
        except RegistryError as error:
            raise Unavailable(str(error)) from error
        if found is None:
            raise Unavailable(
                f"Subject {subject} at {self._registry.url} does not hold this release's {name}."
                " Run `belfry schema register`, or leave the registry out: belfry reads requests"
                " without one, too."
            )
        return framing.prefix(found)

    def writer(self, reference: int | bytes) -> Any:
        """The schema behind an id or a GUID, or None where it cannot be had now."""
        if isinstance(reference, int):
            found = self._registry.writer_schema(reference)
        else:
            found = self._registry.writer_schema_by_guid(reference)
        return found if isinstance(found, dict) else None

    def close(self) -> None:
        """Close the connections."""
        self._registry.close()
