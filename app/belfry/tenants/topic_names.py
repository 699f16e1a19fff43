"""Which topics a tenant's events may go to.

A policy names a topic, and workers may write to all of belfry's topics. So the topic of a policy,
or of a record of one, is checked wherever it comes in, and once more when the policy is applied:

    payments.reminders      allowed: no name of belfry, Kafka or a tenant
    belfry.fired.<itself>   allowed: where its events go by default
    belfry.fired.<other>    another tenant's
    belfry.fired            only by `output` SHARED: events of all tenants that share an output
    belfry.tenants          belfry's own: a record there is a policy, a delivery, state
    belfry_fired_x          belfry.fired.x in Kafka's metrics, so either keeps the other out
    __consumer_offsets      Kafka's own

Why so strict: a worker may write to every topic of belfry, with rights that no tenant has.  A
policy that named `belfry.tenants` as its output would turn each fire into a tenant's policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from belfry.tenants.canary import CANARY, CANARY_TOPIC, SLO_TOPIC
from belfry.tenants.collisions import metric_name
from belfry.tenants.deliveries import RETRIES
from belfry.tenants.effective import EffectivePolicy
from belfry.tenants.policy import TenantPolicy

KAFKAS: Final = "__"
FIRED: Final = "fired"
LETTERS: Final = "dead-letters"
DELIVERIES: Final = "deliveries"
# Names of belfry's own topics, behind the prefix; names of tenants' topics go on with a dot.
INTERNAL: Final = frozenset(
    {
        "schedules",
        FIRED,
        "rejected",
        LETTERS,
        "lifecycle",
        DELIVERIES,
        "undelivered",
        "tenants",
        "changelog",
        # The number of its partitions is the number of homes.
        "homes",
        "audit",
        "metering",
        CANARY_TOPIC,
        SLO_TOPIC,
        # Names of groups and of positions, so that no topic is mistaken for them.
        "client",
        "deliver",
        "heartbeats",
        "inlets",
    }
)

# Topics that tenants of belfry's own fire to.
OWN_TOPICS: Final = frozenset({(RETRIES, DELIVERIES), (CANARY, CANARY_TOPIC)})


class TopicNames(NamedTuple):
    """The names of one belfry's topics, which begin with its prefix, such as ``belfry.``."""

    prefix: str

    @property
    def shared(self) -> str:
        """The output topic of all tenants whose policy shares it."""
        return self.prefix + FIRED

    @property
    def requests(self) -> bytes:
        """The topic of requests, in UTF-8."""
        return self.prefix.encode() + b"schedules"

    @property
    def letters(self) -> str:
        """The start of the names of topics of dead letters, before the tenant's name."""
        return f"{self.prefix}{LETTERS}."

    def of(self, policy: TenantPolicy) -> str:
        """The topic that a policy sends its tenant's events to."""
        if policy.is_shared:
            return self.shared
        return policy.output_topic or f"{self.shared}.{policy.tenant}"

    def problem(self, tenant: str, topic: str | None) -> str | None:
        """Why this tenant's events must not go to a topic (None: the default), or None."""
        whose = None if topic is None else self.whose(tenant, topic)
        if whose is None:
            return None
        return (
            f"output_topic {topic!r} is reserved: {whose}. Leave it out for"
            f" {self.prefix}fired.{tenant}, or name a topic of your own; several tenants share"
            f" {self.shared} with output SHARED."
        )

    def target_problem(self, tenant: str, topic: str) -> str | None:
        """Why a target of this tenant must not name a topic, or None."""
        whose = self.whose(tenant, topic)
        if whose is None:
            return None
        return f"Topic {topic!r} of a target is reserved: {whose}. Name a topic of your own."

    def whose(self, tenant: str, topic: str) -> str | None:
        """The owner of a topic that this tenant's events must not go to, or None.

        A clause for an error message, such as "names that begin with __ are Kafka's own".
        """
        if topic == f"{self.prefix}fired.{tenant}":
            return None
        if topic in {self.prefix + name for own, name in OWN_TOPICS if own == tenant}:
            return None
        if topic.startswith(KAFKAS):
            return "names that begin with __ are Kafka's own"
        if self._is_internal(topic):
            return f"belfry keeps it for itself or for another tenant (prefix {self.prefix})"
        return None

    def allowed(self, effective: EffectivePolicy) -> EffectivePolicy:
        """The policy; one that names a topic of others makes its tenant's events wait.

        So no tenant that the engine sees fires to such a topic, whatever wrote the policy.
        """
        why = self.problem(effective.policy.tenant, effective.policy.output_topic)
        if why is None:
            return effective
        policy = replace(effective.policy, output_topic=None)
        return effective._replace(policy=policy, blocked=effective.blocked or why)

    def reserved(self, uses: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Of pairs of tenant and topic: the topics that must not be fired to, and why.

        This is the last check before a step produces, whatever a policy says by then.
        """
        found = {topic: self.problem(tenant, topic) for tenant, topic in uses}
        return {topic: why for topic, why in found.items() if why is not None}

    def _is_internal(self, topic: str) -> bool:
        name, prefix = metric_name(topic), metric_name(self.prefix)
        # `fired_x` and `fired.x` are one name to Kafka's metrics.
        return name.startswith(prefix) and name.removeprefix(prefix).split("_")[0] in INTERNAL


def taken_topics(
    before: Mapping[str, TenantPolicy], policies: tuple[TenantPolicy, ...]
) -> Iterator[str]:
    """Why policies may not name their topics: another tenant's policy names the same.

    A topic that a tenant has already stays its own, even if another tenant has it too.
    """
    users: dict[str, set[str]] = {}
    for policy in {**before, **{each.tenant: each for each in policies}}.values():
        if policy.output_topic is not None:
            users.setdefault(policy.output_topic, set()).add(policy.tenant)
    for policy in policies:
        topic, stands = policy.output_topic, before.get(policy.tenant)
        if topic is None or (stands is not None and stands.output_topic == topic):
            continue
        others = sorted(users[topic] - {policy.tenant})
        if others:
            yield (
                f"{policy.tenant}: output_topic {topic!r} is that of tenant {others[0]}: name"
                " another topic, or say that they are to share it (`belfry tenant set"
                " --share-topic`, over HTTP `?share_topic=true`)."
            )
