"""The parts of a connected worker for HTTP, for Faust's table and for its canary.

These parts need Kafka, and the port does not: the port answers from the first second, and this
module opens the parts behind it as soon as the topics can be read.

    12:00:00.0  the port answers: /healthz/live, /metrics; other routes have to wait
    12:00:01.2  topics are there; partitions are being taken over
    12:00:01.2  `belfry-front` opens a writer, and a reader of verdicts, or tries again
    12:00:01.4  `parts.open`: HTTP takes requests and answers reads

The thread ends with that. The parts have threads of their own, which `stops` names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from belfry.api.workers.day_payloads import DayPayloads
from belfry.api.workers.directory import Directory
from belfry.api.workers.holdings import Holdings
from belfry.api.workers.key_group_moves import KeyGroupMoves
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.api.workers.request_client import Frames, RequestClient
from belfry.canary.asking import CanaryRequests
from belfry.canary.canary import Canary, CanaryPlace
from belfry.group.group import Group
from belfry.group.schedules_store import HeldPartitions
from belfry.history.fire_hours import FireHours
from belfry.history.follower import Follower
from belfry.host.background import END, Background
from belfry.host.passing import PassThrough
from belfry.partitions.opener import PartitionOpener
from belfry.partitions.supervisor import Owners
from belfry.policies.policy_client import PolicyClient
from belfry.process.checkpoints import door_of
from belfry.process.kept_topics import ReadKeptTopics
from belfry.schedules.identity import Homes
from belfry.tenants.policy import TenantPolicy
from belfry.wire.accepted import Told
from belfry.wire.worker_keys import Purpose, first

# The retention of the history of a tenant without a policy, in ms.
HISTORY_MS: Final = TenantPolicy("").history_ms
log = structlog.get_logger(__name__)


class Front:
    """Opens the parts of HTTP, and closes them.

    `parts` are for the routes, `frames` are the first bytes of records, and batches of lifecycle
    records go through `history_through` to their reader. The constructor starts nothing.
    """

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
        self._request_client = RequestClient(settings, frames, opener.tenants.secret_of)
        self._directory = Directory(group, settings.http_advertised_url or "")
        self._history = Follower(
            settings,
            frames[1],
            self._held,
            self._retention_ms,
            opener.metrics.fire_hours or FireHours(opener.clock.wall_ms),
            history_through,
        )
        self._policies = PolicyClient(settings, opener.policies)
        self._kept = ReadKeptTopics(settings, opener.clock.wall_ms)
        asking = CanaryRequests(
            Homes(opener.partitions), frames[0], first(settings.worker_keys(Purpose.CANARY))
        )
        # Rows of the canary name the process that wrote them, so two runs of one worker differ.
        run = f"{group.worker}-{int(opener.clock.wall_ms())}"
        place = CanaryPlace(asking, opener.partitions, opener.clock.wall_ms, run)
        self._canary = Canary(settings, place, self._owned, opener.metrics)
        self._holdings: Holdings | None = None
        self._owners: Owners | None = None
        self._thread = Background("front", self._open, log, "HTTP takes no requests yet")

    def committed(self, events: Sequence[Told]) -> None:
        """Take in outcomes that a partition here has committed: HTTP need not read them back.

        It is called by each partition's thread right after its commit, and returns at once.
        """
        self._request_client.committed(events)
        self._canary.committed(events)

    def is_asked_often(self) -> bool:
        """Whether many calls come in at the HTTP port just now."""
        return self._parts.traffic.many(self._opener.clock.monotonic_ms() / 1000)

    def start(self, owners: Owners) -> None:
        """Begin to open; returns at once. `owners` give the owned partitions, whenever asked."""
        self._owners = owners
        self._holdings = Holdings(owners, self._opener.tenants, self._opener.partitions)
        self._history.start(self._opener.partitions)
        self._canary.start()
        self._thread.start()

    def stops(self) -> dict[str, Callable[[], None]]:
        """Functions that end threads and connections, by name; none waits for another one.

        The canary writes its last rows before it ends.
        """
        return {
            "history": self._history.stop,
            "canary": self._canary.stop,
            "redrives": self._kept.stop,
            "requests over HTTP": self._end_requests,
        }

    def _end_requests(self) -> None:
        # The requests may be beginning just now.
        self._thread.stop()
        self._request_client.stop()

    def _owned(self) -> list[int]:
        """Homes that this worker owns, for which it takes requests in."""
        runners = [] if self._owners is None else self._owners.runners()
        homes = self._opener.partitions
        return [r.partition for r in runners if r.epoch is not None and r.partition < homes]

    def _held(self) -> list[int]:
        """Partitions whose histories are kept here: those that are owned or stood by for."""
        return [] if self._holdings is None else self._holdings.held()

    def _retention_ms(self, tenant: bytes) -> int:
        """The retention of a tenant's history, in ms: by its policy, as partitions or their
        follower know it.
        """
        known = self._opener.tenants.known(tenant)
        if known is not None:
            return known.effective.policy.history_ms
        effective = self._opener.policies.stored.effective_of(tenant.decode(errors="replace"))
        return HISTORY_MS if effective is None else effective.policy.history_ms

    def _open(self) -> object:
        """One turn of the thread: open all, or raise ConnectionError and try in the next turn."""
        assert self._holdings is not None
        self._request_client.start()
        self._parts.open(self._opened(self._holdings))
        return END

    def _opened(self, holdings: Holdings) -> Open:
        """The parts for routes, once all are open."""
        return Open(
            self._request_client,
            holdings,
            self._directory,
            self._history,
            self._policies,
            self._kept,
            door_of(self._opener.settings, self._opener.clock, self._opener.checkpoints),
            KeyGroupMoves(self._opener.settings, self._opener.counted, self._request_client.put),
            DayPayloads(self._opener.day_store),
        )


def held_partitions(owners: Owners, opener: PartitionOpener) -> HeldPartitions:
    """The partitions of these owners and standbys; to be read from any thread.

    Faust's table of schedules uses it: the held partitions, the warm ones, and reads of rows.
    """
    holdings = Holdings(owners, opener.tenants, opener.partitions)

    def warm() -> list[int]:
        """Standbys that have caught up; Faust's table shows them apart."""
        return [each.partition for each in owners.standbys() if each.warm]

    return HeldPartitions(
        holdings.held, warm, holdings.home_of, holdings.read, opener.clock.wall_ms
    )
