"""``belfry verify``: whether topics of a belfry say of one another what the specification asks.

Three parts do it. The rules are `belfry.verification`, which is pure and shares no code with the
engine that it checks. `verify_cluster` reads topics in an order that makes a comparison possible.
`verify_state` keeps what was read in a file, so that memory stays bounded and a later run goes on.

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
    from belfry.cli.verified_topics import VerifiedTopics
    from belfry.cli.verify_cluster import ClusterVerifier
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
    with _verifier(session, state, topic or []) as (verifier, topics):
        while True:
            topics.follow(kafka_policies(session).all())
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
    session: Session, state: Path | None, also: list[str]
) -> Iterator[tuple[ClusterVerifier, VerifiedTopics]]:
    """The verifier and the names of its topics; reader and file are closed at the end."""
    from belfry.cli.verified_topics import VerifiedTopics, quick_cluster, world_of
    from belfry.cli.verify_cluster import ClusterVerifier
    from belfry.cli.verify_state import StateFile
    from belfry.cli.verify_topics import TopicReader
    from belfry.client.decoding import Decoder
    from belfry.registry.subjects import look_in, open_registry

    settings = session.settings
    decoder = Decoder("LifecycleEvent", look_in(open_registry(settings)), only=True)
    with (
        closing(TopicReader(quick_cluster(session))) as reader,
        closing(StateFile(state, world_of(session))) as file,
    ):
        topics = VerifiedTopics(settings.topic, also)
        yield ClusterVerifier(reader, file, topics, decoder, judges(session)), topics


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
