"""The possible answers of a registry, and the failures of its administration.

Asking for a writer's schema is on the path of every unknown record, so its answers are values:

    dict          the schema
    Missing       the registry has no such schema: reject the record
    Unusable      belfry does not decode with this schema: reject the record
    Unreachable   there was no answer: keep the record and ask again

An operator registers and checks schemas, so failures of these steps are exceptions:

    RegistryError
    ├── RegistryUnreachableError    try again, or mend the address or the credentials
    │   └── RegistrySilentError     no answer at all; the next caller would wait as long
    ├── RegistryAddressError        mend the address
    └── SchemaRefusedError          the registry judged the schema and said no
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Missing:
    """The registry does not know the reference."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """The reference stands for a schema that belfry does not decode with."""

    reason: str


@dataclass(frozen=True, slots=True)
class RegistryUnreachable:
    """The registry did not answer, or not as a registry; the reason is a clause in brackets.

    It only names the failure, such as ``ConnectError: refused``: the caller adds the registry.
    """

    reason: str


WriterSchema = dict[str, Any] | Missing | Unusable | RegistryUnreachable


class RegistryError(Exception):
    """The registry did not carry out a request."""


class RegistryUnreachableError(RegistryError):
    """The registry did not answer, or not as a registry, or does not let belfry in."""


class RegistrySilentError(RegistryUnreachableError):
    """The registry did not answer at all."""


class RegistryAddressError(RegistryError):
    """The registry's address cannot be read, or would be read with another meaning."""


class SchemaRefusedError(RegistryError):
    """The registry refused a schema: incompatible with what the subject holds, or invalid."""
