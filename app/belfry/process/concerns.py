"""Problems around a worker whose partitions fire: disk, registry, hosts of webhooks, the store of
large payloads, and schedules that do not fire though their rules say so.

None of these makes the worker unready, since it would not help to take it out of a load balancer.
So each has a metric with an alert, and a sentence among the `warnings` of `/healthz/ready` and
`/v1/cluster`, which the page and `belfry doctor` show.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Final

from belfry.api.workers.view import Posting
from belfry.delivery.silent_hosts import SilentHosts
from belfry.engine.stale import StaleSchedules
from belfry.host.disk import MIB, DataDisk
from belfry.partitions.opener import PartitionOpener
from belfry.registry.addresses import shown
from belfry.schedules.instants import format_instant
from belfry.settings import Settings
from belfry.telemetry.metrics import Metrics

# A disk is nearly full if less than so many times the reserve is left.
NEAR: Final = 2


class Concerns:
    """The findings of other parts around a worker; any scrape may ask, since it checks nothing."""

    def __init__(
        self, settings: Settings, opener: PartitionOpener, silent: SilentHosts, disk: DataDisk
    ) -> None:
        """`opener` has the lookups at the registry, and the store of large payloads."""
        self._disk = disk
        self._reserve_mb = settings.disk_reserve_mb
        self._wait_ms = settings.registry_wait_ms
        self._lookups = opener.lookups
        self._payloads = opener.payloads
        self._registry_url = shown(settings.schema_registry_url or "")
        self._silent = silent
        self._posts = settings.role == "all"

    def posting(self) -> Posting:
        """Whether this worker delivers, and which hosts of webhooks do not answer."""
        return Posting(self._posts, silent_hosts=self._silent.views())

    def found(self) -> list[str]:
        """A sentence for each problem, without its full stop."""
        disk = self._disk.problem or nearly_full(self._disk, self._reserve_mb)
        sentences = (disk, self._registry(), self._store(), self._silent.sentence())
        return [*filter(None, sentences)]

    def show(self, metrics: Metrics) -> None:
        """Bring the gauges up to date."""
        metrics.disk(self._disk.free_bytes, self._reserve_mb * MIB)
        metrics.silent_hosts(len(self._silent))

    def _registry(self) -> str:
        why = "" if self._lookups is None else self._lookups.doubt()
        if not why:
            return ""
        return (
            f"the schema registry does not answer lookups at {self._registry_url} ({why}): start"
            " it, or mend its address (BELFRY_SCHEMA_REGISTRY_URL) or its credentials. Until then"
            " requests with schemas that are known are taken in; others wait for up to"
            f" {self._wait_ms / 1000:g} s (BELFRY_REGISTRY_WAIT_MS) and are then refused"
        )

    def _store(self) -> str:
        why = self._payloads.away
        if not why:
            return ""
        return (
            f"the store of large payloads (BELFRY_PAYLOAD_STORE) does not take any: {why}. Requests"
            " with one are refused (payload_not_stored) until it does; all else goes on"
        )


def nearly_full(disk: DataDisk, reserve_mb: int) -> str:
    """The sentence about a disk that is nearly full; empty if enough is left."""
    if disk.free_bytes >= NEAR * reserve_mb * MIB:
        return ""
    return (
        f"the disk of {disk.folder} has {disk.free_bytes // MIB} MiB left; below {reserve_mb} MiB"
        " (BELFRY_DISK_RESERVE_MB) this worker gives its partitions away: make room"
    )


def stale_sentence(found: Iterable[StaleSchedules]) -> list[str]:
    """The sentence about stale schedules of partitions; empty if there are no stale schedules."""
    stale = [each for each in found if each.number]
    if not stale:
        return []
    number, oldest = sum(each.number for each in stale), min(stale, key=lambda each: each.since_ms)
    tenant, _, schedule_id = oldest.name.partition("/")
    have = "schedule has" if number == 1 else "schedules have"
    told = (
        f"{number} recurring {have} not fired though the rule says so; {oldest.name} should have"
        f" at {format_instant(oldest.since_ms)}: belfry schedule why {tenant} {quote(schedule_id)}"
        " says what became of it"
    )
    return [told]
