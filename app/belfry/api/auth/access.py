"""Who asks, and what they may do.

A caller shows a bearer token: an API key of belfry's (`keys.py`) or a token of an OpenID provider
(`oidc.py`).  Both are bound to tenants and to one role or more; a role includes those before it:

    read       look at schedules, histories, statistics and the cluster
    schedule   create, change, cancel, pause, resume, trigger, dry-run
    admin      set what is a tenant's own of the policies of the tenants that it is bound to
    operate    where it is bound to all tenants (`*`): set and remove policies as a whole

One who operates some tenants alone is their admin.
Where neither is configured, the port opens on loopback only and whoever reaches it may do all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Final, Protocol

from belfry.api.auth.key_uses import KeyRow
from belfry.api.problems import Problem

CHALLENGE: Final = {"www-authenticate": 'Bearer realm="belfry"'}
WHOLE: Final = "*"


class Role(StrEnum):
    """What a caller may do; each includes those before it."""

    READ = "read"
    SCHEDULE = "schedule"
    ADMIN = "admin"
    OPERATE = "operate"


_RANK: Final = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: a name for logs and rates, the tenants it is bound to, and its highest role.

    A tenant is a name, or the beginning of names followed by ``*``.  `per_second` are the calls
    that it may make; None: as many as all others.  `key` is the digest of the API key that it
    showed, and no part of who it is.
    """

    name: str
    tenants: tuple[str, ...]
    role: Role
    per_second: float | None = None
    key: str | None = field(default=None, compare=False, repr=False)

    @property
    def reaches_all(self) -> bool:
        """Whether the caller is bound to no tenant, so that it may see what concerns them all."""
        return WHOLE in self.tenants

    def may(self, role: Role) -> bool:
        """Whether the caller has a role, or one that includes it."""
        return _RANK[self.role] >= _RANK[role]

    @property
    def is_platform(self) -> bool:
        """Whether the caller sets what one tenant must not set for itself.

        Who is bound to some tenants could take from all others by it.
        """
        return self.role is Role.OPERATE and WHOLE in self.tenants

    def reaches(self, tenant: str) -> bool:
        """Whether the caller is bound to a tenant."""
        return any(
            tenant.startswith(given[:-1]) if given.endswith(WHOLE) else tenant == given
            for given in self.tenants
        )


ANYBODY: Final = Principal("anybody", (WHOLE,), Role.OPERATE)


class TokenVerifier(Protocol):
    """Knows one kind of token."""

    async def principal(self, token: str) -> Principal | None:
        """Who the token stands for; None where it is not of this kind.

        Raises `Problem` for one that is of this kind and not good.
        """


class Keys(Protocol):
    """A list of API keys that knows how each is used."""

    def used(self, principal: Principal, address: str) -> None:
        """A caller was admitted from this address."""

    def rows(self) -> list[KeyRow]:
        """All keys, with how each was used on this worker."""


class Gate:
    """Asks the verifiers in turn; without any, everybody may do everything."""

    def __init__(self, verifiers: Iterable[TokenVerifier] = (), keys: Keys | None = None) -> None:
        """`keys` are told of uses, and shown."""
        self._verifiers = tuple(verifiers)
        self._keys = keys

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked who they are."""
        return not self._verifiers

    def used(self, principal: Principal, address: str) -> None:
        """A caller was admitted from this address."""
        if self._keys is not None:
            self._keys.used(principal, address)

    def keys(self) -> list[KeyRow]:
        """All API keys; none where there is no list of them."""
        return [] if self._keys is None else self._keys.rows()

    async def admit(self, authorization: str | None) -> Principal:
        """Who an `Authorization` header stands for; raises `Problem`."""
        if self.is_open:
            return ANYBODY
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthorized("Show an API key or a token: `Authorization: Bearer …`.")
        for verifier in self._verifiers:
            found = await verifier.principal(token.strip())
            if found is not None:
                return found
        raise unauthorized("The token is not known here, or it has expired.")


def unauthorized(detail: str) -> Problem:
    """The refusal of a caller who has not said who it is."""
    return Problem(HTTPStatus.UNAUTHORIZED, detail, "unauthorized", CHALLENGE)


def forbidden(detail: str) -> Problem:
    """The refusal of a caller who may not do what it asks for."""
    return Problem(HTTPStatus.FORBIDDEN, detail, "forbidden")


def check(principal: Principal, role: Role, tenant: str | None) -> None:
    """Refuse what a caller may not do; raises `Problem`."""
    if not principal.may(role):
        raise forbidden(f"{principal.name} has the role {principal.role}; this takes {role}.")
    if tenant is not None and not principal.reaches(tenant):
        raise forbidden(f"{principal.name} is not bound to tenant {tenant!r}.")
