"""What a connected worker gives to HTTP: the desk for writes, its holdings, and the directory.

They need Kafka, and the port does not: it answers from the first second, and this opens the rest
behind it as soon as the topics can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Thread
from typing import Final

import structlog

from belfry.api.workers.directory import Directory
from belfry.api.workers.holdings import Holdings
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.api.workers.request_client import Frames, RequestClient
from belfry.client.errors import BelfryError
from belfry.group.group import Group
from belfry.history.follower import Follower
from belfry.host.passing import PassThrough
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.supervisor import Owners
from belfry.policies.policy_client import PolicyClient
from belfry.process.kept_topics import ReadKeptTopics
from belfry.tenants.policy import TenantPolicy
from belfry.wire.lifecycle import LifecycleEvent

AGAIN_S: Final = 1.0
HISTORY_MS: Final = TenantPolicy("").history_ms

log = structlog.get_logger(__name__)


class Front:
    """Opens the parts of HTTP, and closes them."""

    def __init__(
        self,
        opener: PartitionOpener,
        parts: ApiDependencies,
        frames: Frames,
        group: Group,
        history_through: PassThrough,
    ) -> None:
        settings = opener.settings
        self._opener = opener
        self._parts = parts
        self._desk = RequestClient(settings, frames, opener.tenants.secret_of)
        self._directory = Directory(group, settings.http_advertised_url or "")
        self._history = Follower(
            settings,
            frames[1],
            self._held,
            self._retention_ms,
            opener.clock.wall_ms,
            history_through,
        )
        self._policies = PolicyClient(settings, opener.policies)
        self._kept = ReadKeptTopics(settings, opener.clock.wall_ms)
        self._holdings: Holdings | None = None
        self._stopping = Event()
        self._thread = Thread(target=self._open, name="belfry-front", daemon=True)

    def committed(self, events: Sequence[LifecycleEvent]) -> None:
        """Outcomes that a partition of this worker has committed: HTTP need not read them back."""
        self._desk.committed(events)

    def is_asked(self) -> bool:
        """Whether somebody uses the HTTP port just now."""
        return self._parts.traffic.lately(self._opener.clock.monotonic_ms() / 1000)

    def start(self, owners: Owners) -> None:
        """Begin to open; returns at once."""
        self._holdings = Holdings(owners, self._opener.tenants, self._opener.partitions)
        self._history.start(self._opener.partitions)
        self._thread.start()

    def stop(self) -> None:
        """Give threads and connections back."""
        self._stopping.set()
        self._thread.join()
        self._history.stop()
        self._desk.stop()

    def _held(self) -> list[int]:
        return [] if self._holdings is None else self._holdings.held()

    def _retention_ms(self, tenant: bytes) -> int:
        known = self._opener.tenants.known(tenant)
        if known is not None:
            return known.terms.policy.history_ms
        terms = self._opener.policies.terms_of(tenant.decode(errors="replace"))
        return HISTORY_MS if terms is None else terms.policy.history_ms

    def _open(self) -> None:
        assert self._holdings is not None
        while not self._stopping.is_set():
            try:
                self._desk.start()
            except BelfryError as error:
                log.warning("HTTP takes no requests yet", reason=str(error))
                self._stopping.wait(AGAIN_S)
            else:
                self._parts.open(self._opened(self._holdings))
                return

    def _opened(self, holdings: Holdings) -> Open:
        return Open(
            self._desk, holdings, self._directory, self._history, self._policies, self._kept
        )
