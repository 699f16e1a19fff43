"""``belfry verify``: whether topics of a belfry say of one another what the specification asks.

Three parts do it. The rules are `belfry.verification`, which is pure and shares no code with the
engine that it checks. `verify_cluster` reads topics in an order that makes a comparison possible.
`verify_memory` keeps what was read in a file, so that memory stays bounded and a later run goes on.

    belfry verify                                   one pass over all that the topics hold
    belfry verify --state verified.db               and the next run reads what is new only
    belfry verify --state verified.db --every 60s   a pass a minute, until Ctrl-C

What cannot be checked, since compaction or retention removed it, is counted with its reason, and
never reported as a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belfry.cli.changelog import judges
from belfry.cli.failures import CommandError, Exit
from belfry.cli.options import seconds
from belfry.cli.session import Session, with_session
from belfry.cli.shown import plain

if TYPE_CHECKING:
    from belfry.cli.verify_cluster import ClusterVerifier, VerifiedTopics
    from belfry.client.kafka import Cluster
    from belfry.tenants.policy import TenantPolicy
    from belfry.verification.findings import Breached, CheckCounts

# Something was found, where 1 is an error.
FOUND = Exit.CONFLICT
DAY_MS = 24 * 3_600_000

# A database of SQLite; without it a temporary one, which is gone at the end.
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="Remember in this file how far it was read, and go on from there next time.",
    ),
]
Every = Annotated[
    float | None,
    typer.Option(
        "--every", parser=seconds, metavar="DURATION", help="Go on for ever, with such pauses: 60s."
    ),
]
# Seconds of one pass, however much is missing.
Grace = Annotated[
    float,
    typer.Option(
        "--grace",
        parser=seconds,
        metavar="DURATION",
        help="Wait so long for what is not there yet.",
    ),
]
# Days; memory on disk grows with it.
Remember = Annotated[
    int,
    typer.Option(
        "--remember-days", min=1, max=365, help="Find events that come twice so far back."
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Where events of a tenant went before its policy changed; repeatable.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``verify`` to the program."""
    app.command("verify")(with_session(verify))


def verify(
    session: Session,
    *,
    state: State = None,
    every: Every = None,
    grace: Grace = "10s",  # type: ignore[assignment]  # typer parses it
    remember_days: Remember = 7,
    topic: Also = None,
) -> int:
    """Check each transaction of a belfry against its specification, by its topics alone.

    Reads changelog, outputs, lifecycle and rejected topics, and writes nothing to Kafka. It checks
    numbers, epochs, positions, watermarks, digests, and each event that fired against the schedule
    that asked for it. Exit code 0 where nothing is wrong, 4 for a finding, 1 for an error, 3 where
    there is no changelog. Example:

    belfry verify --state verified.db
    """
    return _verify(session, (state, every, grace), remember_days, topic)


def _verify(
    session: Session,
    pace: tuple[Path | None, float | None, float],
    remember_days: int,
    topic: list[str] | None,
) -> int:
    """Pass after pass; `pace` is where they go on from, the pause between, and what is waited.

    Policies are read before each pass, for they say where events go and which may come twice.
    Returns `FOUND` once any pass has found something. Raises `CommandError` for records of a later
    release.
    """
    from belfry.cli.policies import kafka_policies
    from belfry.store.layout.records import UnknownFormat

    told = Exit.OK
    state, every, grace = pace
    with _verifier(session, state) as (verifier, topics):
        topics.also = frozenset(topic or ())
        while True:
            policies = kafka_policies(session).all()
            topics.tenants = _topics_of(session, policies)
            verifier.repeats = frozenset(
                name for name, each in policies.items() if each.guarantee != "EXACTLY_ONCE"
            )
            try:
                found = verifier.run(grace, remember_days * DAY_MS)
            except UnknownFormat as error:
                raise CommandError(str(error)) from None
            _show(session, found, verifier.counts)
            told = FOUND if found else told
            if every is None:
                return told
            sleep(every)


@contextmanager
def _verifier(
    session: Session, state: Path | None
) -> Iterator[tuple[ClusterVerifier, VerifiedTopics]]:
    """The verifier and the names of its topics; reader and file are closed at the end."""
    from belfry.cli.verify_cluster import ClusterVerifier, VerifiedTopics
    from belfry.cli.verify_memory import MemoryOnDisk
    from belfry.cli.verify_topics import TopicReader
    from belfry.client.decoding import Decoder
    from belfry.registry.subjects import look_in, open_registry

    settings = session.settings
    decoder = Decoder("LifecycleEvent", look_in(open_registry(settings)), only=True)
    with (
        closing(TopicReader(_cluster(session))) as reader,
        closing(MemoryOnDisk(state, _world(session))) as memory,
    ):
        topics = VerifiedTopics(settings.topic, {})
        yield ClusterVerifier(reader, memory, topics, decoder, judges(session)), topics


def _cluster(session: Session) -> Cluster:
    """The cluster, with readers that turn from one topic to the next at once."""
    from belfry.cli.session import BOOTSTRAP
    from belfry.client.kafka import Cluster

    properties = {"fetch.wait.max.ms": 10, **session.settings.kafka_properties()}
    return Cluster(properties.pop(BOOTSTRAP), properties)


def _world(session: Session) -> str:
    """Which changelog this is, wherever its brokers are reached.

    The id of a topic (KIP-516) is another one after it was deleted and made anew, so a state file
    of the one before is not mistaken for this one's. Raises `CommandError` with the exit code 3
    where there is no changelog.
    """
    from confluent_kafka import KafkaException, TopicCollection

    cluster, admin = session.admin()
    topic = session.settings.topic("changelog")
    try:
        described = admin.describe_topics(TopicCollection([topic]))[topic].result()
    except KafkaException:
        raise CommandError(
            f"There is no topic {topic} at {cluster.servers}, so there is nothing to verify. If"
            " belfry's topics have another prefix, set BELFRY_CLUSTER__TOPIC_PREFIX.",
            Exit.NOT_FOUND,
        ) from None
    return f"{topic} with the id {described.topic_id}"


def _topics_of(session: Session, policies: dict[str, TenantPolicy]) -> dict[str, str]:
    """Where the events of tenants go that do not go to the default."""
    from belfry.tenants.canary import CANARY, CANARY_TOPIC

    found = {
        name: each.output_topic for name, each in policies.items() if each.output_topic is not None
    }
    return {**found, CANARY: session.settings.topic(CANARY_TOPIC)}


# -- what is shown ---------------------------------------------------------------------------------


def _show(session: Session, found: list[Breached], counts: CheckCounts) -> None:
    """Print what a pass has found, and what it looked at."""
    text = "\n".join([*map(line, found), *summary(found, counts)])
    session.printer.one(shown(found, counts), text)


def shown(found: list[Breached], counts: CheckCounts) -> dict[str, Any]:
    """A pass for programs.

    `counts` are those of all passes of this run, `not_checked` says by reason what could not be
    judged.
    """
    from belfry.verification.findings import MEANINGS

    return {
        "findings": [
            {
                "kind": each.breach,
                "meaning": MEANINGS[each.breach],
                "topic": each.spot.topic,
                "partition": each.spot.partition,
                "offset": each.spot.offset,
                "found": each.found,
                "expected": each.expected,
            }
            for each in found
        ],
        "counts": asdict(counts),
        "not_checked": counts.unchecked(),
    }


def line(found: Breached) -> str:
    """A finding in a line for people: its kind, where it lies, what was found, and what was
    expected.
    """
    # Ids are others' words.
    said = f"{found.found}; expected: {found.expected}"
    return f"{found.breach.upper():18} {found.spot}  {plain(said)}"


def summary(found: list[Breached], counts: CheckCounts) -> list[str]:
    """What was looked at, in lines for people."""
    told = [
        f"{counts.checked:,} of {counts.transactions:,} transactions checked, {counts.fires:,}"
        f" fires, {counts.digests:,} digests, {counts.outputs:,} output records: "
        + (f"{len(found):,} findings." if found else "nothing is wrong.")
    ]
    told += [f"Not checked: {number:,} {why}." for why, number in counts.unchecked().items()]
    return told
