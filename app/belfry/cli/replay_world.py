"""What all partitions of a replay share: topics, settings, policies, and the place of each.

settings, policies ─► ReplayWorld ─┬─► place        a partition as an engine sees it
                                   └─► treatment    tenants, by the time of their policies
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from belfry.cli.replay_keys import keys_by
from belfry.cli.replay_topics import ReplayTopics
from belfry.engine.reports import SourcePartition
from belfry.placement.partition_count import PartitionCount
from belfry.playback.logged import Unplayable
from belfry.playback.treatment import PolicyAt, Treatment, said_in
from belfry.policies.secrets import SecretPlaces
from belfry.schedules.identity import Homes
from belfry.tenants.effective import Signing
from belfry.tenants.policy import TenantPolicy
from belfry.wire.worker_keys import Purpose

if TYPE_CHECKING:
    from belfry.registry.subjects import Look
    from belfry.settings import CommandSettings
    from belfry.store.row_judge import Judge


class ReplayWorld(NamedTuple):
    """Data that all partitions of a replay share."""

    topics: ReplayTopics
    settings: CommandSettings
    policies: list[PolicyAt]
    partitions: PartitionCount
    look: Look | None
    judge_of: Callable[[int], Judge]
    # Most events that the workers fire in a transaction.
    chunk: int
    # The same, while notes say how many have come.
    counted: Callable[[Iterable[Any], str], Iterator[Any]]
    # Whether the topic of policies lacks some that were in effect once.
    policies_compacted: bool = False

    def place(self, partition: int) -> SourcePartition:
        """The partition as an engine sees it."""
        keys_of_origin = self.settings.worker_keys(Purpose.ORIGIN)
        name = self.settings.topic("schedules")
        homes = Homes(self.partitions.homes)
        return SourcePartition(name, partition, homes, keys_of_origin, self.partitions, False)

    def treatment(self, always: Mapping[str, TenantPolicy] | None = None) -> Treatment:
        """Policies by their time; those that hold `always` win."""
        wanted = (Purpose.REQUESTS, Purpose.DELIVERIES, Purpose.CANARY)
        signing = Signing(False, *map(self.settings.worker_keys, wanted))
        prefix = self.settings.cluster.topic_prefix
        keys = keys_by(SecretPlaces(self.settings.secrets_dir))
        gone = self.policies_compacted
        return Treatment(self.policies, prefix, signing, always, keys, compacted=gone)


def check_secrets(world: ReplayWorld, statement: bytes | None) -> None:
    """Raise `Unplayable` where requests were judged by secrets that are not here."""
    if said_in(statement).get("http_worker_secret") and not world.settings.worker_secrets():
        raise Unplayable(
            "The workers sign with a secret, and the settings here have none, so requests would be"
            " judged otherwise: set BELFRY_HTTP_WORKER_SECRET."
        )
    policies = [each.policy for each in world.policies if each.policy is not None]
    signed = sorted({each.tenant for each in policies if each.signing_secret_ref})
    if signed:
        raise Unplayable(
            f"Requests of {', '.join(signed[:5])} are signed with secrets of their own, which a"
            " playback does not read: it cannot judge them as a worker did."
        )
