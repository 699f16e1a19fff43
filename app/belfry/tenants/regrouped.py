"""Tenants whose key group moves, or lies away from its home, as a partition's steps see them.

    the group is on its way here, or from here     its events wait, as those of a held tenant do
    it lies here, away from its home               its events do not say where their request lies,
                                                   because that request lies in another partition

The step that takes in the last record of a group may have requests of it as well. They are judged
as if the group had been here before (`as_if_here`).

Most partitions have no such group, and their steps use no `Regrouped` at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from belfry.tenants.effective import Tenant

WHY: Final = "its key group moves to another partition"
Name = TypeVar("Name", str, bytes)


class Regrouped(NamedTuple):
    """Which groups of a partition's tenants are quiet, and which lie away from home.

    `quiet` has by group the names of tenants that do not move along with it. A tenant that is or
    was spread does not arrive with a group that is `arriving`: its schedules here have been here
    before.
    """

    group_of: Callable[[str], int]
    quiet: Mapping[int, Collection[bytes]]
    arriving: Collection[int]
    away: Collection[int]

    def is_quiet(self, name: bytes) -> bool:
        """Whether a tenant's events wait because its group moves."""
        stays = self.quiet.get(self.group_of(name.decode()))
        return stays is not None and name not in stays

    def seen(self, tenant: Tenant) -> Tenant:
        """A tenant with the effects of its group."""
        spread = tenant.spread != 1 or tenant.effective.policy.former_spreads
        stays = spread and self.group_of(tenant.name) in self.arriving
        if not stays and self.is_quiet(tenant.name_bytes):
            return replace(tenant, held=tenant.held or WHY, source_topic=b"")
        if tenant.source_topic and self.group_of(tenant.name) in self.away:
            return replace(tenant, source_topic=b"")
        return tenant


def as_if_here(tenant: Tenant) -> Tenant:
    """A tenant without the effects of its group's move."""
    return replace(tenant, held="") if tenant.held == WHY else tenant


class RegroupedTenants(dict[Name, Tenant]):
    """Tenants by name, with the effects of their groups; each is computed once."""

    __slots__ = ("_given", "_regrouped")

    _given: Mapping[Name, Tenant]

    def __init__(self, given: Mapping[Name, Tenant], regrouped: Regrouped) -> None:
        super().__init__()
        self._given = given
        self._regrouped = regrouped

    def get(self, name: Name, _default: object = None) -> Tenant | None:  # type: ignore[override]
        """The tenant of a name, None for one that was not met."""
        known = dict.get(self, name)
        if known is None and (found := self._given.get(name)) is not None:
            known = self[name] = self._regrouped.seen(found)
        return known
