"""Redrives over HTTP: a worker counts, sends and marks one slice at a time.

    POST …/redrives   range of 2 300 refusals, 100 a second      sent 1 000, 1 300 are left
    POST …/redrives   the same once more                         sent 1 000,   300 are left
    POST …/redrives   the same once more                         sent   300,     0 are left

The transaction that sends a record also marks it as sent (`client/redrive.py`), so no state has to
be kept between two slices: any worker carries on, also after a kill amid one. No transaction of a
slice begins after `SLICE_S` seconds, and the look before it reads a bounded number of records. If
the process ends, a slice ends behind the transaction that is under way.
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
from belfry.host import machine
from belfry.settings import SharedSettings
from belfry.tenants.policy import TenantPolicy

# Seconds that the sending of one slice may take, whatever its rate.
SLICE_S: Final = 10
# The most records that are read: from the begin of the range to the end of the topic, some seconds.
MOST_READ: Final = 300_000
# A slice and a count, in threads of their own.
AT_ONCE: Final = 2


class RedriveSlices:
    """Carries out redrives and counts until the process ends; each call blocks its thread."""

    def __init__(self, settings: SharedSettings) -> None:
        """`settings` lead to Kafka."""
        self._settings = settings
        self._stopping = machine.Event()
        self._room = machine.Semaphore(AT_ONCE)

    def stop(self) -> None:
        """Make slices that are under way end soon, and wait for them."""
        self._stopping.set()
        for _ in range(AT_ONCE):
            self._room.acquire()
        # A slice that comes later ends at once, and says why.
        for _ in range(AT_ONCE):
            self._room.release()

    def redriven(
        self, work: RedriveWork, policies: Mapping[str, TenantPolicy]
    ) -> tuple[RedriveCount, int]:
        """The number of records to send again, and how many were sent.

        A tenant that has no topic yet has fired nothing, so both are 0. Raises `SharedTopic`,
        `TooMuchToRedrive`, `AnotherRedrive` and `Unavailable`.
        """
        with self._room:
            try:
                return self._redriven(work, policies)
            except MissingTopic:
                if isinstance(work.asked, RefireRange):
                    return RedriveCount(), 0
                raise

    def _redriven(
        self, work: RedriveWork, policies: Mapping[str, TenantPolicy]
    ) -> tuple[RedriveCount, int]:
        properties = self._settings.kafka_properties()
        cluster = Cluster(properties.pop("bootstrap.servers"), properties)
        # One id for all redrives of a belfry, those of the command line too: one works at a time.
        names, stops = (self._settings.topic("redrive"), NO_GROUP), self._stopping.wait
        source = _source(self._settings, work, policies)
        redrive = Redrive(cluster, names, source, MOST_READ, stops)
        if not work.per_second:
            return redrive.count(), 0
        sent = 0

        def told(number: int) -> None:
            nonlocal sent
            sent = number

        found = redrive.send(
            per_second=work.per_second,
            told=told,
            at_most=SLICE_S * work.per_second,
            at_most_s=SLICE_S,
        )
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
