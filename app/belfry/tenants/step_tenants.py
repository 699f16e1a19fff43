"""The tenants as one step of a partition sees them: by one snapshot, from begin to end.

    09:00:00.000   step 41 begins: snapshot 7, in which `shop` fires to belfry.fired.shop
    09:00:00.004   a policy moves `shop` to another topic: snapshot 8
    09:00:00.009   step 41 ends: all that it fired of `shop` went to belfry.fired.shop
    09:00:00.010   step 42 begins: snapshot 8

A step reads thousands of rows, and looks up the tenant of each.  Here that costs a look into a
dictionary, without a lock; a name that the snapshot lacks is asked of the directory, which puts it
into the snapshot, so that the step finds the same value again.
"""

from __future__ import annotations

from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Tenant
from belfry.tenants.policy import DAY_MS


class StepTenants:
    """The tenants as one step of a partition sees them: by one snapshot, from begin to end."""

    def __init__(self, directory: Tenants) -> None:
        self._directory = directory
        self._now = directory.snapshot
        self._by_name, self._by_bytes, self.removed = self._now
        self.target_problem = directory.target_problem

    def renew(self) -> None:
        """A step begins: see tenants as they are treated now."""
        now = self._directory.snapshot
        if now is not self._now:
            self._now = now
            self._by_name, self._by_bytes, self.removed = now

    @property
    def store_problem(self) -> str:
        """Why no payload can be stored elsewhere at the moment; empty where they can."""
        return self._directory.store_problem

    def of(self, name: str) -> Tenant:
        """The tenant of this name."""
        found = self._by_name.get(name)
        return found if found is not None else self._directory.meet(name, self._now)

    def known(self, name: bytes) -> Tenant | None:
        """The tenant of this UTF-8 name, if it was asked for before."""
        return self._by_bytes.get(name)

    def remember_ms(self, name: bytes) -> int:
        """How long it is remembered that a schedule (``tenant/id``) is over.

        A day of a tenant that nobody has met since the start, so that no look makes tenants known.
        """
        tenant = self._by_bytes.get(name.partition(b"/")[0])
        return DAY_MS if tenant is None else tenant.remember_ms

    def of_bytes(self, name: bytes) -> Tenant:
        """The tenant of this UTF-8 name."""
        found = self._by_bytes.get(name)
        return found if found is not None else self._directory.meet(name.decode(), self._now)
