"""The directory of tenants, and the snapshot of it that a step of a partition goes by.

    policies' thread    follow(effective) ──► another value of one tenant ──► another snapshot
    partitions' threads                 begin of a step ──► the snapshot of now, until its end

A change makes a new snapshot, and one assignment puts it in place: a step that began before keeps
the old one whole.  A tenant that is met for the first time joins the snapshots that are in use, so
no directory is copied to look up a name.

Anybody can make names up, so those that have nothing are forgotten when there are thousands: no
policy, no output topic, and nothing that was found out about them.  Met again, such a tenant is
what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from belfry.tenants.collisions import Collisions, metric_name
from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Signing, Tenant
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.topic_names import TopicNames

AT_LEAST_ONCE: Final = "AT_LEAST_ONCE"
# Names that were met since the directory was last looked through for those that nobody needs.
MET: Final = 10_000
NOTHING: Final[frozenset[str]] = frozenset()


class TenantFacts(TypedDict, total=False):
    """What the shell finds out about a tenant, and its policy does not say."""

    held: str
    max_record_bytes: int
    envelope_head: bytes
    crowded_out: bool


class Snapshot(NamedTuple):
    """Tenants that were met, by name and by its bytes; `removed` are the names of removed ones.

    The value under a name is never replaced, so a step that looks twice finds the same.
    """

    by_name: dict[str, Tenant]
    by_bytes: dict[bytes, Tenant]
    removed: frozenset[bytes]


class Tenants:
    """Directory of tenants, by name or by the name's bytes; unknown ones get the defaults.

    `effective_of` is asked for the policy of each tenant whose name is met for the first time; the
    shell answers it from the topic of policies.  Threads share a directory: `guard` is the lock
    that is held while it changes.
    """

    def __init__(
        self,
        fired_prefix: str,
        delivery: Delivery,
        level: Level,
        guard: AbstractContextManager[Any] | None = None,
        signing: Signing | None = None,
        most_unknown: int | None = None,
    ) -> None:
        """`most_unknown`: most tenants without a policy that may have topics; None: any number."""
        self._fired_prefix = fired_prefix
        self.names = TopicNames(fired_prefix.removesuffix("fired."))
        self._delivery = delivery
        self._level = level
        self._guard = guard or nullcontext()
        # Topics that policies name, and the tenants that were treated by such a policy.
        self._moved: dict[str, frozenset[str]] = {}
        self._meeting: set[str] = set()
        self._collisions = Collisions(fired_prefix)
        # Tenants that were met, by what Kafka's metrics call their topics.
        self._alike: dict[str, frozenset[str]] = {}
        self.snapshot = Snapshot({}, {}, frozenset())
        self.signing = signing or Signing()
        self.effective_of: Callable[[str], EffectivePolicy | None] = _nobody
        self._look_at = MET
        self.most_unknown = most_unknown
        self._any_crowded_out = False

    def of(self, name: str) -> Tenant:
        """The tenant of this name, as it is treated now."""
        found = self.snapshot.by_name.get(name)
        return found if found is not None else self.meet(name, self.snapshot)

    def known(self, name: bytes) -> Tenant | None:
        """The tenant of this UTF-8 name, if it was asked for before."""
        return self.snapshot.by_bytes.get(name)

    def concerns(self, name: str) -> bool:
        """Whether a change of this tenant's policy has to be followed: it was met, or is just now.

        A tenant that is met while its policy changes may have been asked for by the old one.
        """
        return name in self._meeting or name in self.snapshot.by_name

    def of_bytes(self, name: bytes) -> Tenant:
        """The tenant of this UTF-8 name, as it is treated now."""
        found = self.snapshot.by_bytes.get(name)
        return found if found is not None else self.meet(name.decode(), self.snapshot)

    def meet(self, name: str, snapshot: Snapshot) -> Tenant:
        """The tenant of a name that a snapshot does not hold; it does from now on."""
        self._meeting.add(name)
        effective = self.effective_of(name) or self.defaults(name)
        with self._guard:
            tenant = self.snapshot.by_name.get(name)
            if tenant is None:
                self._put(self._applied(None, effective))
                tenant = self.snapshot.by_name[name]
            tenant = snapshot.by_name.setdefault(name, tenant)
            snapshot.by_bytes[tenant.name_bytes] = tenant
            self._meeting.discard(name)
            if len(self.snapshot.by_name) > self._look_at:
                self._forget()
        return tenant

    def defaults(self, name: str) -> EffectivePolicy:
        """The policy of a tenant that has none of its own."""
        policy = TenantPolicy(name, delivery=self._delivery.value, lifecycle=self._level.value)
        return EffectivePolicy(policy)

    def follow(self, effective: EffectivePolicy, **found: Unpack[TenantFacts]) -> Tenant:
        """Put a policy into effect for its tenant, with what the shell found out about it."""
        name = effective.policy.tenant
        self.of(name)
        with self._guard:
            before = self.snapshot.by_name.get(name)
            self._put(replace(self._applied(before, effective), **found))
            return self.snapshot.by_name[name]

    def note(self, findings: Iterable[tuple[Tenant, TenantFacts]]) -> None:
        """Note what the shell found out about tenants.

        It is found out about a topic: where a policy has moved the tenant's events to another one
        meanwhile, it says nothing any more.
        """
        changed: dict[str, Tenant] = {}
        with self._guard:
            for seen, found in findings:
                if seen.name not in self.snapshot.by_name:
                    # It was forgotten meanwhile.
                    self._put(seen)
                now = changed.get(seen.name) or self.snapshot.by_name[seen.name]
                if found and now.topic == seen.topic:
                    changed[seen.name] = replace(now, **found)
                    self._any_crowded_out |= now.crowded_out or "crowded_out" in found
            if changed:
                self._swap(changed)

    def hold(self, name: str, reason: str) -> None:
        """Let a tenant's events wait, for a reason of the shell's; an empty one ends it."""
        self.note([(self.of(name), {"held": reason})])

    def note_topics(self, come: Iterable[str], gone: Iterable[str] = ()) -> None:
        """Note output topics that are there from now on, and those that are not any more."""
        with self._guard:
            self._judge(self._collisions.topics(come, gone))
            self._make_room()

    def note_policies(self, come: Iterable[str], gone: Iterable[str] = ()) -> None:
        """Note tenants that have a policy from now on, and those that have none any more.

        What a policy reserves is the topic of its tenant's name, wherever its events go.
        """
        prefix = self._fired_prefix
        with self._guard:
            self._judge(
                self._collisions.reservations(
                    [prefix + name for name in come], [prefix + name for name in gone]
                )
            )
            self._make_room()

    @property
    def unknown_topics(self) -> int:
        """How many output topics of tenants without a policy there are."""
        return self._collisions.unreserved

    def has_policy(self, tenant: Tenant) -> bool:
        """Whether a tenant is treated otherwise than those that nobody knows, or is known."""
        named_after = tenant.topic == self._fired_prefix + tenant.name
        return not named_after or self._collisions.reserved(tenant.topic)

    def topic_of(self, effective: EffectivePolicy) -> str:
        """Where the events of a tenant under this policy go."""
        policy = self.names.allowed(effective).policy
        return policy.output_topic or self._fired_prefix + policy.tenant

    def secret_of(self, name: str) -> bytes:
        """What a worker signs a request of this tenant with that it writes itself; or nothing.

        Nothing for tenants of belfry's own: only what follows from a delivery, and probes, are
        written for them.

        Asking makes no tenant: it may come from any thread, and name anybody.
        """
        if self.signing.of(name) is not None:
            return b""
        known = self.snapshot.by_name.get(name)
        if known is not None:
            signs, accepted = known.signs, known.accepted
        else:
            signs, accepted = self._signature(name, self.effective_of(name) or self.defaults(name))
        return accepted[0] if signs and accepted else b""

    def on(self, topic: str) -> list[Tenant]:
        """The tenants whose events go to this topic."""
        names = set(self._moved.get(topic, NOTHING))
        if topic.startswith(self._fired_prefix):
            names.add(topic.removeprefix(self._fired_prefix))
        return [tenant for tenant in map(self.of, sorted(names)) if tenant.topic == topic]

    def target_problem(self, tenant: str, topic: str) -> str | None:
        """Why a target of this tenant must not name a topic, or None."""
        if other := min(self._moved.get(topic, NOTHING) - {tenant}, default=None):
            return f"Topic {topic!r} of a target is that of tenant {other}: name another one."
        return self.names.target_problem(tenant, topic)

    def moved_topics(self) -> set[str]:
        """Topics that policies name, instead of the one that is named after the tenant."""
        return set(self._moved.copy())

    # -- under the guard -------------------------------------------------------------------------

    def _applied(self, before: Tenant | None, effective: EffectivePolicy) -> Tenant:
        """A tenant under this policy; what the shell found out of it stays."""
        effective = self.names.allowed(effective)
        name, topic = effective.policy.tenant, self.topic_of(effective)
        signs, accepted = self._signature(name, effective)
        return replace(
            before or Tenant(name, topic, effective),
            topic=topic,
            effective=effective,
            non_transactional=effective.policy.guarantee == AT_LEAST_ONCE,
            signs=signs,
            accepted=accepted,
            collides_with=self._rival(topic),
            crowded_out=self._crowded_out(name, topic),
        )

    def _crowded_out(self, name: str, topic: str) -> bool:
        """Whether a tenant would need a topic beyond those that unknown tenants may have."""
        if self.most_unknown is None or topic != self._fired_prefix + name:
            return False
        if self._collisions.known(topic):
            return False
        return self.unknown_topics >= self.most_unknown

    def _make_room(self) -> None:
        """Look again for whom there is no room, after topics or policies have come or gone."""
        if not self._any_crowded_out:
            return
        found: dict[str, Tenant] = {}
        for name, tenant in self.snapshot.by_name.items():
            if tenant.crowded_out and not self._crowded_out(name, tenant.topic):
                found[name] = replace(tenant, crowded_out=False)
        if found:
            self._swap(found)
        crowded_out = (tenant.crowded_out for tenant in self.snapshot.by_name.values())
        self._any_crowded_out = any(crowded_out)

    def _forget(self) -> None:
        """Forget the older half of those that have nothing; steps under way keep their snapshot."""
        by_name, _, removed = self.snapshot
        strangers = [name for name, tenant in by_name.items() if self._has_nothing(tenant)]
        gone = set(strangers[: len(strangers) // 2])
        kept = {name: tenant for name, tenant in by_name.items() if name not in gone}
        by_bytes = {tenant.name_bytes: tenant for tenant in kept.values()}
        self.snapshot = Snapshot(kept, by_bytes, removed)
        for name in gone:
            alike = metric_name(self._fired_prefix + name)
            left = self._alike[alike] - {name}
            if left:
                self._alike[alike] = left
            else:
                del self._alike[alike]
        self._look_at = len(kept) + MET

    def _has_nothing(self, tenant: Tenant) -> bool:
        by_default = tenant.effective.policy == self.defaults(tenant.name).policy
        plain = by_default and not tenant.held and tenant.name not in self._meeting
        return plain and not self._collisions.known(self._fired_prefix + tenant.name)

    def _rival(self, topic: str) -> str | None:
        rival = self._collisions.rival(topic)
        return None if rival is None else rival.removeprefix(self._fired_prefix)

    def _judge(self, alike: set[str]) -> None:
        """Look again who collides with whom, among tenants whose topics have these names."""
        changed: dict[str, Tenant] = {}
        for name in {name for each in alike for name in self._alike.get(each, NOTHING)}:
            tenant = self.snapshot.by_name.get(name)
            if tenant is None:
                # It had another topic once, and was forgotten since.
                continue
            rival = self._rival(tenant.topic)
            if rival != tenant.collides_with:
                changed[name] = replace(tenant, collides_with=rival)
        if changed:
            self._swap(changed)

    def _signature(self, name: str, effective: EffectivePolicy) -> tuple[bool, tuple[bytes, ...]]:
        """Whether a tenant's requests have to be signed, and the secrets that may sign them."""
        everybody, requests = self.signing.everybody, self.signing.requests
        if (own := self.signing.of(name)) is not None:
            # Workers alone write for it.  Where nobody has to sign they may have nothing to sign
            # with; where all have to, nothing unsigned counts, not even theirs.
            return everybody or bool(own), own
        signs = everybody or effective.policy.signing_secret_ref is not None
        return signs, (*effective.secrets, *requests)

    def _put(self, tenant: Tenant) -> None:
        """Put a tenant that is treated otherwise into the directory, or one that is new."""
        self._any_crowded_out = self._any_crowded_out or tenant.crowded_out
        before = self.snapshot.by_name.get(tenant.name)
        moved_to = tenant.effective.policy.output_topic
        if moved_to is not None:
            names = self._moved.get(moved_to, NOTHING)
            self._moved = {**self._moved, moved_to: names | {tenant.name}}
        alike = metric_name(tenant.topic)
        self._alike[alike] = self._alike.get(alike, NOTHING) | {tenant.name}
        changed = {tenant.name: tenant}
        if self._moved:
            for topic in {tenant.topic if before is None else before.topic, tenant.topic}:
                self._agree_on(topic, changed)
        if before is None and len(changed) == 1 and not tenant.effective.policy.removed:
            self.snapshot.by_name[tenant.name] = changed[tenant.name]
            self.snapshot.by_bytes[tenant.name_bytes] = changed[tenant.name]
        else:
            self._swap(changed)

    def _agree_on(self, topic: str, changed: dict[str, Tenant]) -> None:
        """Where tenants share a topic, all of them get what one of them is promised."""
        by_name = self.snapshot.by_name
        names = {*self._moved.get(topic, NOTHING), topic.removeprefix(self._fired_prefix)}
        known = [changed.get(name) or by_name.get(name) for name in (*sorted(names), *changed)]
        sharing = {each.name: each for each in known if each is not None and each.topic == topic}
        agreed = {each.effective.policy.guarantee for each in sharing.values()} <= {AT_LEAST_ONCE}
        for name, each in sharing.items():
            if each.non_transactional is not agreed:
                changed[name] = replace(each, non_transactional=agreed)

    def _swap(self, changed: dict[str, Tenant]) -> None:
        """Another snapshot in which these tenants are treated otherwise."""
        by_name, by_bytes, removed = self.snapshot
        now_removed = set(removed)
        for tenant in changed.values():
            if tenant.effective.policy.removed:
                now_removed.add(tenant.name_bytes)
            else:
                now_removed.discard(tenant.name_bytes)
        self.snapshot = Snapshot(
            by_name | changed,
            by_bytes | {each.name_bytes: each for each in changed.values()},
            frozenset(now_removed),
        )


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

    def of(self, name: str) -> Tenant:
        """The tenant of this name."""
        found = self._by_name.get(name)
        return found if found is not None else self._directory.meet(name, self._now)

    def known(self, name: bytes) -> Tenant | None:
        """The tenant of this UTF-8 name, if it was asked for before."""
        return self._by_bytes.get(name)

    def of_bytes(self, name: bytes) -> Tenant:
        """The tenant of this UTF-8 name."""
        found = self._by_bytes.get(name)
        return found if found is not None else self._directory.meet(name.decode(), self._now)


def _nobody(_name: str) -> None:
    """Nobody has policies: all tenants are treated alike."""
