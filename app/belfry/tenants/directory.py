"""The directory of tenants: how each is treated, by its policy and by the findings about it.

    policies' thread    follow(effective) ──► another value of one tenant ──► another snapshot
    outputs' threads    note(findings about a topic)                    ──► another snapshot
    partitions' threads                 begin of a step ──► the snapshot of now, until its end

A change makes a new snapshot, and one assignment puts it in place: a step that began before keeps
the old one whole (`snapshots`, `step_tenants`).

Any client can make names up, so some tenants are forgotten when there are thousands: those with no
policy, no output topic, and no findings about them. If such a tenant is met again, its value is the
same as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Final, Unpack

from belfry.tenants.effective import Delivery, EffectivePolicy, Level, Signing, Tenant, TenantFacts
from belfry.tenants.policy import TenantPolicy
from belfry.tenants.snapshots import AT_LEAST_ONCE, Snapshot, Snapshots
from belfry.tenants.topic_names import TopicNames
from belfry.tenants.topic_register import TopicRegister

# So many names are met before the directory is searched again for tenants to forget.
MET: Final = 10_000


class Tenants:
    """Directory of tenants, by name or by the name's bytes; unknown ones get the defaults.

    `effective_of` is asked for the policy of each tenant whose name is met for the first time; the
    shell answers from the topic of policies. Threads share a directory: `guard` is the lock that is
    held while it changes.
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
        """`most_unknown`: the most tenants without a policy that get topics; None: no limit."""
        self._fired_prefix = fired_prefix
        self.names = TopicNames(fired_prefix.removesuffix("fired."))
        self._delivery = delivery
        self._level = level
        self._guard = guard or nullcontext()
        self._meeting: set[str] = set()
        self._snapshots = Snapshots(fired_prefix)
        self.topics = TopicRegister(fired_prefix, self._snapshots, most_unknown)
        self.signing = signing or Signing()
        # The most bytes of a record in the topic that tenants share; 0 if nothing has asked yet.
        self.shared_record_bytes = 0
        self.store_problem = ""  # Why no payload can be stored elsewhere, or "".
        self.effective_of: Callable[[str], EffectivePolicy | None] = _no_policy
        self._look_at = MET

    @property
    def snapshot(self) -> Snapshot:
        """The tenants as they are treated now."""
        return self._snapshots.now

    def of(self, name: str) -> Tenant:
        """The tenant of this name, as it is treated now."""
        found = self.snapshot.by_name.get(name)
        return found if found is not None else self.meet(name, self.snapshot)

    def known(self, name: bytes) -> Tenant | None:
        """The tenant of this UTF-8 name, if it was met before."""
        return self.snapshot.by_bytes.get(name)

    def concerns(self, name: str) -> bool:
        """Whether a change of this tenant's policy has to be followed: it was met, or is being met.

        A tenant that is met while its policy changes may be made from the old policy.
        """
        return name in self._meeting or name in self.snapshot.by_name

    def of_bytes(self, name: bytes) -> Tenant:
        """The tenant of this UTF-8 name, as it is treated now."""
        found = self.snapshot.by_bytes.get(name)
        return found if found is not None else self.meet(name.decode(), self.snapshot)

    def meet(self, name: str, snapshot: Snapshot) -> Tenant:
        """The tenant of a name that a snapshot does not hold; the snapshot holds it from now on."""
        self._meeting.add(name)
        effective = self.effective_of(name) or self.defaults(name)
        with self._guard:
            tenant = self.snapshot.by_name.get(name)
            if tenant is None:
                self._snapshots.put(self._applied(None, effective))
                tenant = self.snapshot.by_name[name]
            tenant = snapshot.join(tenant)
            self._meeting.discard(name)
            if len(self.snapshot.by_name) > self._look_at:
                self._forget()
        return tenant

    def defaults(self, name: str) -> EffectivePolicy:
        """The policy of a tenant that has none of its own."""
        policy = TenantPolicy(name, delivery=self._delivery.value, lifecycle=self._level.value)
        return EffectivePolicy(policy)

    def follow(self, effective: EffectivePolicy, **found: Unpack[TenantFacts]) -> Tenant:
        """Put a policy into effect for its tenant, with the shell's findings about it."""
        name = effective.policy.tenant
        self.of(name)
        with self._guard:
            before = self.snapshot.by_name.get(name)
            self._snapshots.put(replace(self._applied(before, effective), **found))
            return self.snapshot.by_name[name]

    def note(self, findings: Iterable[tuple[Tenant, TenantFacts]]) -> None:
        """Note the shell's findings about tenants.

        A finding is about a topic: if a policy has moved the tenant's events to another topic
        meanwhile, the finding does not count.
        """
        changed: dict[str, Tenant] = {}
        with self._guard:
            for seen, found in findings:
                if seen.name not in self.snapshot.by_name:
                    # The tenant was forgotten meanwhile.
                    self._snapshots.put(seen)
                now = changed.get(seen.name) or self.snapshot.by_name[seen.name]
                if found and now.topic == seen.topic:
                    changed[seen.name] = replace(now, **found)
            if changed:
                self._snapshots.swap(changed)

    def hold(self, name: str, reason: str) -> None:
        """Let a tenant's events wait, for a reason of the shell's; an empty one ends the wait."""
        self.note([(self.of(name), {"held": reason})])

    def note_shared(self, record_bytes: int) -> None:
        """Note how large a record of the shared topic may be, for all tenants that share it."""
        with self._guard:
            if self.shared_record_bytes != record_bytes:
                self.shared_record_bytes = record_bytes
                known = self._snapshots
                shared = [replace(each, max_record_bytes=record_bytes) for each in known.sharing()]
                known.swap({each.name: each for each in shared})

    def note_topics(self, come: Iterable[str], gone: Iterable[str] = ()) -> None:
        """Note new output topics, and output topics that are gone."""
        with self._guard:
            self.topics.note(come, gone)

    def note_policies(self, come: Iterable[str], gone: Iterable[str] = ()) -> None:
        """Note tenants that have a policy from now on, and those that have none any more.

        A policy reserves the topic of its tenant's name, wherever its events go.
        """
        with self._guard:
            self.topics.reserve(come, gone)

    def topic_of(self, effective: EffectivePolicy) -> str:
        """Where the events of a tenant under this policy go."""
        return self.names.of(self.names.allowed(effective).policy)

    def secret_of(self, name: str) -> bytes:
        """The secret that signs requests which a worker writes itself for this tenant; or empty.

        Empty for tenants of belfry's own: only deliveries and probes are written for them. The call
        adds no tenant: it may come from any thread, with any name.
        """
        if self.signing.of(name) is not None:
            return b""
        known = self.snapshot.by_name.get(name)
        if known is not None:
            signs, accepted = known.signs, known.accepted
        else:
            signs, accepted = self.signing.needed(
                name, self.effective_of(name) or self.defaults(name)
            )
        return accepted[0] if signs and accepted else b""

    def on(self, topic: str) -> list[Tenant]:
        """The tenants whose events go to this topic; for the shared one, those that were met."""
        if topic == self.names.shared:
            return self._snapshots.sharing()
        names = set(self._snapshots.named(topic))
        if topic.startswith(self._fired_prefix):
            names.add(topic.removeprefix(self._fired_prefix))
        return [tenant for tenant in map(self.of, sorted(names)) if tenant.topic == topic]

    def target_problem(self, tenant: str, topic: str) -> str | None:
        """Why a target of this tenant must not name a topic, or None."""
        if other := min(self._snapshots.named(topic) - {tenant}, default=None):
            return f"Topic {topic!r} of a target is that of tenant {other}: name another one."
        return self.names.target_problem(tenant, topic)

    def moved_topics(self) -> set[str]:
        """Topics that policies name, or share, instead of the one named after the tenant."""
        return self._snapshots.moved_topics() | {self.names.shared}

    # -- under the guard -------------------------------------------------------------------------

    def _applied(self, before: Tenant | None, effective: EffectivePolicy) -> Tenant:
        """A tenant under this policy; the shell's findings about it stay."""
        effective = self.names.allowed(effective)
        name, topic = effective.policy.tenant, self.topic_of(effective)
        signs, accepted = self.signing.needed(name, effective)
        shared = effective.policy.is_shared
        tenant = before or Tenant(name, topic, effective)
        return replace(
            tenant,
            topic=topic,
            effective=effective,
            source_topic=self.names.requests if effective.policy.source_header else b"",
            non_transactional=effective.policy.guarantee == AT_LEAST_ONCE and not shared,
            signs=signs,
            accepted=accepted,
            collides_with=self.topics.rival(topic),
            crowded_out=self.topics.has_no_room(name, topic),
            max_record_bytes=(shared and self.shared_record_bytes) or tenant.max_record_bytes,
        )

    def _forget(self) -> None:
        """Forget the older half of the tenants that have no policy, no topic and no findings."""
        by_name = self.snapshot.by_name
        strangers = [name for name, tenant in by_name.items() if self._has_nothing(tenant)]
        self._snapshots.forget(set(strangers[: len(strangers) // 2]))
        self._look_at = len(self.snapshot.by_name) + MET

    def _has_nothing(self, tenant: Tenant) -> bool:
        by_default = tenant.effective.policy == self.defaults(tenant.name).policy
        plain = by_default and not tenant.held and tenant.name not in self._meeting
        return plain and not self.topics.known(self._fired_prefix + tenant.name)


def _no_policy(_name: str) -> None:
    """The default of `effective_of`: no tenant has a policy."""
