"""The tenants as one step of a partition sees them: by one snapshot, from begin to end.

    09:00:00.000   step 41 begins: snapshot 7, in which `shop` fires to belfry.fired.shop
    09:00:00.004   a policy moves `shop` to another topic: snapshot 8
    09:00:00.009   step 41 ends: all that it fired of `shop` went to belfry.fired.shop
    09:00:00.010   step 42 begins: snapshot 8

A step reads thousands of rows, and looks up the tenant of each. Here that costs a lookup in a
dictionary, without a lock. If the snapshot lacks a name, the directory is asked: it puts the tenant
into the snapshot, so that the step finds the same value again.

If key groups move, a step of this partition may see a tenant differently (`regrouped.py`).
"""

from __future__ import annotations

from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Tenant
from belfry.tenants.policy import DAY_MS
from belfry.tenants.regrouped import Regrouped, RegroupedTenants


class StepTenants:
    """The tenants as one step of a partition sees them: by one snapshot, from begin to end.

    `regrouped` says which tenants move with their groups; a change counts from the next step on.
    `regroupings` is the number of its changes.
    """

    def __init__(self, directory: Tenants) -> None:
        self._directory = directory
        self._now = directory.snapshot
        self.regrouped: Regrouped | None = None
        self.regroupings = 0
        self._seen: Regrouped | None = None
        self._by_name, self._by_bytes, self.removed = self._now
        self.target_problem = directory.target_problem

    def renew(self) -> None:
        """Begin a step: see tenants as they are treated now."""
        now, regrouped = self._directory.snapshot, self.regrouped
        if now is not self._now or regrouped is not self._seen:
            self._now, self._seen = now, regrouped
            self._by_name, self._by_bytes, self.removed = now
            if regrouped is not None:
                self._by_name = RegroupedTenants(self._by_name, regrouped)
                self._by_bytes = RegroupedTenants(self._by_bytes, regrouped)

    @property
    def store_problem(self) -> str:
        """Why no payload can be stored elsewhere at the moment; empty if payloads can."""
        return self._directory.store_problem

    def letters_of(self, name: str) -> tuple[str, int]:
        """A tenant's topic of dead letters, and the most bytes of a record there; 0: no topic."""
        topic = self._directory.names.letters + name
        return topic, self._directory.topics.letters.get(topic, 0)

    def of(self, name: str) -> Tenant:
        """The tenant of this name."""
        found = self._by_name.get(name)
        return found if found is not None else self._meet(name)

    def known(self, name: bytes) -> Tenant | None:
        """The tenant of this UTF-8 name, if it was asked for before."""
        return self._by_bytes.get(name)

    def remember_ms(self, name: bytes) -> int:
        """How long it is remembered that a schedule (``tenant/id``) is over.

        A day for a tenant that was not met since the start, so that a lookup adds no tenants.
        """
        tenant = self._by_bytes.get(name.partition(b"/")[0])
        return DAY_MS if tenant is None else tenant.remember_ms

    def of_bytes(self, name: bytes) -> Tenant:
        """The tenant of this UTF-8 name."""
        found = self._by_bytes.get(name)
        return found if found is not None else self._meet(name.decode())

    def is_quiet(self, name: bytes) -> bool:
        """Whether the group of a tenant is moving away from here, or to here."""
        return self._seen is not None and self._seen.is_quiet(name)

    def _meet(self, name: str) -> Tenant:
        met = self._directory.meet(name, self._now)
        return met if self._seen is None else self._seen.seen(met)
