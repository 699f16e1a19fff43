"""What a registry can answer, and how its administration can fail.

Asking for a writer's schema is on the path of every unknown record, so its answers are values:

    dict          the schema
    Missing       the registry says that there is none: reject the record
    Unusable      there is one that belfry does not decode with: reject the record
    Unreachable   nobody can say: keep the record and ask again

Registering and checking is an operator's step, so its failures are exceptions:

    RegistryError
    ├── RegistryUnreachableError    try again, or mend the address or the credentials
    │   └── RegistrySilentError     it said nothing at all, and the next caller waits as long
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
    """The reference stands for something that belfry does not decode with."""

    reason: str


@dataclass(frozen=True, slots=True)
class RegistryUnreachable:
    """The registry did not answer, or not as a registry; the reason is a clause in brackets.

    It names the failure alone, such as ``ConnectError: refused``: who tells of it says of what.
    """

    reason: str


WriterSchema = dict[str, Any] | Missing | Unusable | RegistryUnreachable


class RegistryError(Exception):
    """Something that a registry was asked to do did not happen."""


class RegistryUnreachableError(RegistryError):
    """The registry did not answer, or not as a registry, or does not let us in."""


class RegistrySilentError(RegistryUnreachableError):
    """The registry did not answer at all."""


class RegistryAddressError(RegistryError):
    """The registry's address cannot be read, or would be read otherwise than it was meant."""


class SchemaRefusedError(RegistryError):
    """The registry refused a schema: incompatible with what the subject holds, or invalid."""
