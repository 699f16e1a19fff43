"""Which tenants may have a topic: rivals for one name, and room for unknown tenants.

Kafka makes no topic `a_b` beside an `a.b` (`collisions`), and each topic costs the brokers
partitions for good, so tenants without a policy have a bounded number of topics together. Both
answers are kept in the tenant, because the engine needs them with each request. Both may change
when a topic or a policy comes or goes. Then they are computed anew, only for the tenants that are
affected:

    most unknown topics: 2              room     c
    topics of a and b exist             0 left   crowded out: its requests are refused
    the topic of a is deleted           1 left   checked again: its requests are taken in
    c gets a policy                     1 left   needs no room any more: its name is reserved

Topics that policies name are not counted, and neither is a topic whose tenant got a policy later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from belfry.tenants.collisions import Collisions
from belfry.tenants.effective import Tenant
from belfry.tenants.snapshots import Snapshots


class TopicRegister:
    """Topics that exist, and names that policies reserve; for tenants of some snapshots.

    The directory's lock guards changes; questions may come from any thread.
    """

    def __init__(self, prefix: str, snapshots: Snapshots, most_unknown: int | None) -> None:
        """`most_unknown` is None if tenants without a policy may have any number of topics."""
        self._prefix = prefix
        self._snapshots = snapshots
        self._collisions = Collisions(prefix)
        self.most_unknown = most_unknown
        # Topics of dead letters that can be written to, with the most bytes of a record there.
        # Replaced as a whole, so readers need no lock.
        self.letters: Mapping[str, int] = {}

    @property
    def unknown(self) -> int:
        """The number of output topics of tenants without a policy."""
        return self._collisions.unreserved

    def known(self, topic: str) -> bool:
        """Whether a topic exists, or is reserved by a policy."""
        return self._collisions.known(topic)

    def has_policy(self, tenant: Tenant) -> bool:
        """Whether a tenant has a policy: its events go elsewhere, or its name is reserved."""
        named_after = tenant.topic == self._prefix + tenant.name
        return not named_after or self._collisions.reserved(tenant.topic)

    def is_full(self) -> bool:
        """Whether tenants without a policy have as many topics as they may have."""
        return self.most_unknown is not None and self.unknown >= self.most_unknown

    def has_no_room(self, name: str, topic: str) -> bool:
        """Whether a tenant needs a topic beyond those that unknown ones may have together."""
        named_after = topic == self._prefix + name
        return self.is_full() and named_after and not self.known(topic)

    def rival(self, topic: str) -> str | None:
        """The tenant whose topic keeps this one from being made, or None."""
        rival = self._collisions.rival(topic)
        return None if rival is None else rival.removeprefix(self._prefix)

    def note(self, come: Iterable[str], gone: Iterable[str]) -> None:
        """Note new output topics, and output topics that are gone."""
        self._judge(self._collisions.topics(come, gone))

    def reserve(self, come: Iterable[str], gone: Iterable[str]) -> None:
        """Note tenants that have a policy from now on, and those that have none any more."""
        come, gone = [self._prefix + name for name in come], [self._prefix + name for name in gone]
        self._judge(self._collisions.reservations(come, gone))

    def _judge(self, alike: set[str]) -> None:
        """Judge again which topics of these names collide, and which tenants have room now."""
        changed: dict[str, Tenant] = {}
        for tenant in self._snapshots.alike(alike):
            rival = self.rival(tenant.topic)
            if rival != tenant.collides_with:
                changed[tenant.name] = replace(tenant, collides_with=rival)
        for tenant in self._snapshots.crowded_out():
            if not self.has_no_room(tenant.name, tenant.topic):
                now = changed.get(tenant.name, tenant)
                changed[tenant.name] = replace(now, crowded_out=False)
        if changed:
            self._snapshots.swap(changed)
