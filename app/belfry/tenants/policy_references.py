"""References of a policy to values that workers have: secrets, and keys for payloads.

    signing_secret_ref   env:NAME or file:PATH     the tenant signs its requests with it
    payload_key_ref      env:NAME or file:PATH     workers encrypt its payloads at rest with it
    secret_refs          a list of the same        headers of the tenant's targets may name these

Each problem with one is a sentence. Whether a worker can read a reference, only the worker knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from belfry.schedules.header_secrets import (
    MOST_REFERENCES,
    SECRET_ENV_PREFIX,
    named_problem,
    reach_problem,
)
from belfry.schedules.targets import HttpTarget

REFERENCE: Final = re.compile(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)")
# Fields of a policy that hold one reference.
REFERRING: Final = ("signing_secret_ref", "payload_key_ref")
# Why payloads that are encrypted at rest cannot go to HTTP targets.
NO_TARGETS: Final = (
    "Its payloads are encrypted at rest (payload_key_ref), and deliveries to HTTP targets lie in"
    " topics as they are: leave out one of the two."
)


def secret_ref_problem(reference: str | None, field: str = REFERRING[0]) -> str | None:
    """Why no worker reads a secret from there, or None; asked for a policy that is set anew.

    A policy that was set before this was asked is still carried out: its tenant's requests are
    refused, and its events fire.
    """
    if reference is None or not reference.startswith("env:"):
        return None
    name = reference.removeprefix("env:")
    if name.startswith(SECRET_ENV_PREFIX) and name != SECRET_ENV_PREFIX:
        return None
    return (
        f"{field} {reference[:100]!r} names a variable that workers do not read secrets"
        f" from: give them the secret in one whose name begins with {SECRET_ENV_PREFIX}, or in a"
        " file below their BELFRY_SECRETS_DIR."
    )


def ref_problem(field: str, reference: str | None) -> list[str]:
    """What is wrong with a reference as it is written; empty if it is in order."""
    if reference is None or REFERENCE.fullmatch(reference) is not None:
        return []
    why = (
        f"{field}, {len(reference)} characters, names no place of a secret: env:NAME or"
        " file:PATH; never put the secret itself there."
    )
    return [why]


def key_ref_problem(reference: str | None, targets: Sequence[HttpTarget]) -> list[str]:
    """What is wrong with the reference to the key for payloads, also beside the targets."""
    found = ref_problem("payload_key_ref", reference)
    return found if reference is None or not targets else [*found, f"http_targets: {NO_TARGETS}"]


def secret_refs_problems(
    refs: Sequence[str], hosts: tuple[str, ...], targets: Sequence[HttpTarget]
) -> list[str]:
    """What is wrong with the references that the tenant's targets may name in headers."""
    found = [why for each in refs if (why := named_problem(each)) is not None]
    if len(refs) > MOST_REFERENCES:
        found.append(f"{len(refs)} secret_refs; at most {MOST_REFERENCES} are allowed.")
    if refs and not hosts:
        found.append(
            "secret_refs without allowed_hosts would let targets send secrets to every host: list"
            " the hosts that may get them."
        )
    reached = (reach_problem(target.headers, tuple(refs), hosts) for target in targets)
    return found + [why for why in reached if why is not None]
