"""Policies of tenants, as HTTP reads and writes them: a port that the worker implements."""

from __future__ import annotations

from typing import Protocol

from belfry.schedules.policy import TenantPolicy


class Policies(Protocol):
    """The policies of one belfry, as HTTP needs them."""

    def names(self) -> list[str]:
        """Tenants that have a policy, in order; quick."""

    def policy(self, tenant: str) -> TenantPolicy | None:
        """A tenant's policy; quick."""

    def put(self, policy: TenantPolicy) -> None:
        """Write a policy; blocks.  Raises `BadPolicy` or `Unavailable`."""

    def remove(self, tenant: str) -> None:
        """Forget a policy; blocks.  Raises `Unavailable`."""

    def is_used(self, tenant: str) -> bool:
        """Whether the tenant may have schedules already; blocks."""
