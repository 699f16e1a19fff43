"""Tenants whose spread changes while they are used: every schedule is found where it began (I41).

    spread 1             ash, all of it at one partition
    spread 3, then 2     a schedule that is there stays; a new one begins at ash/0, ash/1 or ash/2

For some seconds workers go by different policies, and requests are sent on until they agree.  So a
request is judged where it lies last, and by the order of all transactions (as where key groups
move).  A schedule begins anew only when the one before has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition
    from tests.simulation.taking import Seen
    from tests.simulation.tenant_policies import TenantPolicies
    from tests.simulation.world import World

SPREADS: Final = (1, 2, 3, 5, 8)
# A request asks each home that it may be at, so few values are kept.
MOST: Final = 4


class Respreading:
    """Draws and changes the spreads of tenants."""

    def __init__(self, policies: TenantPolicies, tenants: tuple[str, ...], random: Random) -> None:
        self._policies, self._random = policies, random
        self._had: dict[str, list[int]] = {
            tenant: [random.choice((1, 1, 2, 3))] for tenant in tenants
        }
        self.struck: list[str] = []
        for tenant, (spread,) in self._had.items():
            policies.also(tenant, spread=spread)

    def had(self, tenant: str) -> list[int]:
        """The spreads of a tenant up to now, the oldest first."""
        return self._had[tenant]

    def change(self) -> None:
        """A tenant gets another spread, one that it never had."""
        tenant = self._random.choice(sorted(self._had))
        had = self._had[tenant]
        if len(had) == MOST:
            return
        spread = self._random.choice([each for each in SPREADS if each not in had])
        self._policies.also(tenant, former_spreads=list(had))
        self._policies.set(tenant, "spread", spread)
        had.append(spread)
        self.struck.append("spread changed")


def check_respread(
    world: World, seen: Seen, definitions: Mapping[str, Definition]
) -> Iterator[str]:
    """Schedules that began while the one before still waited, perhaps somewhere else."""
    if world.respreading is None:
        return
    waits: dict[tuple[str, str], Definition] = {}
    for taken in seen.taken:
        sent = taken.sent
        name = sent.tenant, sent.schedule_id
        before = waits.get(name)
        if taken.outcome == "ACCEPTED" and before is not None and before.fired_in:
            fired = before.fired_in[0][0]
            if fired.order > taken.step.order:
                yield f"I41 {sent.name} began anew, and {before.sent.name} fired only then"
        if taken.outcome in ("ACCEPTED", "UPDATED"):
            waits[name] = definitions[sent.name]
        elif taken.outcome == "CANCELLED":
            waits.pop(name, None)


def parted(world: World) -> list[str]:
    """How often requests were sent on to another home, a name each time."""
    logs = world.broker.topics["belfry.schedules"]
    sent_on = sum(each.committed and each.txn is not None for log in logs for each in log.history)
    return ["sent on to another home"] * sent_on
