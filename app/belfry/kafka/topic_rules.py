"""Settings of topics that belfry's promises rest on, as a table; pure comparisons, no client.

A finding is *fatal* if it breaks a promise, and a risk if the promise then rests on luck. None of
these keeps a worker from starting, only other findings of `topics.problems` do: an operator who
alters a topic of a running belfry is told by the workers' log, `belfry doctor` and `belfry topics
check`. `broker_rules.py` has the same for brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from belfry.tenants.topic_names import LETTERS

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
MIB: Final = 1024 * 1024
# A lost record of these topics is a broken promise; a lost record of the others is only lost
# history.
KEEPING: Final = frozenset({"schedules", "changelog", "tenants", "deliveries"})
ANY: Final = -1
# A command of Kafka's own tools, where its options begin.
_COMMAND: Final = re.compile(r"\b(kafka-[a-z-]+\.sh) (?=--)")


class TopicProblem(NamedTuple):
    """A problem: its place, its kind, and what to do; fatal when a promise breaks.

    `why` says which promise. A worker does not start if a problem is fatal and `refuses`. A problem
    that is not `checked` is not a finding: the cluster did not let belfry look.
    """

    topic: str
    what: str
    cure: str
    fatal: bool
    why: str = ""
    refuses: bool = True
    checked: bool = True

    def cured_at(self, servers: str) -> TopicProblem:
        """The same, with commands for the cluster of these brokers: they can be pasted."""
        return self._replace(cure=with_servers(self.cure, servers))


def with_servers(told: str, servers: str) -> str:
    """A text whose commands of Kafka's own tools say which brokers they ask."""
    return _COMMAND.sub(lambda found: f"{found[1]} --bootstrap-server {servers} ", told)


class Least(NamedTuple):
    """A numeric setting of some kinds of topics, and the least values for its promise."""

    key: str
    kinds: frozenset[str]
    broken_below: int
    at_risk_below: int
    why: str


_REQUESTS: Final = frozenset({"schedules"})
_LOG: Final = frozenset({"changelog"})
LEASTS: Final = (
    Least(
        "retention.ms",
        _REQUESTS,
        HOUR_MS,
        7 * DAY_MS,
        "requests that no worker has read by then are lost, and their partition stops",
    ),
    Least(
        "retention.ms",
        frozenset({"deliveries"}),
        HOUR_MS,
        DAY_MS,
        "deliveries that no dispatcher has read by then are lost",
    ),
    Least(
        "retention.ms",
        frozenset({"lifecycle"}),
        60_000,
        DAY_MS,
        "outcomes that no consumer has read by then are lost, and histories miss them",
    ),
    Least(
        "retention.ms",
        frozenset({"rejected", "undelivered", LETTERS}),
        0,
        DAY_MS,
        "refused requests and failed deliveries are gone before somebody looks at them",
    ),
    Least(
        "retention.ms",
        frozenset({"audit"}),
        0,
        30 * DAY_MS,
        "changes and their callers are forgotten before somebody asks",
    ),
    Least(
        "retention.ms",
        frozenset({"metering"}),
        0,
        62 * DAY_MS,
        "tenants' usage is gone before somebody sends the bills",
    ),
    Least(
        "delete.retention.ms",
        _LOG,
        600_000,
        DAY_MS,
        "a worker that was away for half of it reads all anew; one that reads for longer may miss"
        " that a schedule was cancelled",
    ),
    Least(
        "max.message.bytes",
        _LOG,
        MIB + MIB // 4,
        2 * MIB,
        "a schedule that is accepted and does not fit stops its partition",
    ),
    Least(
        "max.message.bytes",
        frozenset({"deliveries", "rejected", "undelivered", LETTERS}),
        0,
        1_000_000,
        "records that do not fit are cut, or rolled back again and again",
    ),
)
# Kept whole by compaction, or for as long as `retention.ms` says: no other bound may delete
# records.
_UNBOUNDED: Final = frozenset({"schedules", "deliveries", "lifecycle", "audit", "metering"})


def problems_of(
    kind: str, topic: str, actual: Mapping[str, str | None], replicas: int
) -> list[TopicProblem]:
    """The settings of a topic that endanger a promise; `kind` is its name without the prefix."""
    found = [
        problem
        for least in LEASTS
        if kind in least.kinds and (problem := _too_small(least, topic, actual)) is not None
    ]
    found += _unclean(kind, topic, actual)
    found += _in_sync(kind, topic, actual, replicas)
    if kind == "fired" and "compact" in (actual.get("cleanup.policy") or ""):
        found.append(
            TopicProblem(
                topic,
                f"cleanup.policy is {actual['cleanup.policy']}",
                _alter(topic, "cleanup.policy", "delete"),
                fatal=False,
                why="events of one key replace one another; a late reader misses some",
                refuses=False,
            )
        )
    size = _number(actual, "retention.bytes")
    if kind in _UNBOUNDED and size is not None and size != ANY:
        found.append(
            TopicProblem(
                topic,
                f"retention.bytes is {size}; it should be -1 (no limit)",
                _alter(topic, "retention.bytes", "-1"),
                fatal=False,
                why="a burst deletes records before retention.ms is over",
                refuses=False,
            )
        )
    return found


def _too_small(least: Least, topic: str, actual: Mapping[str, str | None]) -> TopicProblem | None:
    value = _number(actual, least.key)
    if value is None or value == ANY or value >= least.at_risk_below:
        return None
    return TopicProblem(
        topic,
        f"{least.key} is {value}; it should be {least.at_risk_below} at least",
        _alter(topic, least.key, str(least.at_risk_below)),
        value < least.broken_below,
        least.why,
        refuses=False,
    )


def _unclean(kind: str, topic: str, actual: Mapping[str, str | None]) -> Iterator[TopicProblem]:
    if actual.get("unclean.leader.election.enable") == "true":
        yield TopicProblem(
            topic,
            "unclean.leader.election.enable is true; it has to be false",
            _alter(topic, "unclean.leader.election.enable", "false"),
            kind in KEEPING,
            "a replica that lacks acknowledged records may become leader: they are lost, or events"
            " fire again",
            refuses=False,
        )


def _in_sync(
    kind: str, topic: str, actual: Mapping[str, str | None], replicas: int
) -> Iterator[TopicProblem]:
    in_sync = _number(actual, "min.insync.replicas")
    if in_sync is None or replicas < 3 or in_sync >= 2:
        return
    yield TopicProblem(
        topic,
        f"min.insync.replicas is {in_sync}, with {replicas} replicas; it should be {replicas - 1}",
        _alter(topic, "min.insync.replicas", str(replicas - 1)),
        kind in KEEPING,
        "a record is acknowledged that one broker alone holds, and is lost with it",
        refuses=False,
    )


def unread(where: str, why: str, grant: str) -> TopicProblem:
    """The problem of settings that the cluster does not show."""
    return TopicProblem(
        where,
        f"its settings could not be checked: {why}",
        f"let belfry describe them (ACL: DescribeConfigs on {grant}), or check them by hand",
        fatal=False,
        refuses=False,
        checked=False,
    )


def _number(actual: Mapping[str, str | None], key: str) -> int | None:
    value = actual.get(key)
    return None if value is None else int(value)


def _alter(topic: str, key: str, value: str) -> str:
    return f"kafka-configs.sh --alter --topic {topic} --add-config {key}={value}"
