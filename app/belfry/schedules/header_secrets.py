"""Secrets in headers of HTTP targets: named by reference, so that no topic ever holds them.

    authorization: Bearer ${env:BELFRY_SECRET_SHOP_API}     a variable of the process that delivers
    x-api-key: ${file:shop/api-key}                         a file below its BELFRY_SECRETS_DIR

Requests, policies and the state hold the reference alone.  The process that delivers puts the
secret in its place at each attempt (`delivery/references.py`).

A header goes to a host that the tenant names, so a tenant that may name a reference can read its
secret.  That is why the platform says of each tenant which references it may name (`secret_refs` of
its policy), and to which hosts (`allowed_hosts`, which must not be empty then).  Both are looked at
where a request or a policy comes in, and once more before each attempt: a policy may have changed
since the schedule was accepted.

Here is only the text of references.  Nothing of this module reads a variable or a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

Headers = Sequence[tuple[str, str]]

# Variables of a worker that a policy may name.
SECRET_ENV_PREFIX: Final = "BELFRY_SECRET_"  # noqa: S105
MOST_REFERENCES: Final = 64
LONGEST_REFERENCE: Final = 255

_REFERENCE: Final = re.compile(r"\$\{(env:[A-Za-z_][A-Za-z0-9_]{0,250}|file:[^{}$\s]{1,250})\}")
_BEGUN: Final = re.compile(r"\$\{(?:env|file):")
_NAMED: Final = re.compile(rf"env:{SECRET_ENV_PREFIX}[A-Za-z0-9_]+|file:[^{{}}$\s]+")
_CREDENTIALS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
_TELLING: Final = ("token", "secret", "password", "api-key", "apikey", "credential")


def references_in(value: str) -> tuple[str, ...]:
    """The references that a header's value names, in their order."""
    return tuple(_REFERENCE.findall(value))


def references_of(headers: Headers) -> tuple[str, ...]:
    """The references that these headers name, each once, in their order."""
    return tuple(dict.fromkeys(each for _, value in headers for each in references_in(value)))


def filled(value: str, secret_of: Callable[[str], str]) -> str:
    """A header's value with each reference replaced by its secret; a secret is not looked into.

    `secret_of` gets the reference without ``${`` and ``}``, such as ``file:shop/api-key``, and may
    raise where there is no such secret.  The value of a secret is not read as a reference again.
    """
    return _REFERENCE.sub(lambda found: secret_of(found[1]), value)


def syntax_problem(name: str, value: str) -> str | None:
    """Why the references in a header's value cannot be read, or None.

    A text that begins like a reference, but is not one, would travel as it is, and would show where
    secrets lie; so it is refused.
    """
    if len(_BEGUN.findall(value)) == len(_REFERENCE.findall(value)):
        return None
    return (
        f"Header {name[:60]!r} of a target begins a reference to a secret that cannot be read:"
        f" write ${{env:{SECRET_ENV_PREFIX}NAME}} or ${{file:PATH}}, without blanks, braces or $."
    )


def named_problem(reference: str) -> str | None:
    """Why a policy cannot allow a reference, or None."""
    if len(reference) <= LONGEST_REFERENCE and _NAMED.fullmatch(reference) is not None:
        return None
    return (
        f"secret_refs has {reference[:100]!r}, which names no place of a secret:"
        f" env:{SECRET_ENV_PREFIX}NAME or file:PATH is allowed; never put the secret itself there."
    )


def reach_problem(
    headers: Headers, secret_refs: Iterable[str], allowed_hosts: Sequence[str]
) -> str | None:
    """Why a tenant's target must not name the secrets that it does, or None.

    Without a list of hosts a header, and the secret in it, could be sent to anybody.
    """
    named = references_of(headers)
    if not named:
        return None
    refused = next((each for each in named if each not in secret_refs), None)
    if refused is not None:
        return (
            f"A header names the secret {refused!r}, which is none of secret_refs of the tenant's"
            " policy: leave it out, or ask the operators of belfry to add it there."
        )
    if not allowed_hosts:
        return (
            "A header names a secret, and the tenant's policy has no allowed_hosts: ask the"
            " operators of belfry to list the hosts that may get it."
        )
    return None


def carries_credentials(name: str) -> bool:
    """Whether a header of this name is likely to hold a credential.

    A guess by the name, for warnings only: nothing is refused by it.
    """
    lower = name.lower().replace("_", "-")
    return lower in _CREDENTIALS or any(each in lower for each in _TELLING)


def literal_credentials(headers: Iterable[tuple[str, str]]) -> list[str]:
    """Names of headers that seem to hold a credential as it is, and not by reference."""
    return [
        name
        for name, value in headers
        if value and carries_credentials(name) and not references_in(value)
    ]


def literal_warning(names: Iterable[str]) -> str | None:
    """The warning about such headers, or None if there are no such headers."""
    shown = ", ".join(sorted({each.lower() for each in names}))
    if not shown:
        return None
    return (
        f"header {shown} of an HTTP target holds its value as it is, which lies in topics readable:"
        f" put the secret into a variable {SECRET_ENV_PREFIX}NAME or a file of the process that"
        " delivers, and write ${env:...} or ${file:...} in its place"
    )
