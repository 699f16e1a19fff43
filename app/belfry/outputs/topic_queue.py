"""Requests to the cluster for output topics: to make them, and to learn what they accept.

**To make them.** Any client may make tenants up if unknown ones are served, and each topic costs
the brokers partitions for good.  So topics are made at a bounded rate, several in one request, and
a tenant that waits for its topic is held meanwhile.  Topics of tenants with a policy come first.

**What they accept**: how large a record, and whether belfry may write there at all. If the cluster
does not describe a topic in time, that is logged, and the topic is left out: the next look asks
again.

    rate 5 a second, 20 at once; 60 unknown tenants come at 12:00:00, one known at 12:00:01
    12:00:00     20 topics
    12:00:01     the known one, and 4 others: 5 tokens have come
    12:00:02 …   5 each second

The rate is a token bucket of `AT_ONCE`, or of a second's worth if that is more. A topic stays in
the queue while it is made, so that it is not asked for twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import structlog
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclOperation,
    AdminClient,
    ConfigResource,
)

from belfry.host import machine
from belfry.kafka.causes import cause_of
from belfry.kafka.topics import create_topics
from belfry.kafka.wanted_topics import output_topic_spec
from belfry.settings import Settings

AT_ONCE: Final = 20
TOLD_S: Final = 10.0
ADMIN_S: Final = 10.0
TO_MAKE: Final = "its topic is being made"
CROWDED_OUT: Final = (
    "tenants without a policy have as many topics as they may have (BELFRY_UNKNOWN_TENANTS_MOST)"
)
log = structlog.get_logger(__name__)
TOPICS_AT_ONCE: Final = 500
BATCH_OVERHEAD_BYTES: Final = 1024


class TopicQueue:
    """The topics that wait, for any thread; one thread takes them.

    `per_second` may be a fraction: 0.1 is a topic each ten seconds, once the first 20 are made.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._lock = machine.Lock()
        # In the order of their arrival: topics of tenants with a policy, and all others.
        self._known: dict[str, None] = {}
        self._unknown: dict[str, None] = {}
        self._tokens = float(AT_ONCE)
        self._filled_s = self._told_s = 0.0

    def __len__(self) -> int:
        """The number of topics that wait."""
        return len(self._known) + len(self._unknown)

    def __contains__(self, topic: str) -> bool:
        """Whether a topic waits."""
        return topic in self._known or topic in self._unknown

    def add(self, topic: str, *, known: bool) -> None:
        """Put a topic in, once; `known`: its tenant has a policy, so the topic comes first."""
        with self._lock:
            if known:
                self._unknown.pop(topic, None)
                self._known[topic] = None
            elif topic not in self._known:
                self._unknown[topic] = None

    def next(self, now_s: float) -> list[str]:
        """The topics to be made now, by a monotonic clock; they stay in until they are `done`.

        A warning every ten seconds tells how many have to wait for the rate.
        """
        with self._lock:
            filled = self._tokens + (now_s - self._filled_s) * self._per_second
            self._tokens, self._filled_s = min(filled, max(AT_ONCE, self._per_second)), now_s
            found = [*self._known, *self._unknown][: min(AT_ONCE, int(self._tokens))]
            self._tokens -= len(found)
        self._tell(len(self) - len(found), now_s)
        return found

    def _tell(self, waiting: int, now_s: float) -> None:
        if waiting and now_s - self._told_s >= TOLD_S:
            self._told_s = now_s
            log.warning(
                "output topics wait to be made, and their tenants' events with them",
                waiting=waiting, per_second=self._per_second,
            )  # fmt: skip

    def done(self, topic: str) -> None:
        """Take out a topic that was made, or that cannot be made."""
        with self._lock:
            self._known.pop(topic, None)
            self._unknown.pop(topic, None)


def make_topics(
    admin: AdminClient, settings: Settings, topics: list[str]
) -> tuple[dict[str, int], dict[str, str]]:
    """Make output topics, in one request; returns their numbers of partitions, and the failures.

    If one of them is refused, each is asked for by itself: so one bad name, or one missing right,
    does not keep other tenants waiting.  Blocks for up to the time-out of a request each.
    """
    try:
        brokers = len(admin.list_topics(timeout=ADMIN_S).brokers)
    except KafkaException as error:
        return {}, dict.fromkeys(topics, error.args[0].str())
    specs = [output_topic_spec(settings.cluster, topic, brokers) for topic in topics]
    made: dict[str, int] = {}
    problems: dict[str, str] = {}
    for some in (specs, *([spec] for spec in specs)):
        left = [spec for spec in some if spec.name not in made]
        try:
            create_topics(admin, left)
        except KafkaException as error:
            if len(some) == 1:
                problems[some[0].name] = error.args[0].str()
        else:
            made.update({spec.name: spec.partitions for spec in left})
    return made, problems


def largest_records(admin: AdminClient, topics: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Topics, each with the bytes that a record may have there.

    That is `max.message.bytes` less the head of a batch; blocks for the request.
    """
    for some in _shares(topics):
        resources = [ConfigResource("topic", topic) for topic in some]
        try:
            answers = admin.describe_configs(resources)
        except KafkaException as error:
            log.warning("topics not described", topics=len(some), reason=cause_of(error))
            continue
        for resource, answer in answers.items():
            try:
                limit = int(answer.result(ADMIN_S)["max.message.bytes"].value)
            except (KafkaException, TimeoutError) as error:
                log.warning("topic not described", topic=resource.name, reason=cause_of(error))
                continue
            yield resource.name, limit - BATCH_OVERHEAD_BYTES


def not_writable(admin: AdminClient, topics: Iterable[str]) -> set[str]:
    """The topics, of these, that belfry may not write to; blocks for the request.

    A cluster without an authorizer tells no rights, and then no topic counts as blocked.
    """
    blocked: set[str] = set()
    for some in _shares(topics):
        answers = admin.describe_topics(
            TopicCollection(some), include_authorized_operations=True, request_timeout=ADMIN_S
        )
        for topic, answer in answers.items():
            try:
                allowed = answer.result(ADMIN_S).authorized_operations
            except (KafkaException, TimeoutError) as error:
                log.warning("topic not described", topic=topic, reason=cause_of(error))
                continue
            if allowed is not None and AclOperation.WRITE not in allowed:
                blocked.add(topic)
    return blocked


def _shares(topics: Iterable[str]) -> Iterator[list[str]]:
    """These topics, as many at a time as a broker describes within the time for an answer."""
    asked = sorted(set(topics))
    for start in range(0, len(asked), TOPICS_AT_ONCE):
        yield asked[start : start + TOPICS_AT_ONCE]
