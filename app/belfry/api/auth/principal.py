"""A caller: its name, its rights, and the refusals for missing rights.

A caller is bound to tenants and to one role or more; a role includes those before it:

    read       look at schedules, histories, statistics and the cluster
    schedule   create, change, cancel, pause, resume, trigger, dry-run
    admin      set the tenants' own fields in policies of the tenants that it is bound to
    operate    if bound to all tenants (`*`): set and remove policies as a whole

A caller that operates only some tenants is their admin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Final

from belfry.api.problems import Problem

CHALLENGE: Final = {"www-authenticate": 'Bearer realm="belfry"'}
WHOLE: Final = "*"


class Role(StrEnum):
    """The role of a caller; each includes those before it."""

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
    showed, and not a part of its identity.
    """

    name: str
    tenants: tuple[str, ...]
    role: Role
    per_second: float | None = None
    key: str | None = field(default=None, compare=False, repr=False)

    @property
    def reaches_all(self) -> bool:
        """Whether the caller is bound to no tenant, so that it may see data on all."""
        return WHOLE in self.tenants

    def may(self, role: Role) -> bool:
        """Whether the caller has a role, or one that includes it."""
        return _RANK[self.role] >= _RANK[role]

    @property
    def is_platform(self) -> bool:
        """Whether the caller may set fields that a tenant must not set for itself.

        A caller that is bound to some tenants could harm all others by them.
        """
        return self.role is Role.OPERATE and WHOLE in self.tenants

    def reaches(self, tenant: str) -> bool:
        """Whether the caller is bound to a tenant."""
        return any(
            tenant.startswith(given[:-1]) if given.endswith(WHOLE) else tenant == given
            for given in self.tenants
        )


ANYBODY: Final = Principal("anybody", (WHOLE,), Role.OPERATE)


def unauthorized(detail: str) -> Problem:
    """The refusal of a caller without a key or token."""
    return Problem(HTTPStatus.UNAUTHORIZED, detail, "unauthorized", CHALLENGE)


def forbidden(detail: str) -> Problem:
    """The refusal of a caller without the right for its call."""
    return Problem(HTTPStatus.FORBIDDEN, detail, "forbidden")


def check(principal: Principal, role: Role, tenant: str | None) -> None:
    """Refuse a call without the right for it; raises `Problem`."""
    if not principal.may(role):
        raise forbidden(f"{principal.name} has the role {principal.role}; this takes {role}.")
    if tenant is not None and not principal.reaches(tenant):
        raise forbidden(f"{principal.name} is not bound to tenant {tenant!r}.")
