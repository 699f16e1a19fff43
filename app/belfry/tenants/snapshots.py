"""Snapshots of the directory of tenants, and how one follows another.

    snapshot 7   shop, pay.eu            a step that began by it keeps it whole
       │  a policy of shop changes: a new value, a new snapshot, one assignment
       ▼
    snapshot 8   shop (changed), pay.eu

A tenant that is met for the first time joins the present snapshot instead, since no step has seen
another value of it; so no directory is copied to look up a name.

Three registers go along with the snapshot, for questions that a name alone does not answer:

    moved          topics that policies name       whose events go to this topic?
    alike          names of topics in metrics      whose topic collides with this one?
    crowded out    names of tenants                which tenants wait for room when a topic goes?

Tenants that share a topic share its promise: if one of them is to be fired exactly once, all of
them are, because a consumer reads one topic in one way. The topic that a hundred thousand tenants
may share (`output` SHARED) is always exactly once, and is in none of the registers: its name is
belfry's own, and to add a tenant to it costs the same however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from belfry.tenants.collisions import NOTHING, metric_name
from belfry.tenants.effective import Tenant

AT_LEAST_ONCE: Final = "AT_LEAST_ONCE"


class Snapshot(NamedTuple):
    """Tenants that were met, by name and by its bytes; `removed` are the names of removed ones.

    The value under a name is never replaced, so a step that looks twice finds the same.
    """

    by_name: dict[str, Tenant]
    by_bytes: dict[bytes, Tenant]
    removed: frozenset[bytes]

    def join(self, tenant: Tenant) -> Tenant:
        """Put in a tenant that was just met; returns the one that counts, which was there first."""
        found = self.by_name.setdefault(tenant.name, tenant)
        self.by_bytes[found.name_bytes] = found
        return found


class Snapshots:
    """The snapshot of `now`, and the registers that go along with it.

    The directory's lock guards all but `now`, `named` and `moved_topics`: the values that these
    read are replaced and never changed.
    """

    def __init__(self, fired_prefix: str) -> None:
        """The topic of a tenant that no policy moves is `fired_prefix` and its name."""
        self.now = Snapshot({}, {}, frozenset())
        self._fired_prefix = fired_prefix
        # Topics that policies name, and the tenants that such a policy was applied to.
        self._moved: dict[str, frozenset[str]] = {}
        # Tenants that were met, by what Kafka's metrics call their topics.
        self._alike: dict[str, frozenset[str]] = {}
        self._crowded_out: set[str] = set()

    def named(self, topic: str) -> frozenset[str]:
        """Tenants to which a policy that names this topic was applied."""
        return self._moved.get(topic, NOTHING)

    def moved_topics(self) -> set[str]:
        """Topics that policies name, instead of the one that is named after the tenant."""
        return set(self._moved.copy())

    def alike(self, metric_names: Iterable[str]) -> Iterator[Tenant]:
        """Tenants whose topics have, or once had, one of these names in metrics."""
        for name in {name for each in metric_names for name in self._alike.get(each, NOTHING)}:
            # A tenant that had another topic before may have been forgotten since.
            if (tenant := self.now.by_name.get(name)) is not None:
                yield tenant

    def sharing(self) -> list[Tenant]:
        """Tenants whose policy shares an output, in the order in which they were met."""
        return [each for each in tuple(self.now.by_name.values()) if each.shared]

    def crowded_out(self) -> list[Tenant]:
        """Tenants for whose topics there is no room."""
        return [self.now.by_name[name] for name in self._crowded_out]

    def put(self, tenant: Tenant) -> None:
        """Put a new tenant, or one that is treated differently now, into the directory."""
        before = self.now.by_name.get(tenant.name)
        moved_to = tenant.effective.policy.output_topic
        if moved_to is not None:
            names = self._moved.get(moved_to, NOTHING)
            self._moved = {**self._moved, moved_to: names | {tenant.name}}
        if not tenant.shared:
            alike = metric_name(tenant.topic)
            self._alike[alike] = self._alike.get(alike, NOTHING) | {tenant.name}
        changed = {tenant.name: tenant}
        if self._moved:
            for topic in {each.topic for each in (before or tenant, tenant) if not each.shared}:
                self._agree_on(topic, changed)
        if before is None and len(changed) == 1 and not tenant.effective.policy.removed:
            self.now.join(changed[tenant.name])
            self._note_room(changed)
        else:
            self.swap(changed)

    def _agree_on(self, topic: str, changed: dict[str, Tenant]) -> None:
        """If tenants share a topic, all of them get the promise of any of them."""
        by_name = self.now.by_name
        names = {*self._moved.get(topic, NOTHING), topic.removeprefix(self._fired_prefix)}
        known = [changed.get(name) or by_name.get(name) for name in (*sorted(names), *changed)]
        sharing = {each.name: each for each in known if each is not None and each.topic == topic}
        agreed = {each.effective.policy.guarantee for each in sharing.values()} <= {AT_LEAST_ONCE}
        for name, each in sharing.items():
            if each.non_transactional is not agreed:
                changed[name] = replace(each, non_transactional=agreed)

    def swap(self, changed: dict[str, Tenant]) -> None:
        """Make another snapshot, with these values of tenants."""
        by_name, by_bytes, removed = self.now
        now_removed = set(removed)
        for tenant in changed.values():
            if tenant.effective.policy.removed:
                now_removed.add(tenant.name_bytes)
            else:
                now_removed.discard(tenant.name_bytes)
        self.now = Snapshot(
            by_name | changed,
            by_bytes | {each.name_bytes: each for each in changed.values()},
            frozenset(now_removed),
        )
        self._note_room(changed)

    def _note_room(self, changed: dict[str, Tenant]) -> None:
        for name, tenant in changed.items():
            if tenant.crowded_out:
                self._crowded_out.add(name)
            else:
                self._crowded_out.discard(name)

    def forget(self, gone: set[str]) -> None:
        """Make another snapshot, without these tenants; steps under way keep their snapshots."""
        by_name, _, removed = self.now
        kept = {name: tenant for name, tenant in by_name.items() if name not in gone}
        by_bytes = {tenant.name_bytes: tenant for tenant in kept.values()}
        self.now = Snapshot(kept, by_bytes, removed)
        self._crowded_out -= gone
        for name in gone:
            alike = metric_name(self._fired_prefix + name)
            left = self._alike.get(alike, NOTHING) - {name}
            if left:
                self._alike[alike] = left
            else:
                self._alike.pop(alike, None)
