"""Which cluster and which topics these are, asked anew whenever it matters.

A name says nothing: a topic may be deleted and made anew while a worker runs. So a take-over asks
for the ids, and once in a while a thread looks whether they are still those of the take-over.

The *anchor* of a partition is its identity outside of changelog and input, so that it outlives
both. It is kept by the owner of the partition:

    12:00:00  the owner's first commit          `owned`: the anchor is due
    12:00:01  the self-check looks              ids are the same: the anchor is written
    13:00:00  an hour is over                   written again, or Kafka would forget it in some days
    13:20:00  the topic has another id          not written: an anchor has to be true of the topics

A write that failed is tried again after 5 s, 10 s, and so on up to a minute. Ownership does not
wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from belfry.host import machine
from belfry.host.joined import Joined
from belfry.kafka.anchors import Anchors, SomeNotKept
from belfry.kafka.causes import cause_of
from belfry.recovery.evidence import Recoveries
from belfry.store.identity import Identity

# Seconds in which the brokers have to tell the ids.
ANSWER_S: Final = 5.0
# Seconds for a first go, and for metadata.
SOON_S: Final = 1.5
# How old the last look at the ids may be while a worker runs.
LOOK_EVERY_MS: Final = 5_000.0
# Kafka forgets offsets of a group without members after days, so anchors are renewed.
RENEW_EVERY_MS: Final = 3_600_000.0
# After an anchor was not written: twice as long each time.
PAUSE_MS: Final = 5_000.0
LONGEST_PAUSE_MS: Final = 60_000.0

log = structlog.get_logger(__name__)


class Identities:
    """The ids of cluster, changelog and input; and the anchors of the partitions owned here.

    One object serves a whole worker. `now` and `owned` are called by partitions' threads, `look` by
    the self-check alone.
    """

    def __init__(
        self,
        admin: AdminClient,
        cluster_id: str,
        topics: tuple[str, str],
        anchors: Anchors,
        beside: Callable[[Iterable[int]], None] | None = None,
        connect: Callable[[], AdminClient] | None = None,
    ) -> None:
        """`topics` are the changelog and the input, by name.

        `beside` is called with the partitions whose anchors were written: more may be kept there.
        Where `admin` gives no answer, `connect` makes the client that is asked from then on.
        """
        self._admin = admin
        self._connect = connect
        self._cluster_id = cluster_id
        self._topics = topics
        self.anchors = anchors
        self._beside = beside
        # How many partitions changelog and input had when the ids were seen.
        self.partitions = (0, 0)
        self.recoveries = Recoveries()
        self._lock = machine.Lock()
        self._owned: dict[int, Identity] = {}
        self._kept: dict[int, Identity] = {}
        self._looked_ms = self._renewed_ms = 0.0
        self._pause_ms = self._again_ms = 0.0
        self._said = ""
        # A worker takes all of its partitions over at once.
        self._answer = Joined(self._ask)
        self.seen = self.now()

    def now(self) -> Identity:
        """The ids as they are at this moment; ConnectionError where nobody tells."""
        return self._answer()

    def _ask(self) -> Identity:
        """Ask for the ids.

        They are asked of the broker that the client knows as the controller.  Where that one is
        away, as while brokers are restarted in turn, the client waits for it, and learns of another
        one from the next metadata alone: so that is asked for, of any broker.  A client that has
        met the end of a broker may stay without a controller for minutes, so a new one asks.  One
        whose topics are gone has got its answer, and looks once more.
        """
        admin = self._admin
        try:
            return self._told(admin, SOON_S)
        except ConnectionError as error:
            if not _says_gone(error):
                admin = self._other_than(admin)
                with suppress(KafkaException):
                    admin.list_topics(self._topics[0], timeout=SOON_S)
        return self._told(admin, ANSWER_S)

    def _other_than(self, failed: AdminClient) -> AdminClient:
        """Another client, where one can be made: one for all who have asked the same in vain."""
        with self._lock:
            if self._admin is failed and self._connect is not None:
                self._admin = self._connect()
            return self._admin

    def _told(self, admin: AdminClient, within_s: float) -> Identity:
        changelog, schedules = self._topics
        try:
            answers = admin.describe_topics(
                TopicCollection(list(self._topics)), request_timeout=within_s
            )
            found: dict[str, Any] = {name: each.result(within_s) for name, each in answers.items()}
        except (KafkaException, TimeoutError) as error:
            raise ConnectionError(f"{changelog}, {schedules}: {cause_of(error)}") from error
        self.partitions = (len(found[changelog].partitions), len(found[schedules].partitions))
        self.seen = Identity(
            self._cluster_id, str(found[changelog].topic_id), str(found[schedules].topic_id)
        )
        return self.seen

    def owned(self, partition: int, identity: Identity) -> None:
        """This worker owns a partition with this identity: its anchor is to be kept."""
        with self._lock:
            self._owned[partition] = identity

    def given_up(self, partition: int) -> None:
        """This worker owns it no more."""
        with self._lock:
            self._owned.pop(partition, None)
            self._kept.pop(partition, None)

    def look(self, now_ms: float) -> None:
        """Look at the ids, and keep the anchors that are due; from one thread, often."""
        due = self._due(now_ms)
        if not due and now_ms - self._looked_ms < LOOK_EVERY_MS:
            return
        self._looked_ms = now_ms
        try:
            # Before an anchor is written: it outlives the topics, so it has to be true of them.
            here = self.now()
            self._keep({p: each for p, each in due.items() if each.same_world(here)})
        except ConnectionError as error:
            if due:
                self._pause_ms = min(max(PAUSE_MS, 2 * self._pause_ms), LONGEST_PAUSE_MS)
                self._again_ms = now_ms + self._pause_ms
            # An obstacle of this shows elsewhere; it is said once.
            if self._said != str(error):
                self._said = str(error)
                log.warning("the ids of the topics are not kept", reason=self._said)
        else:
            self._pause_ms = 0.0 if due else self._pause_ms
            if not self._pause_ms:
                self._said = ""

    def _due(self, now_ms: float) -> dict[int, Identity]:
        """The anchors to be written now."""
        with self._lock:
            if now_ms - self._renewed_ms >= RENEW_EVERY_MS:
                self._renewed_ms = now_ms
                self._kept.clear()
            if now_ms < self._again_ms:
                return {}
            return {p: each for p, each in self._owned.items() if self._kept.get(p) != each}

    def _keep(self, due: dict[int, Identity]) -> None:
        """Write anchors; raises ConnectionError, and SomeNotKept where only some were written."""
        if not due:
            return
        try:
            newer = self.anchors.write(due)
        except SomeNotKept as error:
            self._written({p: due[p] for p in error.kept})
            raise
        for partition, kept in newer.items():
            log.warning(
                "a partition that is owned here was recovered since: its anchor stays",
                partition=partition, generation=kept.generation,
            )  # fmt: skip
        self._written(due)
        if self._beside is not None:
            self._beside(due)

    def _written(self, anchors: dict[int, Identity]) -> None:
        """Note anchors that need not be written again within the hour."""
        with self._lock:
            self._kept.update(anchors)


def _says_gone(error: ConnectionError) -> bool:
    """Whether brokers have answered that a topic is not there."""
    cause = error.__cause__
    gone = KafkaError.UNKNOWN_TOPIC_OR_PART
    return isinstance(cause, KafkaException) and bool(cause.args[0].code() == gone)


@dataclass(frozen=True, slots=True)
class World:
    """The identity that one owner has taken its partition over with."""

    identities: Identities
    partition: int
    identity: Identity

    def owned(self) -> None:
        """The owner has committed: its anchor is to be kept."""
        self.identities.owned(self.partition, self.identity)

    def given_up(self) -> None:
        """It owns the partition no more."""
        self.identities.given_up(self.partition)

    @property
    def holds_schedules(self) -> bool:
        """Whether the changelog was seen to have this partition."""
        return self.partition < self.identities.partitions[0]

    @property
    def changed(self) -> bool:
        """Whether the ids were seen to be others since; the owner stops then."""
        return not self.identity.same_world(self.identities.seen)
