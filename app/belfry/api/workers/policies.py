"""Policies of tenants, as HTTP reads and writes them: a port that the worker implements."""

from __future__ import annotations

from typing import Protocol

from belfry.tenants.policy import TenantPolicy


class Policies(Protocol):
    """The policies of one belfry, as HTTP needs them."""

    def names(self) -> list[str]:
        """Tenants that have a policy, in order; quick."""

    def policy(self, tenant: str) -> TenantPolicy | None:
        """A tenant's policy; quick."""

    @property
    def closed(self) -> bool:
        """Whether tenants without a policy are not served; quick."""

    def catch_up(self, tenant: str) -> None:
        """Read what lies in the topic now; blocks.

        Raises `Unavailable`, and `BadPolicy` where this worker cannot carry the tenant's out.
        """

    def put(self, policy: TenantPolicy, *, share_topic: bool = False) -> None:
        """Write a policy; blocks.  Raises `BadPolicy` or `Unavailable`.

        With `share_topic` it may name the topic of another tenant's policy.
        """

    def remove(self, tenant: str) -> None:
        """Forget a policy; blocks.  Raises `Unavailable`."""

    def is_used(self, tenant: str) -> bool:
        """Whether the tenant may have schedules already; blocks."""
