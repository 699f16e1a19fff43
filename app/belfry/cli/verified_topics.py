"""Which topics `belfry verify` compares, and of which belfry they are.

    changelog    the work of each transaction   ─┐
    lifecycle    reports on it                   ├─ names under one prefix
    rejected     refused requests               ─┘
    fired.…      fired events                   ─── and any topic that a policy names, or shares

The policy of a tenant names the topic of its events, and may change between two passes. So the
names are asked for anew in each pass; `--topic` adds topics of former policies.

A state file has to be of the same belfry as the topics, or all of them would seem to have lost
their records. `world_of` says which belfry it is, by the id of its changelog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException, TopicCollection

from belfry.cli.common_options import BOOTSTRAP
from belfry.cli.failures import CommandError, Exit
from belfry.client.kafka import Cluster
from belfry.tenants.canary import CANARY, CANARY_TOPIC
from belfry.tenants.deliveries import RETRIES
from belfry.tenants.policy import problems
from belfry.tenants.topic_names import TopicNames

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.tenants.policy import TenantPolicy

# Tenants of belfry's own that are spread, by policies that are built in.
_SPREAD: Final = frozenset({CANARY, RETRIES})


class VerifiedTopics:
    """Names of the topics that are compared, and what policies say of them.

    `topic` gives a short name its prefix. Those in `also` are read as well: events went there once,
    before a policy was changed. `tenants` maps a tenant to the output topic that its policy names,
    `repeats` are tenants whose guarantee lets events come twice, `held` those whose events may
    wait, and `spread` those that are spread, or were. `follow` brings them up to date.
    """

    def __init__(self, topic: Callable[[str], str], also: Iterable[str]) -> None:
        self.changelog = topic("changelog")
        self.homes = topic("homes")
        self.lifecycle = topic("lifecycle")
        self.rejected = topic("rejected")
        self.fired = topic("fired.")
        self._names = TopicNames(topic(""))
        self.tenants: dict[str, str] = {}
        self.repeats: frozenset[str] = frozenset()
        self.held: frozenset[str] = frozenset()
        self.spread = _SPREAD
        self._also = frozenset(also)
        self._canary = topic(CANARY_TOPIC)

    def follow(self, policies: Mapping[str, TenantPolicy]) -> None:
        """Where events go that do not go to the default, which may come twice, and which may wait,
        by policies.
        """
        self.tenants = {
            name: self._names.of(each)
            for name, each in policies.items()
            if each.is_shared or each.output_topic is not None
        } | {CANARY: self._canary}
        # On the shared topic an event comes once, under any policy.
        self.repeats = frozenset(
            name
            for name, each in policies.items()
            if each.guarantee != "EXACTLY_ONCE" and not each.is_shared
        )
        self.held = frozenset(name for name, each in policies.items() if _may_hold(each))
        self.spread = _SPREAD.union(
            name for name, each in policies.items() if each.former_spreads or each.spread != 1
        )

    def outputs(self, names: Iterable[str]) -> list[str]:
        """Output topics among all topics of the cluster."""
        named = self._also.union(self.tenants.values(), {self._names.shared})
        return [name for name in names if name.startswith(self.fired) or name in named]


def _may_hold(policy: TenantPolicy) -> bool:
    """Whether a policy is a reason for due events to wait: one of a later release is one, too."""
    limited = policy.max_fires_per_second is not None or policy.priority < 0
    return policy.paused or policy.removed or limited or bool(problems(policy))


def quick_cluster(session: Session) -> Cluster:
    """The cluster, with readers that turn from one topic to the next at once."""
    properties = {"fetch.wait.max.ms": 10, **session.settings.kafka_properties()}
    return Cluster(properties.pop(BOOTSTRAP), properties)


def world_of(session: Session) -> str:
    """Which changelog this is, wherever its brokers are reached.

    The id of a topic (KIP-516) is another one after it was deleted and made anew, so a state file
    of the one before is not mistaken for this one's. Raises `CommandError` with the exit code 3
    where there is no changelog.
    """
    cluster, admin = session.admin()
    topic = session.settings.topic("changelog")
    try:
        described = admin.describe_topics(TopicCollection([topic]))[topic].result()
    except KafkaException:
        raise CommandError(
            f"There is no topic {topic} at {cluster.servers}, so there is nothing to verify. If"
            " belfry's topics have another prefix, set BELFRY_CLUSTER__TOPIC_PREFIX.",
            Exit.NOT_FOUND,
        ) from None
    return f"{topic} with the id {described.topic_id}"
