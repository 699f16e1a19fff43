"""The audit log of one worker: its trail from the first moment, its threads once Kafka is there.

The trail is made before HTTP is, so a refusal in the first second is kept; what waits in it is
written once `start` has made the writer.  A process that only delivers writes its own events, and
leaves the topic of policies to the workers.
"""

from __future__ import annotations

from collections.abc import Callable

from belfry.audit.policy_log import PolicyLog
from belfry.audit.trail import Trail
from belfry.audit.writer import AuditWriter, audit_producer
from belfry.client.decoding import Decoder
from belfry.registry.client import Registry
from belfry.registry.subjects import look_in
from belfry.settings import DeliverySettings


class AuditLog:
    """The trail and what writes it; `start` and `stop` are called once each, in that order."""

    def __init__(
        self,
        settings: DeliverySettings,
        worker: str,
        counted: Callable[[str, int], None],
        now_ms: Callable[[], float],
    ) -> None:
        """`counted` is told of events that were written or lost: ``written`` or ``lost``, a number.

        `now_ms` gives epoch milliseconds.
        """
        self.trail = Trail(settings.audit)
        self.trail.worker, self.trail.counted = worker, counted
        self._settings = settings
        self._now_ms = now_ms
        self._writer: AuditWriter | None = None
        self._policies: PolicyLog | None = None

    def start(self, frame: bytes, registry: Registry | None) -> None:
        """Begin to write; `frame` stands before each record."""
        settings = self._settings
        if settings.audit == "none":
            return
        properties = settings.kafka_properties()
        self._writer = AuditWriter(
            self.trail,
            (settings.topic("audit"), frame),
            lambda: audit_producer(properties),
            self._now_ms,
        )
        self._writer.start()
        if settings.role != "deliver":
            decoder = Decoder("TenantPolicy", look_in(registry), only=True)
            self._policies = PolicyLog(settings, decoder, frame, self.trail)
            self._policies.start()

    def stop(self) -> None:
        """Write what is there, and end."""
        for part in (self._policies, self._writer):
            if part is not None:
                part.stop()
