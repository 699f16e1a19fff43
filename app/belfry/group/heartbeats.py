"""Heartbeats of workers: a worker writes its own into Kafka, and reads those of others there.

A heartbeat is the committed position of a consumer group that has no members
(`<app id>.heartbeats`), for a partition of the changelog that its worker owns; its content is the
position's metadata. So a worker costs one small request for each heartbeat, and one for reading
those of all owners that it stands by for, whatever they own. There is no topic to keep, and a
broker only holds the last position of each.

A worker that may not write there says so when it joins, and shows by commits that it lives. So do
workers of older versions, and those whose heartbeats are not acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.balance.assignment import NO_HEARTBEAT, Assignment
from belfry.balance.assignment_map import IDLE_COMMIT_MS
from belfry.balance.heartbeat import Heartbeat, read_heartbeat
from belfry.group.heartbeat_watch import HeartbeatWatch
from belfry.host import machine
from belfry.host.background import Background
from belfry.host.clock import SystemClock
from belfry.kafka import offset_client
from belfry.kafka.answer_errors import CommittedOffset

TURN_S: Final = 0.1
LISTEN_EVERY_MS: Final = 200.0
# A third of the shortest usual time-out: after so long a silence each turn reads heartbeats.
QUIET_MS: Final = 400.0
ANSWER_S: Final = 0.5
BEGIN_S: Final = 10.0
# If the last acknowledged heartbeat is older than this, the broker takes no heartbeats.
UNACKNOWLEDGED_MS: Final = 1_000.0
LATE_COUNTS_MS: Final = 2_000.0

REFUSED: Final = (
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
)

log = structlog.get_logger(__name__)


class Heartbeats:
    """A thread that sends this worker's heartbeat and reads those of the owners that it watches."""

    def __init__(
        self,
        worker: str,
        topic: str,
        properties: dict[str, Any],
        group: str,
        clock: SystemClock | None = None,
    ) -> None:
        """`worker` is a name; heartbeats lie at `topic`, in `group`, both by full names."""
        self._worker = worker
        self._topic = topic
        self._clock = clock or SystemClock()
        self._lock = machine.Lock()
        self._watches: dict[int, HeartbeatWatch] = {}
        self._key = NO_HEARTBEAT
        self._number = int(self._clock.wall_ms())
        self._sent_ms = self._listened_ms = 0.0
        self._pending_ms: float | None = None
        self._acknowledged_ms = self._clock.monotonic_ms()
        self._late_ms = -LATE_COUNTS_MS
        self._problem = ""
        self._ready = machine.Event()
        self.works = False
        self._well: Callable[[], Iterable[int]] = tuple
        own = {"group.id": group, "on_commit": self._committed}
        self._client = offset_client.OffsetClient({"socket.timeout.ms": 3_000, **properties, **own})
        # A poll that fails does not wait.
        self._thread = Background(
            "heartbeats", self._poll, log, "heartbeats failed; trying again", again_s=TURN_S
        )
        self._thread.last = self._end

    def start(self, well: Callable[[], Iterable[int]] = tuple) -> None:
        """Begin; `begun` gives the result. A heartbeat vouches for the partitions of `well`."""
        self._well = well
        self._thread.start()

    def begun(self) -> bool:
        """Whether this worker may send heartbeats; waits until the first one is acknowledged."""
        self._ready.wait(BEGIN_S)
        if not self.works:
            log.warning(
                "no heartbeats are kept: this worker shows by commits that it lives",
                reason=self._problem or f"no answer within {BEGIN_S:.0f} s",
            )
        return self.works

    def stop(self) -> None:
        """End."""
        self._thread.stop()

    def follow(self, told: Assignment) -> None:
        """Keep the heartbeat and watch the owners that an assignment names."""
        now_ms = self._clock.monotonic_ms()
        owners = {w.heartbeat: w.worker for w in told.watches if w.heartbeat != NO_HEARTBEAT}
        with self._lock:
            if self._key == NO_HEARTBEAT:
                self._acknowledged_ms = now_ms
            self._key = told.heartbeat
            known = {watch.owner: watch for watch in self._watches.values()}
            self._watches = {
                key: known.get(owner) or HeartbeatWatch(owner, now_ms)
                for key, owner in owners.items()
            }

    def watch(self, key: int) -> HeartbeatWatch | None:
        """The watch over the owner that keeps its heartbeat under a partition."""
        return self._watches.get(key) if self.works else None

    def acknowledged(self) -> bool:
        """Whether this worker's own heartbeats, if it sends any, are taken now and were lately.

        If they were not, other workers may have taken its partitions over: a commit of each tells.
        """
        now_ms = self._clock.monotonic_ms()
        in_time = now_ms - self._acknowledged_ms <= UNACKNOWLEDGED_MS
        return self._key == NO_HEARTBEAT or (in_time and now_ms - self._late_ms > LATE_COUNTS_MS)

    # -- the thread ------------------------------------------------------------------------------

    def _poll(self) -> None:
        self._client.poll(TURN_S)
        self._turn(self._clock.monotonic_ms())

    def _end(self) -> None:
        self._client.close()

    def _turn(self, now_ms: float) -> None:
        with self._lock:
            key, watches = self._key, dict(self._watches)
        due = now_ms - self._sent_ms >= IDLE_COMMIT_MS and self._pending_ms is None
        if due and (key != NO_HEARTBEAT or not self.works):
            self._sent_ms = now_ms
            # The first one only tests whether it is taken: a worker with its heartbeat under this
            # key will overwrite it.
            self._send(max(key, 0), Heartbeat(self._worker, frozenset(self._well())))
        quiet = any(watch.quiet_ms(now_ms) >= QUIET_MS for watch in watches.values())
        if watches and (quiet or now_ms - self._listened_ms >= LISTEN_EVERY_MS):
            self._listened_ms = now_ms
            self._listen(watches, now_ms)

    def _send(self, key: int, beat: Heartbeat) -> None:
        self._number += 1
        self._pending_ms = self._clock.monotonic_ms()
        place = TopicPartition(self._topic, key, self._number, beat.encode())
        self._client.commit(offsets=[place], asynchronous=True)

    def _committed(self, error: Any, places: Sequence[CommittedOffset]) -> None:
        sent_ms, self._pending_ms = self._pending_ms, None
        failed = error or next((place.error for place in places or () if place.error), None)
        if failed is None:
            self.works = True
            self._problem = ""
            if sent_ms is not None:
                if sent_ms - self._acknowledged_ms > UNACKNOWLEDGED_MS:
                    self._late_ms = self._clock.monotonic_ms()
                self._acknowledged_ms = sent_ms
            self._ready.set()
            return
        if self._problem != failed.str():
            self._problem = failed.str()
            log.warning("a heartbeat was not taken", reason=self._problem)
        if failed.code() in REFUSED:
            self._ready.set()

    def _listen(self, watches: dict[int, HeartbeatWatch], asked_ms: float) -> None:
        places = [TopicPartition(self._topic, key) for key in watches]
        try:
            found = self._client.committed(places, timeout=ANSWER_S)
        except KafkaException:
            found = list[CommittedOffset]()
        now_ms = self._clock.monotonic_ms()
        answers = {place.partition: place for place in found if place.error is None}
        for key, watch in watches.items():
            place = answers.get(key)
            if place is None or not self.acknowledged():
                watch.unanswered(now_ms)
            else:
                watch.looked(asked_ms, now_ms, place.offset, read_heartbeat(place.metadata))
