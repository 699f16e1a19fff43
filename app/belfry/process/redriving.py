"""Redrive as HTTP asks for it: a slice at a time, counted, sent and marked by a worker.

    POST …/redrives   range of 2 300 refusals, 100 a second      sent 1 000, 1 300 are left
    POST …/redrives   the same once more                         sent 1 000,   300 are left
    POST …/redrives   the same once more                         sent   300,     0 are left

What was sent is marked in the transaction that sends it (`client/redrive.py`), so nothing has to be
remembered between two slices: any worker carries on, also after a kill amid one.  A slice takes
`SLICE_S` seconds at most, and the look before it reads a bounded number of records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from belfry.api.workers.kept import RedriveWork
from belfry.client.errors import MissingTopic
from belfry.client.kafka import NO_GROUP, Cluster
from belfry.client.redrive import Redrive
from belfry.client.redrive_source import RedriveCount, RedriveSource
from belfry.client.refired import FiredSource, RefireRange, refire_topic
from belfry.client.refusals import RefusedSource
from belfry.settings import SharedSettings
from belfry.tenants.policy import TenantPolicy

# Seconds that the sending of one slice may take at its rate.
SLICE_S: Final = 10
# Records that are looked at: from the begin of the range to the end of the topic, some seconds.
MOST_READ: Final = 300_000


def redriven(
    settings: SharedSettings, work: RedriveWork, policies: Mapping[str, TenantPolicy]
) -> tuple[RedriveCount, int]:
    """What there is to send again, and how much of it was sent; blocks.

    A tenant that has no topic yet has fired nothing, so there is nothing.  Raises `SharedTopic`,
    `TooMuchToRedrive`, `AnotherRedrive` and `Unavailable`.
    """
    try:
        return _redriven(settings, work, policies)
    except MissingTopic:
        if isinstance(work.asked, RefireRange):
            return RedriveCount(), 0
        raise


def _redriven(
    settings: SharedSettings, work: RedriveWork, policies: Mapping[str, TenantPolicy]
) -> tuple[RedriveCount, int]:
    properties = settings.kafka_properties()
    cluster = Cluster(properties.pop("bootstrap.servers"), properties)
    # One id for all redrives of a belfry, those of the command line too: one works at a time.
    names = settings.topic("redrive"), NO_GROUP
    redrive = Redrive(cluster, names, _source(settings, work, policies), MOST_READ)
    if not work.per_second:
        return redrive.count(), 0
    sent = 0

    def told(number: int) -> None:
        nonlocal sent
        sent = number

    most = SLICE_S * work.per_second
    found = redrive.send(per_second=work.per_second, told=told, at_most=most)
    return found, sent


def _source(
    settings: SharedSettings, work: RedriveWork, policies: Mapping[str, TenantPolicy]
) -> RedriveSource:
    prefix, asked = settings.topic(""), work.asked
    if not isinstance(asked, RefireRange):
        return RefusedSource(prefix, asked, work.reason)
    topic = refire_topic(work.tenant, policies, prefix)
    if topic == settings.topic("fired"):
        asked = asked._replace(tenant=work.tenant)
    return FiredSource(topic, asked)
