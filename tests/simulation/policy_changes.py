"""Policies that change amid a run: some tenants are paused, or get limits that come and go.

    paused                     for some seconds, by the kill switch
    max_fires_per_second       few, many, or no limit again
    max_pending                few, or no limit again
    max_requests_per_second    few, or no limit again
    guarantee                  events leave beside transactions, or in them again

Each seed has some of these (`drawn`).  When the faults end, what was paused goes on, and limits are
taken away: a seed has to end.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.simulation.tenant_policies import TenantPolicies

NAMES: Final = (
    *("paused", "max_fires_per_second", "max_pending", "max_requests_per_second"),
    "guarantee",
)
GUARANTEES: Final = ("AT_LEAST_ONCE", "EXACTLY_ONCE")
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "guarantee": GUARANTEES,
    "max_fires_per_second": (1.0, 2.0, 5.0, 50.0, None),
    "max_pending": (1, 2, 4, None),
    "max_requests_per_second": (1.0, 3.0, None),
}
PAUSES_MS: Final = (300.0, 3_500.0, 6_000.0)


def drawn(random: Random) -> list[str]:
    """What may change in one seed: each in six of ten; where nothing would, one of them."""
    return [name for name in NAMES if random.random() < 0.6] or [random.choice(NAMES)]


class PolicyChanges:
    """Changes the policies of the tenants of one world."""

    def __init__(self, policies: TenantPolicies, tenants: tuple[str, ...], random: Random) -> None:
        self._policies, self._tenants, self._random = policies, tenants, random
        self._on = drawn(random)
        self._ended = False
        # What has changed, a name each time.
        self.struck: list[str] = []

    def change(self) -> None:
        """Change one thing of one tenant."""
        # Most are of two tenants: what is limited has to meet what changes it.
        tenants = (*self._tenants, *[each for each in self._tenants[:2] for _ in range(2)])
        tenant, name = self._random.choice(tenants), self._random.choice(self._on)
        self.struck.append(f"changed {name.removeprefix('max_').replace('_', ' ')}")
        if name == "paused":
            self._pause(tenant)
            return
        self._policies.set(tenant, name, self._random.choice(VALUES[name]))

    def _pause(self, tenant: str) -> None:
        self._policies.set(tenant, "paused", True)
        self._policies.later(self._random.choice(PAUSES_MS), lambda: self._go_on(tenant))

    def _go_on(self, tenant: str) -> None:
        if not self._ended:
            self._policies.set(tenant, "paused", False)

    def end(self) -> None:
        """Let everybody fire and ask."""
        self._ended = True
        for tenant in self._tenants:
            for name in NAMES[:-1]:
                if self._policies.of(tenant).limits.get(name):
                    self._policies.set(tenant, name, False if name == "paused" else None)
