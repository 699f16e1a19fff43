"""Settings of brokers that belfry's promises rest on, as a table; pure comparisons, no client.

A broker's setting counts for topics without a value of their own, and for matters that are not set
by topic: how long transactions may last, how safely their state is kept, how long offsets are kept.
None of these findings keeps a worker from starting: the broker's operator is told the risk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from belfry.kafka.topic_rules import TopicProblem


class Rests(NamedTuple):
    """A setting of brokers: when it is wrong, its right value, why, and whether that is fatal."""

    key: str
    wrong: Callable[[str, int, Mapping[str, int]], bool]
    wanted: str
    why: str
    fatal: bool


RESTS: Final = (
    Rests(
        "unclean.leader.election.enable",
        lambda value, _brokers, _needs: value == "true",
        "false",
        "topics of tenants take it over: a replica that lacks acknowledged events may lead them",
        fatal=False,
    ),
    Rests(
        "transaction.partition.verification.enable",
        lambda value, _brokers, _needs: value == "false",
        "true",
        "a transaction may hang open for ever, and hides all that follows it (KIP-890)",
        fatal=True,
    ),
    Rests(
        "transaction.max.timeout.ms",
        lambda value, _brokers, needs: int(value) < needs["transaction_timeout_ms"],
        "BELFRY_TRANSACTION_TIMEOUT_MS at least",
        "no worker's transactions are accepted",
        fatal=True,
    ),
    Rests(
        "group.max.session.timeout.ms",
        lambda value, _brokers, needs: int(value) < needs["session_timeout_ms"],
        "BELFRY_SESSION_TIMEOUT_MS at least",
        "no worker can join its group",
        fatal=True,
    ),
    Rests(
        "transaction.state.log.replication.factor",
        lambda value, brokers, _needs: int(value) < min(3, brokers),
        "3",
        "transactions are remembered by fewer brokers than there could be",
        fatal=False,
    ),
    Rests(
        "transaction.state.log.min.isr",
        lambda value, brokers, _needs: brokers >= 3 and int(value) < 2,
        "2",
        "one broker alone may hold the outcome of a transaction",
        fatal=False,
    ),
    Rests(
        "offsets.retention.minutes",
        lambda value, _brokers, _needs: int(value) < 7 * 24 * 60,
        "10080",
        "positions of tenants' own input topics, of added partitions and of dispatchers are lost",
        fatal=False,
    ),
)


def broker_problems(
    broker: str, actual: Mapping[str, str | None], brokers: int, needs: Mapping[str, int]
) -> list[TopicProblem]:
    """The settings of a broker that endanger promises; `needs` are numbers of belfry's settings."""
    return [
        TopicProblem(
            broker,
            f"{rest.key} is {value}; it has to be {rest.wanted}",
            f"set {rest.key} in the broker's properties, or with kafka-configs.sh --entity-type"
            " brokers",
            rest.fatal,
            rest.why,
            refuses=False,
        )
        for rest in RESTS
        if (value := actual.get(rest.key)) is not None and rest.wrong(value, brokers, needs)
    ]
