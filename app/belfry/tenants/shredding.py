"""The secret that has to be destroyed so that a tenant's payloads cannot be read any more.

Belfry stores no key. A policy names a place (`payload_key_ref`), and the secret there is the
operator's. So shredding has two halves: workers forget the keys as soon as the policy is gone, and
the operator destroys the secret. This module says which secret, and which other tenants need it:

    clinic     payload_key_ref  file:clinic.keys                 ─┐ removed
    clinic-2   payload_key_ref  file:/etc/belfry/clinic.keys     ─┴ names it as well: shared

Two files whose paths end alike may be one file, because a worker adds its own folder to a path that
is not absolute. Such a policy counts as one that shares the secret: a needless warning costs a
look, but a missing one costs another tenant its payloads.
"""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import normpath
from shlex import quote
from typing import Final, NamedTuple

from belfry.tenants.policy import TenantPolicy

_FILE: Final = "file:"


class KeyToDestroy(NamedTuple):
    """A place of secrets that encrypted the payloads of a tenant.

    `shared_with` are other tenants whose policies name it, for payloads or for anything else.
    """

    reference: str
    shared_with: tuple[str, ...] = ()


def key_to_destroy(
    removed: TenantPolicy | None, others: Iterable[TenantPolicy]
) -> KeyToDestroy | None:
    """The secret of a policy that is removed; None if its payloads were not encrypted."""
    if removed is None or removed.payload_key_ref is None:
        return None
    reference = removed.payload_key_ref
    sharing = {
        each.tenant
        for each in others
        if each.tenant != removed.tenant
        and not each.removed
        and any(may_be_same(reference, other) for other in references(each))
    }
    return KeyToDestroy(reference, tuple(sorted(sharing)))


def references(policy: TenantPolicy) -> Iterable[str]:
    """All secrets that a policy names."""
    named = (policy.payload_key_ref, policy.signing_secret_ref)
    return (*(each for each in named if each is not None), *policy.secret_refs)


def may_be_same(one: str, other: str) -> bool:
    """Whether two references may lead to one secret."""
    if one == other:
        return True
    if not (one.startswith(_FILE) and other.startswith(_FILE)):
        return False
    first, second = (normpath(each.removeprefix(_FILE)) for each in (one, other))
    return (
        first == second or f"/{first}".endswith(f"/{second}") or f"/{second}".endswith(f"/{first}")
    )


def destroy_advice(tenant: str, key: KeyToDestroy) -> str:
    """The instructions for an operator, in sentences."""
    if key.shared_with:
        names = ", ".join(key.shared_with)
        return (
            f"The payloads of {tenant} are not shredded: {key.reference} is named by policies of"
            f" {names} as well, and its holders can still read them. Give {names} another secret"
            " (belfry bulk rekey), then destroy this one."
        )
    where = (
        f"unset {key.reference} on each worker and restart it"
        if key.reference.startswith("env:")
        else f"delete {key.reference} on each worker"
    )
    return (
        f"The payloads of {tenant} are shredded once its secret is destroyed: {where}, and"
        " destroy each copy, in backups and with consumers that redeem large payloads."
    )


def check_command(tenant: str, key: KeyToDestroy) -> str:
    """The command that counts payloads that can still be read; with quotes for a shell."""
    return f"belfry payloads readable {tenant} --key-ref {quote(key.reference)}"
